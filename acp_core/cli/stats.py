"""``acp stats``: where the time of collaborations went, and what else can be counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

import click

from acp_core import format, human_journal
from acp_core.cli import fields, layout
from acp_core.cli.folders import FOLDER
from acp_core.cli.layout import Cell, Column
from acp_core.cli.opening import open_one
from acp_core.cli.output import Terminal, dump, say, terminal
from acp_core.cli.start import load_settings
from acp_core.clock import utc_now
from acp_core.diagnosis.observer import Observer
from acp_core.fleet import Fleet
from acp_core.history import library
from acp_core.history.metrics import NOT_RECORDED, Metrics, Span, measure
from acp_core.history.over_time import Point, findings_over_time
from acp_core.history.store import BadRecording
from acp_core.history.working import Working
from acp_core.story import Count, Story

SCHEMA = "acp.stats/1"


@click.command()
@click.argument("folders", nargs=-1, required=True, type=FOLDER, metavar="FOLDER...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object (acp.stats/1).")
def stats(folders: tuple[str, ...], as_json: bool) -> int:
    """Print where the time went in each FOLDER; several stand side by side.

    Spans are given whole, and in working time (`[working] hours` and `days` in config.toml).
    What nothing tells of is "not recorded".
    """
    settings = load_settings()
    working = Working.of(settings.working)
    now = utc_now()
    found = [measured(folder, working, now) for folder in folders]
    if as_json:
        told = [as_fields(each.metrics, each.points) for each in found]
        say(dump({"schema": SCHEMA, "at": fields.time(now), "collaborations": told}))
        return 0
    for line in render([each.metrics for each in found], terminal()):
        say(line)
    if len(found) == 1 and found[0].points:
        say()
        for line in _over_time(found[0].points, settings.utc):
            say(line)
    return 0


class Measured(NamedTuple):
    """A collaboration's figures, and what they were worked out of."""

    fleet: Fleet
    key: str
    story: Story
    metrics: Metrics
    points: tuple[Point, ...]


def measured(folder: str, working: Working, now: datetime) -> Measured:
    """Read a collaboration and work out its figures.

    Raises:
        CommandError: there is none in this folder.
    """
    fleet, snapshot = open_one(folder)
    story = fleet.call_sync(snapshot.key, lambda collaboration: collaboration.story())
    loops = Observer().loops(snapshot.key)
    acts = human_journal.read(snapshot.key)
    points: tuple[Point, ...] = ()
    try:
        store = library.find(snapshot.key)
        if store is not None:
            points = findings_over_time(store.looks())
            store.close()
    except BadRecording:
        pass  # then findings over time are not known, which is said
    metrics = measure(snapshot, story, loops, acts, now, working)
    return Measured(fleet, snapshot.key, story, metrics, points)


def render(found: Sequence[Metrics], shown_on: Terminal) -> Iterator[str]:
    """A table: a row for each figure, a column for each collaboration."""
    rows: list[tuple[Cell, ...]] = []

    def row(title: str, values: Sequence[str], style: str = "") -> None:
        cells = [Cell(text, "dim" if text == NOT_RECORDED else style) for text in values]
        rows.append((Cell(title), *cells))

    def heading(title: str) -> None:
        rows.append((Cell(title, "head"), *(Cell("") for _ in found)))

    row("status", [each.status for each in found])
    row("lead time", [_said(each.lead) for each in found], "head")
    heading("phases")
    for name, label in _union((p.phase, p.label) for each in found for p in each.phases):
        phases = [next((p for p in each.phases if p.phase == name), None) for each in found]
        row(f"  {label}", [_said(p.total) if p else "-" for p in phases])
        rounds = sorted({n for p in phases if p for n, _ in p.rounds})
        for number in rounds if any(p and len(p.rounds) > 1 for p in phases) else ():
            spans = [dict(p.rounds).get(number) if p else None for p in phases]
            known = [p is not None and number in dict(p.rounds) for p in phases]
            texts = [_said(s) if k else "-" for s, k in zip(spans, known, strict=True)]
            row(f"    round {number}", texts)
    heading("participants")
    for name, _ in _union((p.participant, "") for each in found for p in each.people):
        people = [next((p for p in each.people if p.participant == name), None) for each in found]
        row(f"  {name}", [_turns(p.turns, p.waiting) if p else "-" for p in people])
        row("    turn, median / longest",
            [f"{_seconds(p.median)} / {_seconds(p.longest)}" if p and p.turns else "-"
             for p in people])  # fmt: skip
        row("    waited for", [_said(p.total) if p else "-" for p in people])
        row("    parked", [_said(p.parked) if p else "-" for p in people])
        row("    only it was waited for", [_critical(p.critical, p.share) if p else "-"
                                           for p in people])  # fmt: skip
    heading("counts")
    row("  events", [str(each.events) for each in found])
    row("  review rounds", [_number(each.rounds) for each in found])
    row("  reviews", [str(each.reviews) for each in found])
    for what in dict.fromkeys(count.what for each in found for count in each.counts):
        row(f"  {what}", [_total(each.counts, what) for each in found])
    row("  findings now", [f"{each.errors} errors, {each.warnings} warnings" for each in found])
    row("  your acts", [str(each.human_acts) for each in found])
    row("  retries of programs", [_number(each.retries) for each in found])
    row("  tokens in / out",
        [f"{each.tokens[0]:,} / {each.tokens[1]:,}" if each.tokens else NOT_RECORDED
         for each in found])  # fmt: skip
    row("  cost", [f"{'~' if each.estimated else ''}${each.cost:.2f}"
                   if each.cost is not None else NOT_RECORDED for each in found])  # fmt: skip
    columns = [Column("", least=20), *(Column(each.name, least=12) for each in found)]
    yield from layout.table(columns, rows, shown_on)


def _union(pairs: Iterator[tuple[str, str]]) -> list[tuple[str, str]]:
    """Each once, in the order in which they first come."""
    return list(dict(pairs).items())


def _said(span: Span | None) -> str:
    if span is None:
        return NOT_RECORDED
    whole = format.long_span(span.seconds)
    if abs(span.working - span.seconds) < 1:
        return whole
    return f"{whole} ({format.long_span(span.working)} of it working time)"


def _seconds(seconds: float | None) -> str:
    return NOT_RECORDED if seconds is None else format.long_span(seconds)


def _turns(count: int, waiting: bool) -> str:
    return format.count(count, "turn") + (", waited for now" if waiting else "")


def _critical(span: Span | None, share: float | None) -> str:
    if span is None or share is None:
        return NOT_RECORDED
    return f"{format.long_span(span.seconds)}, {share:.0%} of the lead time"


def _number(number: int | None) -> str:
    return NOT_RECORDED if number is None else str(number)


def _total(counts: Sequence[Count], what: str) -> str:
    """The sum, and of several reviews each in its order."""
    values = [count.value for count in counts if count.what == what]
    if not values:
        return "-"
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        missing = f"{len(values) - len(known)} {NOT_RECORDED}"
        return f"{sum(known)}, {missing}" if known else NOT_RECORDED
    return str(sum(known)) + (f" ({' + '.join(map(str, known))})" if len(known) > 1 else "")


def _over_time(points: Sequence[Point], utc: bool) -> Iterator[str]:
    yield "findings over time (recorded)"
    for point in points:
        at = format.exact(point.at, utc)
        yield f"  {at}  {point.errors} errors, {point.warnings} warnings"


def as_fields(each: Metrics, points: Sequence[Point]) -> fields.Fields:
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
                "waitedForNow": person.waiting,
                "medianSeconds": person.median,
                "longestSeconds": person.longest,
                "waitedFor": _span(person.total),
                "parked": _span(person.parked),
                "critical": _span(person.critical),
                "criticalShare": person.share,
            }
            for person in each.people
        ],
        "events": each.events,
        "rounds": each.rounds,
        "reviews": each.reviews,
        "counts": [count._asdict() for count in each.counts],
        "findings": {"errors": each.errors, "warnings": each.warnings},
        "findingsOverTime": [
            {"at": fields.time(point.at), "errors": point.errors, "warnings": point.warnings}
            for point in points
        ],
        "humanActs": each.human_acts,
        "retries": each.retries,
        "tokens": {"in": each.tokens[0], "out": each.tokens[1]} if each.tokens else None,
        "cost": each.cost,
        "estimated": each.estimated,
    }


def _span(span: Span | None) -> fields.Fields | None:
    return None if span is None else {"seconds": span.seconds, "workingSeconds": span.working}
