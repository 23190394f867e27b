"""A report as Markdown, for a pull request or an issue: outcome first, figures last."""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.history import wording
from acp_core.history.metrics import NOT_RECORDED, Metrics
from acp_core.history.reports.rendered import LONGEST, fenced, plain, to_markdown
from acp_core.history.reports.report import Report, Text, cells
from acp_core.model import Panel, format

MOST = 200  # events that are listed; of more, the first and the last half


def render(report: Report, *, utc: bool = True) -> str:
    """The text.

    Args:
        report: what to tell.
        utc: Show times in UTC rather than in local time.
    """
    return "\n".join(_lines(report, utc)) + "\n"


def _lines(report: Report, utc: bool) -> Iterator[str]:
    snapshot = report.snapshot
    yield f"# {plain(snapshot.name)}"
    yield ""
    if snapshot.objective:
        yield f"**Objective:** {plain(snapshot.objective)}"
        yield ""
    yield "## Outcome"
    yield ""
    for sentence in report.status_sentences:
        yield plain(sentence)
        yield ""
    for part in report.outcome:
        if isinstance(part, Panel) or not part.has_title:
            yield f"### {plain(part.title)}"
            yield ""
        yield from _panel(part) if isinstance(part, Panel) else _document(part)
        yield ""
    yield "## What happened"
    yield ""
    yield from _events(report, utc)
    yield ""
    for panel in report.panels:
        yield f"## {plain(panel.title)}"
        yield ""
        yield from _panel(panel)
        yield ""
    for text in report.other_texts:
        yield f"<details><summary>{plain(text.title)} ({plain(text.document)})</summary>"
        yield ""
        yield from _document(text)
        yield ""
        yield "</details>"
        yield ""
    yield from _figures(report.metrics)
    if snapshot.findings:
        yield "## Findings"
        yield ""
        for finding in snapshot.findings:
            yield f"- {finding.severity.value} {finding.code}: {plain(finding.message)}"
        yield ""
    for sentence in report.known:
        yield f"_{plain(sentence)}_"
    yield f"_Made by acp, {plain(format.exact(report.made, utc))}._"


def _panel(panel: Panel) -> Iterator[str]:
    columns = panel.columns or ("",) * max(len(row.cells) for row in panel.rows)
    yield f"| {' | '.join(map(plain, columns))} |"
    yield "|---" * len(columns) + "|"
    for row in panel.rows:
        filled = (*cells(row), *("" for _ in columns[len(row.cells) :]))
        yield f"| {' | '.join(map(plain, filled))} |"


def _document(text: Text) -> Iterator[str]:
    if text.kind == "markdown" and len(text.text) <= LONGEST:
        yield from to_markdown(text.text)
    else:
        yield from fenced(text.text, "json" if text.kind == "json" else "text")


def _figures(metrics: Metrics) -> Iterator[str]:
    yield "## Figures"
    yield ""
    yield "| | |"
    yield "|---|---|"
    for title, value in wording.summary(metrics):
        yield f"| {plain(title)} | {plain(value)} |"
    yield ""
    yield "| phase | time |"
    yield "|---|---|"
    for phase in metrics.phases:
        yield f"| {plain(phase.label)} | {plain(wording.span(phase.total))} |"
    yield ""
    yield f"| {' | '.join(wording.PEOPLE)} |"
    yield "|---" * len(wording.PEOPLE) + "|"
    for row in wording.people(metrics):
        yield f"| {' | '.join(map(plain, row))} |"
    yield ""


def _events(report: Report, utc: bool) -> Iterator[str]:
    events = list(report.snapshot.events)
    left_out = max(0, len(events) - MOST)
    listed = events if not left_out else [*events[: MOST // 2], *events[-MOST // 2 :]]
    for place, event in enumerate(listed):
        if left_out and place == MOST // 2:
            yield f"- … {left_out} more"
        at = plain(format.exact(event.at, utc)) if event.at else NOT_RECORDED
        reply = f", replies to {plain(event.reply_to)}" if event.reply_to else ""
        summary = f": {plain(event.summary)}" if event.summary else ""
        who = f"**{plain(event.actor)}** " if event.actor else ""
        yield f"- {at}, {plain(event.id)}, {who}{plain(event.kind)}{reply}{summary}"
