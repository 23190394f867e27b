"""A report as Markdown, for a pull request or an issue."""

from __future__ import annotations

import re
from collections.abc import Iterator

from acp_core.history import wording
from acp_core.history.metrics import NOT_RECORDED
from acp_core.history.reports.report import Report
from acp_core.model import format

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
    for title, value in wording.summary(metrics):
        yield f"| {_text(title)} | {_text(value)} |"
    yield ""
    yield "## Where the time went"
    yield ""
    yield "| phase | time |"
    yield "|---|---|"
    for phase in metrics.phases:
        yield f"| {_text(phase.label)} | {_text(wording.span(phase.total))} |"
    yield ""
    yield f"| {' | '.join(wording.PEOPLE)} |"
    yield "|---" * len(wording.PEOPLE) + "|"
    for cells in wording.people(metrics):
        yield f"| {' | '.join(map(_text, cells))} |"
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
    listed = events if not left_out else [*events[: MOST // 2], *events[-MOST // 2 :]]
    for place, event in enumerate(listed):
        if left_out and place == MOST // 2:
            yield f"- … {left_out} more"
        at = _text(format.exact(event.at, utc)) if event.at else NOT_RECORDED
        reply = f", replies to {_text(event.reply_to)}" if event.reply_to else ""
        summary = f": {_text(event.summary)}" if event.summary else ""
        who = f"**{_text(event.actor)}** " if event.actor else ""
        yield f"- {at}, {_text(event.id)}, {who}{_text(event.kind)}{reply}{summary}"


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
