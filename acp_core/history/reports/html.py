"""A report as one HTML file, which needs nothing else: for those who have a browser and no acp.

It loads nothing, and its Content-Security-Policy lets no script run but its own. Whatever was
written by others is escaped text, and documents are rendered without links; the style and the script
hold nothing of what is told. Without JavaScript everything can still be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from itertools import accumulate
from typing import NamedTuple

from acp_core.history import chart, metrics
from acp_core.history.chart import across, svg
from acp_core.history.metrics import NOT_RECORDED
from acp_core.history.reports.markdown import LONGEST, to_html
from acp_core.history.reports.report import Report, cells
from acp_core.model import Event, Panel, Phase, Status, format
from acp_core.model.past import PastTurn

STYLE = """
:root { color-scheme: light dark; --back: #fff; --text: #1c1c1c; --dim: #595959; --line: #d4d4d4;
  --panel: #f4f5f7; --mark: #fff0c2; --accent: #a33; }
@media screen and (prefers-color-scheme: dark) {
  :root { --back: #16181c; --text: #ececec; --dim: #a8a8a8; --line: #43464d;
    --panel: #202329; --mark: #4a3d12; --accent: #ff8a80; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; background: var(--back);
  color: var(--text); font: 16px/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; margin: .2rem 0; }
h2 { font-size: 1.35rem; margin: 2rem 0 .5rem; }
h3 { font-size: 1.1rem; margin: 1.4rem 0 .4rem; }
h4, h5, h6 { font-size: 1rem; margin: 1rem 0 .3rem; }
blockquote { border-left: 3px solid var(--line); margin: .4rem 0; padding-left: .8rem; }
code { font: 14px/1.4 ui-monospace, monospace; }
.document, .held { border-left: 3px solid var(--line); padding-left: 1rem; }
.document table, .held table, details table { width: auto; }
.dim { color: var(--dim); }
.wide { overflow-x: auto; }
.wide + .wide { margin-top: 1.2rem; }
table.figures { width: auto; }
.wide svg { display: block; min-width: 44rem; }
svg.gantt line.cursor { stroke: var(--accent); stroke-width: 2; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .6rem .25rem 0; text-align: left;
  vertical-align: top; }
.wide th, .wide td { white-space: nowrap; }
.events th, .events td:nth-child(-n+3) { overflow-wrap: break-word; }
tr.current td { background: var(--mark); }
pre { background: var(--panel); padding: .7rem; margin: .4rem 0; white-space: pre-wrap;
  font: 14px/1.4 ui-monospace, monospace; }
summary { cursor: pointer; font-weight: 600; }
#replay { background: var(--panel); padding: .2rem 1rem 1rem; margin-top: 1.8rem; }
#replay h3:first-child { margin-top: .6rem; }
#replay .steer { display: flex; gap: .6rem; align-items: center; }
#replay input { flex: 1; min-width: 0; height: 2.75rem; }
#replay button { font: inherit; min-width: 2.75rem; min-height: 2.75rem; }
#replay label { display: block; margin-top: .6rem; }
#replay select { font: inherit; max-width: 100%; min-height: 2.75rem; }
#replay pre { background: var(--panel); }
#replay .held { background: var(--back); max-height: 24rem; overflow-y: auto; }
#replay dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: 0; }
#replay dt { color: var(--dim); }
#replay dd { margin: 0; min-width: 0; }
@media screen and (max-width: 40rem) {
  .events thead { display: none; }
  .events tr { display: block; border-bottom: 1px solid var(--line); padding: .4rem 0; }
  .events td { display: inline; border: 0; padding: 0 .4rem 0 0; }
  .events td:last-child { display: block; }
}
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  :root { color-scheme: light; }
  #replay, svg.gantt line.cursor { display: none; }
  tr.current td { background: none; }
  .wide { overflow: visible; }
  .wide th, .wide td { white-space: normal; }
  .wide svg { min-width: 0; }
  h2, h3 { break-after: avoid; }
  tr, svg { break-inside: avoid; }
}
"""

# It writes text only (textContent): nothing of the data can become an element.
SCRIPT = """
"use strict";
(function () {
  var data = JSON.parse(document.getElementById("data").textContent);
  var events = data.events;
  var box = document.getElementById("replay");
  function part(name) { return document.getElementById("replay-" + name); }
  var place = part("place"), before = part("before"), after = part("after");
  var cursor = document.querySelector("svg.gantt line.cursor");
  var marked = null;
  var choice = part("document"), shown = null;
  function held(number) {
    var chosen = data.documents[choice.selectedIndex];
    if (!chosen) { return; }
    var begun = chosen.versions.filter(function (each) { return each.row <= number; });
    var version = begun[begun.length - 1] || { said: "not recorded", id: "" };
    part("version").textContent = version.said;
    if (shown) { shown.hidden = true; }
    shown = document.getElementById(version.id);
    if (shown) { shown.hidden = false; }
  }
  function show() {
    var number = Number(place.value), event = events[number];
    part("count").textContent = (number + 1) + " of " + events.length;
    part("event").textContent = event.id + ", " + event.at;
    part("who").textContent = event.actor + " " + event.kind;
    part("said").textContent = event.summary;
    part("phase").textContent = event.phase;
    part("waited").textContent = event.waited.join(", ") || "none";
    place.setAttribute("aria-valuetext", event.id + ", " + event.actor + " " + event.kind);
    held(number);
    before.disabled = number === 0;
    after.disabled = number === events.length - 1;
    if (marked) { marked.classList.remove("current"); }
    marked = document.getElementById("event-" + number);
    if (marked) { marked.classList.add("current"); }
    if (cursor && event.x !== null) {
      cursor.setAttribute("x1", event.x);
      cursor.setAttribute("x2", event.x);
      cursor.removeAttribute("display");
    } else if (cursor) {
      cursor.setAttribute("display", "none");
    }
  }
  function step(by) {
    place.value = String(Number(place.value) + by);
    show();
  }
  if (events.length) {
    place.max = String(events.length - 1);
    place.value = place.max;
    place.addEventListener("input", show);
    before.addEventListener("click", function () { step(-1); });
    after.addEventListener("click", function () { step(1); });
    data.documents.forEach(function (each) {
      var option = document.createElement("option");
      option.textContent = each.title;
      choice.appendChild(option);
    });
    part("held").hidden = !data.documents.length;
    choice.addEventListener("change", show);
    box.hidden = false;
    show();
  }
  document.documentElement.dataset.ready = "yes";
}());
"""
MOST = 4_000  # events that are listed; of more, the first and the last half
_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'; "
    "base-uri 'none'; form-action 'none'"
)
_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def render(report: Report, *, utc: bool = True) -> str:
    """The whole file.

    Args:
        report: what to tell.
        utc: Show times in UTC rather than in local time.
    """
    return "\n".join(_lines(report, utc)) + "\n"


def _lines(report: Report, utc: bool) -> Iterator[str]:
    snapshot = report.snapshot
    drawn = report.drawn
    yield "<!DOCTYPE html>"
    yield '<html lang="en"><head><meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{escape(snapshot.name)}</title>"
    yield f"<style>{STYLE}</style></head><body>"
    yield f"<header><h1>{escape(snapshot.name)}</h1>"
    if snapshot.objective:
        yield f"<p><strong>Objective:</strong> {escape(snapshot.objective)}</p>"
    yield "</header><main>"
    yield from _outcome(report)
    yield "<h2>What happened</h2>"
    yield from _chart(drawn, utc)
    listed, left_out = _select_events(snapshot.events)
    held = _held(report, listed, utc)
    yield from _replay(held)
    yield from _events(report, listed, left_out, utc)
    for panel in report.panels:
        yield f"<h2>{escape(panel.title)}</h2>"
        yield from _table(panel.title, panel.columns, [row.cells for row in panel.rows])
    if report.other_texts:
        yield "<h2>Documents</h2>"
    for text in report.other_texts:
        yield f"<details open><summary>{escape(text.title)} ({escape(text.document)})</summary>"
        yield f"{_rendered(text.kind, text.text)}</details>"
    yield from _figures(report)
    if snapshot.findings:
        yield "<h2>Findings</h2><ul>"
        for finding in snapshot.findings:
            said = f"{finding.severity.value} {finding.code}: {finding.message}"
            yield f"<li>{escape(said)}</li>"
        yield "</ul>"
    yield "</main><footer>"
    for sentence in report.known:
        yield f'<p class="dim">{escape(sentence)}</p>'
    yield f'<p class="dim">Made by acp, {escape(format.exact(report.made, utc))}.</p></footer>'
    yield f'<script type="application/json" id="data">{_data(report, listed, held, utc)}</script>'
    yield f"<script>{SCRIPT}</script></body></html>"


_REPLAY = """<section id="replay" hidden aria-labelledby="replay-title">
<h3 id="replay-title">Replay</h3>
<div class="steer">
<button type="button" id="replay-before" aria-label="Previous event">&#9664;</button>
<input type="range" id="replay-place" min="0" max="0" value="0" step="1" aria-label="Event">
<button type="button" id="replay-after" aria-label="Next event">&#9654;</button>
</div>
<dl aria-live="polite">
<dt>Event</dt><dd><span id="replay-event"></span> <span class="dim" id="replay-count"></span></dd>
<dt>What</dt><dd id="replay-who"></dd>
<dt>Summary</dt><dd id="replay-said"></dd>
<dt>Phase by then</dt><dd id="replay-phase"></dd>
<dt>Waiting for</dt><dd id="replay-waited"></dd>
</dl>
<div id="replay-held" hidden>
<label>Document by then <select id="replay-document"></select></label>
<p class="dim" id="replay-version" aria-live="polite"></p>
"""


class _HeldVersion(NamedTuple):
    """What a document held from a row of the events on; ``id`` names the element that shows it."""

    row: int
    said: str
    id: str
    text: str | None


class _HeldDocument(NamedTuple):
    """A document of the replay, with its versions."""

    title: str
    kind: str
    versions: tuple[_HeldVersion, ...]


def _replay(held: Sequence[_HeldDocument]) -> Iterator[str]:
    """The replay: its script shows one of the versions, which all stand there, rendered."""
    yield _REPLAY
    for document in held:
        for version in document.versions:
            if version.text is not None:
                text = _rendered(document.kind, version.text)
                yield f'<div class="held" id="{version.id}" tabindex="0" hidden>{text}</div>'
    yield "</div></section>"


def _outcome(report: Report) -> Iterator[str]:
    yield "<h2>Outcome</h2>"
    for sentence in report.status_sentences:
        yield f"<p>{escape(sentence)}</p>"
    for part in report.outcome:
        if isinstance(part, Panel) or not part.has_title:
            yield f"<h3>{escape(part.title)}</h3>"
        if isinstance(part, Panel):
            yield from _table(part.title, part.columns, [cells(row) for row in part.rows])
        else:
            yield f'<div class="document">{_rendered(part.kind, part.text)}</div>'


def _rendered(kind: str, text: str) -> str:
    """A document as HTML: Markdown rendered, other text as it is."""
    if kind == "markdown" and len(text) <= LONGEST:
        return to_html(text)
    return f"<pre>\n{escape(text)}</pre>"


def _chart(drawn: chart.Chart | None, utc: bool) -> Iterator[str]:
    yield "<h3>Who did what when</h3>"
    if drawn is None:
        yield f'<p class="dim">{NOT_RECORDED}</p>'
        return
    label = 'class="wide" tabindex="0" role="region" aria-label="Phases and turns"'
    yield f"<div {label}>{svg(drawn, utc=utc)}</div>"
    if drawn.doubt:
        yield f'<p class="dim">Uncertain: {escape(drawn.doubt)}.</p>'
    if drawn.omitted:
        yield f'<p class="dim">{drawn.omitted} not drawn: no recorded time.</p>'
    if drawn.merged:
        yield f'<p class="dim">{drawn.merged} merged with neighbors: too close to draw.</p>'


def _figures(report: Report) -> Iterator[str]:
    yield '<h2>Figures</h2><table class="figures"><tbody>'
    for name, value in metrics.summary_figures(report.metrics):
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</tbody></table>"
    yield "<h3>Time in phases and of participants</h3>"
    phases = [(phase.label, metrics.describe_span(phase.total)) for phase in report.metrics.phases]
    yield from _table("Time in phases", ("phase", "time"), phases)
    rows = metrics.people_figures(report.metrics)
    yield from _table("Time of participants", metrics.PEOPLE, rows)


def _table(name: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f'<div class="wide" tabindex="0" role="region" aria-label="{escape(name)}"><table>'
    heads = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    yield f"<thead><tr>{heads}</tr></thead><tbody>"
    for row in rows:
        yield f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>"
    yield "</tbody></table></div>"


def _select_events(events: Sequence[Event]) -> tuple[list[int], int]:
    """The places of the events that are listed, and how many are left out in the middle."""
    count, half = len(events), MOST // 2
    if count <= MOST:
        return list(range(count)), 0
    return [*range(half), *range(count - half, count)], count - MOST


def _events(report: Report, listed: Sequence[int], left_out: int, utc: bool) -> Iterator[str]:
    events = report.snapshot.events
    yield '<h3>Events</h3><table class="events"><thead><tr>'
    yield "".join(
        f'<th scope="col">{name}</th>' for name in ("event", "time", "who", "what", "summary")
    )
    yield "</tr></thead><tbody>"
    for row, place in enumerate(listed):
        if left_out and row == MOST // 2:
            yield f'<tr><td colspan="5" class="dim">… {left_out} more</td></tr>'
        event = events[place]
        reply = f", replies to {event.reply_to}" if event.reply_to else ""
        cells = (event.id, _at(event.at, utc), event.actor, event.kind + reply, event.summary)
        said = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        yield f'<tr id="event-{row}">{said}</tr>'
    yield "</tbody></table>"


def _data(report: Report, listed: Sequence[int], held: Sequence[_HeldDocument], utc: bool) -> str:
    """What the script steps through, as JSON that cannot end its element."""
    snapshot = report.snapshot
    waiting = waited(snapshot.events, report.turns)
    if waiting and snapshot.status in (Status.COMPLETED, Status.BLOCKED):
        waiting[-1] = []  # it is over
    entries = []
    for place in listed:
        event = snapshot.events[place]
        x, drawn = None, report.drawn
        if drawn is not None and event.at is not None:
            x = round(across(drawn, event.at), 1)
        entries.append(
            {
                "id": event.id,
                "at": _at(event.at, utc),
                "actor": event.actor,
                "kind": event.kind,
                "summary": event.summary,
                "phase": phase_by(snapshot.phases, event.at) or NOT_RECORDED,
                "waited": waiting[place],
                "x": x,
            }
        )
    documents = [
        {
            "title": each.title,
            "versions": [{"row": v.row, "said": v.said, "id": v.id} for v in each.versions],
        }
        for each in held
    ]
    data = {"events": entries, "documents": documents}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for sign, escaped in _UNSAFE.items():
        text = text.replace(sign, escaped)
    return text


def _held(report: Report, listed: Sequence[int], utc: bool) -> list[_HeldDocument]:
    """What documents held: each with its versions, by the row from which on they hold."""
    places = {event.id: place for place, event in enumerate(report.snapshot.events)}
    found: list[_HeldDocument] = []
    for number, text in enumerate(report.texts):
        versions: list[_HeldVersion] = []
        for version in report.versions:
            if version.document != text.document or version.event not in places:
                continue
            since = f"{_at(version.since, utc)}, {version.source}" if version.since else ""
            row = bisect_left(listed, places[version.event])
            said = ": ".join(filter(None, (since, version.note)))
            id = f"held-{number}-{len(versions)}" if version.text is not None else ""
            versions.append(_HeldVersion(row, said, id, version.text))
        if any(each.text is not None for each in versions):
            title = f"{text.title} ({text.document})"
            found.append(_HeldDocument(title, text.kind, tuple(versions)))
    return found


def phase_by(phases: Sequence[Phase], at: datetime | None) -> str:
    """The label of the phase that had begun last by a time; "" where that is not recorded."""
    if at is None:
        return ""
    begun = [
        (visit.entered, number, phase.label)
        for number, phase in enumerate(phases)
        for visit in phase.visits
        if visit.entered is not None and visit.entered <= at
    ]
    return max(begun)[2] if begun else ""


def waited(events: Sequence[Event], turns: Sequence[PastTurn]) -> list[list[str]]:
    """For each event: who was waited for right after it, as far as it is recorded."""
    places = {event.id: place for place, event in enumerate(events)}
    times = list(accumulate((event.at.timestamp() if event.at else 0.0 for event in events), max))

    def place_of(event: str | None, at: datetime | None, unknown: int) -> int:
        if event in places:
            return places[event]
        return unknown if at is None else bisect_left(times, at.timestamp())

    changes: list[list[tuple[str, int]]] = [[] for _ in events]
    for turn in turns:
        first = place_of(turn.since_event, turn.since, len(events))
        last = place_of(turn.event, turn.ended, len(events))
        if first < last:
            changes[first].append((turn.participant, 1))
            if last < len(events):
                changes[last].append((turn.participant, -1))
    found: list[list[str]] = []
    open_turns: dict[str, int] = {}
    for each in changes:
        for name, by in each:
            open_turns[name] = open_turns.get(name, 0) + by
        found.append([name for name, number in open_turns.items() if number > 0])
    return found


def _at(at: datetime | None, utc: bool) -> str:
    return format.exact(at, utc) if at else NOT_RECORDED
