"""``acp recordings``, ``acp export``, ``acp import``: what was recorded, how much room it takes, thrown
away, or taken along with its collaboration as one file.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from acp_core.cli import fields, output
from acp_core.cli.output import Cell, Column, dump, say, terminal
from acp_core.cli.replay import find_collaboration
from acp_core.cli.start import key_of, load_settings
from acp_core.history import store
from acp_core.history.archive import BadArchive, Carried, unpack
from acp_core.history.archive import export as write
from acp_core.history.durations import Durations
from acp_core.history.schema import Bounds
from acp_core.history.store import StoredRecording
from acp_core.model import format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.protocols.kit.values import Values

SCHEMA = "acp.recordings/1"
COLUMNS = (
    Column("collaboration", least=10),
    Column("size", right=True),
    Column("written", drop=1),
    Column("folder", least=12, drop=2),
)


def recordings(given: Values) -> int:
    """List recordings, or throw some away."""
    if given.forget:
        return _forget(given.forget, given.json)
    if given.prune:
        gone = store.prune_recordings(Bounds.of(load_settings().recording))
        _say_gone(f"{format.count(len(gone), 'recording')} deleted", gone, given.json)
        return 0
    found = store.recordings()
    if given.json:
        say(dump(_as_fields(found)))
        return 0
    if found:
        for line in output.table(COLUMNS, [_row(each) for each in found], terminal()):
            say(line)
    else:
        say("No recordings yet. The dashboard, `acp watch` and `acp record` make them.")
    return 0


def _forget(folder: str, as_json: bool) -> int:
    place = store.recording_path(key_of(folder))
    if not place.exists():
        raise CommandError(f"no recording of {folder}")
    try:
        store.delete_recording(place)
        Durations().forget(key_of(folder))
    except OSError as error:
        raise CommandError(f"{place}: {error.strerror or error}") from None
    _say_gone(f"deleted the recording of {folder}", [place], as_json)
    return 0


def _say_gone(sentence: str, gone: Iterable[Path], as_json: bool) -> None:
    if as_json:
        say(dump({"schema": SCHEMA, "sentence": sentence, "thrown_away": list(map(str, gone))}))
    else:
        say(sentence)


def _row(each: StoredRecording) -> tuple[Cell, ...]:
    written = datetime.fromtimestamp(each.written, UTC)
    return (
        Cell(each.name or each.path.name, "head"),
        Cell(format.size(each.size)),
        Cell(f"{format.age(written, utc_now())} ago", "dim"),
        Cell(each.problem or each.key, "error" if each.problem else ""),
    )


def _as_fields(found: list[StoredRecording]) -> fields.Fields:
    return {
        "schema": SCHEMA,
        "at": fields.time(utc_now()),
        "recordings": [
            {
                "path": str(each.path),
                "collaboration": each.key,
                "name": each.name,
                "bytes": each.size,
                "written": fields.time(datetime.fromtimestamp(each.written, UTC)),
                "problem": each.problem,
            }
            for each in found
        ],
    }


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
