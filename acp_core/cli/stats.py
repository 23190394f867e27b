"""``acp stats`` and ``acp chart``: where the time of collaborations went, what else can be counted, and who
did what when, drawn on the terminal or as SVG.

The figures as JSON are the same here and in a report.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby

from acp_core.cli import fields
from acp_core.cli import output as cli_output
from acp_core.cli.output import Cell, Column, Terminal, dump, fit, say, terminal
from acp_core.cli.replay import chain_of, past_of
from acp_core.cli.start import load_settings, open_one
from acp_core.diagnosis.observer import Observer
from acp_core.files import atomic
from acp_core.files.journal import without_collector
from acp_core.history import chart as charts
from acp_core.history import metrics
from acp_core.history.chart import Chart, chart_lines, svg
from acp_core.history.metrics import (
    NOT_RECORDED,
    Change,
    Measured,
    Metrics,
    Point,
    Span,
    measured,
    total_metrics,
)
from acp_core.model import format
from acp_core.model.clock import utc_now
from acp_core.model.errors import CommandError
from acp_core.person import journal
from acp_core.person.settings import Working
from acp_core.protocols.kit.values import Values
from acp_core.protocols.locations import is_link


def figures(each: Metrics, findings: Sequence[Point], counts: Sequence[Change]) -> fields.Fields:
    """A collaboration's figures as JSON; null: not recorded."""
    return {
        "name": each.name,
        "status": each.status,
        "lead": _span(each.lead),
        "phases": [
            {
                "phase": phase.phase,
                "total": _span(phase.total),
                "rounds": [{"round": n, "time": _span(span)} for n, span in phase.rounds],
            }
            for phase in each.phases
        ],
        "participants": [
            {
                "participant": person.participant,
                "turns": person.turns,
                "waited_for_now": person.waiting,
                "median_seconds": person.median,
                "longest_seconds": person.longest,
                "waited_for": _span(person.total),
                "parked": _span(person.parked),
                "critical": _span(person.critical),
                "critical_share": person.share,
            }
            for person in each.people
        ],
        **fields.picked(each, "events rounds reviews"),
        "counts": [count._asdict() for count in each.counts],
        "findings": {"errors": each.errors, "warnings": each.warnings},
        "findings_over_time": [fields.picked(point, "at errors warnings") for point in findings],
        "counts_over_time": [
            {"at": fields.time(change.at), "what": change.what, "count": change.new}
            for change in counts
        ],
        **fields.picked(each, "human_acts retries"),
        "tokens": {"in": each.tokens[0], "out": each.tokens[1]} if each.tokens else None,
        **fields.picked(each, "cost estimated"),
        **({"cost_unknown": list(each.unpriced)} if each.unpriced else {}),
        **({"uncertain": each.doubt} if each.doubt else {}),
    }


def _span(span: Span | None) -> fields.Fields | None:
    return None if span is None else {"seconds": span.seconds, "working_seconds": span.working}


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
    for figure in metrics.side_by_side(found):
        title = "  " * figure.depth + figure.title
        if figure.heading:
            rows.append((Cell(title, "head"), *(Cell("") for _ in found)))
            continue
        style = "head" if figure.title == "lead time" else ""
        cells = [Cell(text, "dim" if text == NOT_RECORDED else style) for text in figure.values]
        rows.append((Cell(title), *cells))
    columns = [Column("", least=20), *(Column(each.name, least=12) for each in found)]
    yield from cli_output.table(columns, rows, shown_on)


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


_WIDTH = 100  # columns where the output has none of its own
_STYLES = {
    "phase": "live",
    "turn": "good",
    "open": "need",
    "arrow": "dim",
    "level": "",
    "bad": "error",
}


def chart(given: Values) -> int:
    """Draw here, or into a file.

    Raises:
        CommandError: there is nothing to draw, or the file cannot be written.
    """
    folder, chain, output = given.folder, given.chain, given.output
    settings = load_settings()
    utc, working, now = given.utc or settings.utc, Working.of(settings.working), utc_now()
    found = [measure(each, working, now) for each in (chain_of(folder) if chain else [folder])]
    drawn = [(each.snapshot.name, each.drawn) for each in found if each.drawn is not None]
    whole = charts.joined(drawn) if chain else next((each for _, each in drawn), None)
    if whole is None:
        raise CommandError(f"{folder}: nothing to draw: no times are recorded")
    if not output:
        for line in _painted(whole, terminal(), utc):
            say(line)
        return 0
    try:
        atomic.replace(output, (svg(whole, utc=utc) + "\n").encode(errors="replace"))
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror or error}") from None
    say(f"written: {output}")
    return 0


def _painted(drawn: Chart, shown_on: Terminal, utc: bool) -> Iterator[str]:
    for row in chart_lines(drawn, shown_on.width or _WIDTH, utc=utc, fit=fit):
        text = "".join(shown_on.paint(text, _STYLES.get(style, style)) for text, style in row)
        yield text if shown_on.colour else text.rstrip()
