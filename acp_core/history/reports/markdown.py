"""A report as Markdown, for a pull request or an issue."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acp_core import format
from acp_core.history.metrics import NOT_RECORDED, Span
from acp_core.history.reports.report import Report

MOST = 200  # events that are listed; of more, the first and the last half
# What Markdown, or what shows it, would take for more than text.
_SPECIAL = re.compile(r"([\\`*_\[\]#|<>~@&])")
_LEADING = re.compile(r"^(\d{0,9})([-+=.)])")  # a list, a rule, a heading's underline


def render(report: Report, *, utc: bool = True) -> str:
    """The text.

    Args:
        report: what to tell.
        utc: Show times in UTC rather than in local time.
    """
    return "\n".join(_lines(report, utc)) + "\n"


def _lines(report: Report, utc: bool) -> Iterator[str]:
    snapshot, metrics = report.snapshot, report.metrics
    yield f"# {_text(snapshot.name)}"
    yield ""
    yield _text(snapshot.headline)
    if snapshot.objective:
        yield ""
        yield f"**Objective:** {_text(snapshot.objective)}"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| status | {snapshot.status.value} |"
    yield f"| lead time | {_span(metrics.lead)} |"
    yield f"| review rounds | {_or(metrics.rounds)} |"
    yield f"| reviews | {metrics.reviews} |"
    for what in dict.fromkeys(count.what for count in metrics.counts):
        values = [count.value for count in metrics.counts if count.what == what]
        known = [value for value in values if value is not None]
        yield f"| {_text(what)} | {sum(known) if len(known) == len(values) else NOT_RECORDED} |"
    yield f"| findings | {metrics.errors} errors, {metrics.warnings} warnings |"
    yield f"| cost | {_cost(report)} |"
    yield ""
    yield "## Where the time went"
    yield ""
    yield "| phase | time |"
    yield "|---|---|"
    for phase in metrics.phases:
        yield f"| {_text(phase.label)} | {_span(phase.total)} |"
    yield ""
    yield "| participant | turns | median | longest | waited for | only it |"
    yield "|---|---|---|---|---|---|"
    for person in metrics.people:
        cells = (
            _text(person.participant), str(person.turns), _seconds(person.median),
            _seconds(person.longest), _span(person.total), _span(person.critical),
        )  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    yield ""
    yield "## What happened"
    yield ""
    yield from _events(report, utc)
    if snapshot.findings:
        yield ""
        yield "## Findings"
        yield ""
        for finding in snapshot.findings:
            yield f"- {finding.severity.value} {finding.code}: {_text(finding.message)}"
    for text in report.texts:
        yield ""
        yield f"<details><summary>{_text(text.title)} ({_text(text.document)})</summary>"
        yield ""
        yield from _fenced(text.text)
        yield ""
        yield "</details>"
    yield ""
    for sentence in report.known:
        yield f"_{_text(sentence)}_"
    yield f"_Made by acp, {_text(format.exact(report.made, utc))}._"


def _events(report: Report, utc: bool) -> Iterator[str]:
    events = list(report.snapshot.events)
    left_out = max(0, len(events) - MOST)
    shown = events if not left_out else [*events[: MOST // 2], *events[-MOST // 2 :]]
    for place, event in enumerate(shown):
        if left_out and place == MOST // 2:
            yield f"- … {left_out} more"
        at = _text(format.exact(event.at, utc)) if event.at else NOT_RECORDED
        reply = f", replies to {_text(event.reply_to)}" if event.reply_to else ""
        said = f": {_text(event.summary)}" if event.summary else ""
        yield f"- {at}, {_text(event.id)}, **{_text(event.actor)}** {_text(event.kind)}{reply}{said}"


def _fenced(text: str) -> Iterator[str]:
    """A text as a block of code, which nothing in it can end."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    yield f"{fence}markdown"
    yield text.rstrip("\n")
    yield fence


def _text(text: str) -> str:
    """A text that stays text, on one line, wherever it stands."""
    safe = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return _LEADING.sub(r"\1\\\2", safe)


def _span(span: Span | None) -> str:
    if span is None:
        return NOT_RECORDED
    whole = format.long_span(span.seconds)
    if abs(span.working - span.seconds) < 1:
        return whole
    return f"{whole} ({format.long_span(span.working)} of it working time)"


def _seconds(seconds: float | None) -> str:
    return NOT_RECORDED if seconds is None else format.long_span(seconds)


def _or(number: int | None) -> str:
    return NOT_RECORDED if number is None else str(number)


def _cost(report: Report) -> str:
    cost = report.metrics.cost
    about = "about " if report.metrics.estimated else ""
    return NOT_RECORDED if cost is None else f"{about}${cost:.2f}"
