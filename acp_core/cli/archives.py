"""``acp export`` and ``acp import``: a collaboration with its recording as one file."""

from __future__ import annotations

from pathlib import Path

from acp_core.cli.output import dump, say
from acp_core.cli.past import find_collaboration
from acp_core.history.archive import BadArchive, Carried, unpack
from acp_core.history.archive import export as write
from acp_core.model import format
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values


def export(given: Values) -> int:
    """Write the archive.

    Raises:
        CommandError: it cannot be written.
    """
    found = find_collaboration(given.folder)
    target = Path(given.output or f"{Path(found.key).name}.acp.zip")
    try:
        carried = write(found, target, recording=not given.no_recording)
    except BadArchive as error:
        raise CommandError(str(error)) from None
    _say_carried("export", "written", target, carried, given.json)
    return 0


def import_(given: Values) -> int:
    """Unpack an archive.

    Raises:
        CommandError: it cannot be unpacked.
    """
    try:
        carried = unpack(Path(given.file), Path(given.folder) if given.folder else None)
    except BadArchive as error:
        raise CommandError(str(error)) from None
    _say_carried("import", "unpacked", carried.folder, carried, given.json)
    return 0


def _say_carried(name: str, done: str, place: Path, carried: Carried, as_json: bool) -> None:
    if not as_json:
        say(f"{done}: {place} ({_describe_carried(carried)})")
        return
    counts = {"files": carried.files, "versions": carried.versions}
    say(dump({"schema": f"acp.{name}/1", done: str(place), **counts}))


def _describe_carried(carried: Carried) -> str:
    files = format.count(carried.files, "file")
    if carried.versions is None:
        return f"{files}, no recording"
    return f"{files}, {format.count(carried.versions, 'recorded version')}"
