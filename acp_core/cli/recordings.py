"""``acp recordings``: what was recorded, how much room it takes, and throwing it away."""

from __future__ import annotations

import os
from datetime import UTC, datetime

import click

from acp_core.cli import fields, layout
from acp_core.cli.folders import FOLDER
from acp_core.cli.layout import Cell, Column
from acp_core.cli.output import dump, say, terminal
from acp_core.cli.start import load_settings
from acp_core.history import library
from acp_core.history.library import Bounds, StoredRecording
from acp_core.model import format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError

SCHEMA = "acp.recordings/1"
COLUMNS = (
    Column("collaboration", least=10),
    Column("size", right=True),
    Column("written", drop=1),
    Column("folder", least=12, drop=2),
)


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (acp.recordings/1).")
@click.option(
    "--prune", is_flag=True, help="Throw away what is older or more than the settings say."
)
@click.option(
    "--forget", type=FOLDER, metavar="FOLDER", help="Throw away what was recorded of FOLDER."
)
def recordings(as_json: bool, prune: bool, forget: str | None) -> int:
    """List what was recorded: of which collaborations, until when, how large.

    Recordings are bounded by `[recording] days` and `megabytes` in config.toml; `on = false`
    there turns them off. What is thrown away cannot be had back.
    """
    if forget is not None:
        return _forget(forget)
    if prune:
        gone = library.prune(Bounds.of(load_settings().recording))
        say(f"{format.count(len(gone), 'recording')} thrown away")
        return 0
    found = library.recordings()
    if as_json:
        say(dump(_as_fields(found)))
        return 0
    if found:
        for line in layout.table(COLUMNS, [_row(each) for each in found], terminal()):
            say(line)
    else:
        say("Nothing is recorded yet. The dashboard, `acp watch` and `acp record` do so.")
    return 0


def _forget(folder: str) -> int:
    place = library.path(os.path.abspath(folder))
    if not place.exists():
        raise CommandError(f"nothing is recorded of {folder}")
    try:
        library.forget(place)
    except OSError as error:
        raise CommandError(f"{place}: {error.strerror or error}") from None
    say(f"what was recorded of {folder} is thrown away")
    return 0


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
