"""``acp stats``: where the time of collaborations went, and what else can be counted."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from acp_core.cli import fields, layout
from acp_core.cli.figures import figures
from acp_core.cli.layout import Cell, Column
from acp_core.cli.opening import open_one
from acp_core.cli.output import Terminal, dump, say, terminal
from acp_core.cli.past import chain_of, past_of
from acp_core.cli.start import load_settings
from acp_core.diagnosis.observer import Observer
from acp_core.files.journal import without_collector
from acp_core.history import wording
from acp_core.history.measured import Measured, measured
from acp_core.history.metrics import NOT_RECORDED, Metrics, total_metrics
from acp_core.model import format
from acp_core.model.clock import utc_now
from acp_core.person import journal
from acp_core.person.working_hours import Working
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import is_link

SCHEMA = "acp.stats/1"


def stats(given: Values) -> int:
    """Print the figures, or the object."""
    folders = given.folders
    settings = load_settings()
    working = Working.of(settings.working)
    now = utc_now()
    if given.chain:
        folders = [each for folder in folders for each in chain_of(folder)]
    found = [measure(folder, working, now, draws=False) for folder in _once(folders)]
    if given.json:
        told = [figures(each.metrics, each.findings, each.counts) for each in found]
        said: dict[str, object] = {"schema": SCHEMA, "at": fields.time(now), "collaborations": told}
        if given.chain:
            said["total"] = figures(total_metrics([each.metrics for each in found]), (), ())
        say(dump(said))
        return 0
    shown = [each.metrics for each in found]
    if given.chain and len(found) > 1:
        shown.append(total_metrics(shown))
    for line in render(shown, terminal()):
        say(line)
    if len(found) == 1:
        for line in _over_time(found[0], given.utc or settings.utc):
            say(line)
    return 0


def _once(folders: Sequence[str]) -> list[str]:
    """Each collaboration once, however often it is named."""
    return list({os.path.realpath(each) if "://" not in each else each: each
                 for each in reversed(folders)}.values())[::-1]  # fmt: skip


def measure(folder: str, working: Working, now: datetime, *, draws: bool = True) -> Measured:
    """Read a collaboration and work out its figures, and a chart of it where one is wanted.

    Raises:
        CommandError: there is none in this folder.
    """
    snapshot = open_one(folder)[1] if is_link(folder) else None  # what is remote tells it only once
    with without_collector(), past_of(folder, empty=True) as past:
        loops, acts = Observer().loops(past.key), journal.read(past.key)
        return measured(past, loops, acts, now, working, snapshot, draws)


def render(found: Sequence[Metrics], shown_on: Terminal) -> Iterator[str]:
    """A table: a row for each figure, a column for each collaboration."""
    rows: list[tuple[Cell, ...]] = []
    for figure in wording.side_by_side(found):
        title = "  " * figure.depth + figure.title
        if figure.heading:
            rows.append((Cell(title, "head"), *(Cell("") for _ in found)))
            continue
        style = "head" if figure.title == "lead time" else ""
        cells = [Cell(text, "dim" if text == NOT_RECORDED else style) for text in figure.values]
        rows.append((Cell(title), *cells))
    columns = [Column("", least=20), *(Column(each.name, least=12) for each in found)]
    yield from layout.table(columns, rows, shown_on)


def _over_time(each: Measured, utc: bool) -> Iterator[str]:
    if each.findings:
        yield ""
        yield "findings over time (recorded)"
    for point in each.findings:
        at = format.exact(point.at, utc)
        errors, warnings = (
            format.count(point.errors, "error"),
            format.count(point.warnings, "warning"),
        )
        yield f"  {at}  {errors}, {warnings}"
    if each.counts:
        yield ""
        yield "counts over time (from the known versions of the documents)"
    for at, changes in groupby(each.counts, key=lambda change: change.at):
        told = ", ".join(f"{c.what} {_change(c.old, c.new)}" for c in changes)
        yield f"  {format.exact(at, utc)}  {told}"


def _change(old: int | None, new: int | None) -> str:
    return NOT_RECORDED if new is None else f"{'' if old is None else f'{old} → '}{new}"
