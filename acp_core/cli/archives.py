"""``acp export`` and ``acp import``: a collaboration with its recording as one file."""

from __future__ import annotations

from pathlib import Path

import click

from acp_core.cli.folders import FOLDER
from acp_core.cli.output import say
from acp_core.cli.past import find_collaboration
from acp_core.history.archive import BadArchive, Carried, unpack
from acp_core.history.archive import export as write
from acp_core.model import format
from acp_core.model.errors import CommandError


@click.command("export")
@click.argument("folder", type=FOLDER)
@click.option(
    "-o", "--output", metavar="FILE", help="The archive (default: FOLDER's name with .acp.zip)."
)
@click.option("--no-recording", is_flag=True, help="Leave the recording out.")
def export(folder: str, output: str | None, no_recording: bool) -> int:
    """Write the collaboration in FOLDER, with what was recorded of it, into one file.

    Nothing is left out of the documents: see `acp report` for something to show to others.
    """
    found = find_collaboration(folder)
    target = Path(output or f"{Path(found.key).name}.acp.zip")
    try:
        carried = write(found, target, recording=not no_recording)
    except BadArchive as error:
        raise CommandError(str(error)) from None
    say(f"written: {target} ({_describe_carried(carried)})")
    return 0


@click.command("import")
@click.argument("file", type=click.Path())
@click.argument("folder", type=click.Path(), required=False)
def import_(file: str, folder: str | None) -> int:
    """Unpack an archive into FOLDER, which must be new or empty, and take over its recording.

    By default FOLDER is named as the collaboration was. Nothing is unpacked outside of it.
    """
    try:
        carried = unpack(Path(file), Path(folder) if folder is not None else None)
    except BadArchive as error:
        raise CommandError(str(error)) from None
    say(f"unpacked: {carried.folder} ({_describe_carried(carried)})")
    return 0


def _describe_carried(carried: Carried) -> str:
    files = format.count(carried.files, "file")
    if carried.versions is None:
        return f"{files}, no recording"
    return f"{files}, {format.count(carried.versions, 'recorded version')}"
