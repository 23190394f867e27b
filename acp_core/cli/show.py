"""``acp show``: one collaboration as plain text, what the dashboard's screen of it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from acp_core.cli import fields, output, signs
from acp_core.cli.output import (
    SHORT,
    Cell,
    Column,
    Terminal,
    act_command,
    choice_hint,
    dump,
    say,
    terminal,
)
from acp_core.cli.start import load_settings, open_one
from acp_core.fleet.overview import unread
from acp_core.history.forecast import NOTHING, Outlook
from acp_core.model import (
    Document,
    Event,
    Finding,
    Matter,
    Panel,
    Phase,
    PhaseState,
    Severity,
    Snapshot,
    Source,
    Status,
    Tone,
    format,
    spoken,
)
from acp_core.model.clock import utc_now
from acp_core.model.format import names_in, need_case, sentence_case
from acp_core.person.attention import Attention
from acp_core.protocols.kit.values import Values

IN = "  "
TONE_STYLES = {
    Tone.ACCEPT: "good",
    Tone.PASS: "good",
    Tone.DONE: "good",
    Tone.BLOCKED: "error",
}
SEVERITY_STYLES = {
    Severity.ERROR: "error",
    Severity.WARNING: "warning",
    Severity.ADVICE: "dim",
}
PHASE_STYLES = {PhaseState.CURRENT: "live", PhaseState.DONE: "good"}


@dataclass(frozen=True, slots=True)
class View:
    """How a Snapshot is looked at: when, on what, and what the person knows of it already.

    ``needs`` are those not acknowledged; ``unread`` counts the events since the last
    visit; ``seen`` maps documents to the versions that were looked at (None: never);
    ``events`` bounds the timeline (None: all of it); ``outlook`` is what history says.
    """

    now: datetime
    shown_on: Terminal
    needs: Sequence[Matter] = ()
    unread: int = 0
    seen: Mapping[str, str] | None = None
    events: int | None = None
    utc: bool = False
    outlook: Outlook = NOTHING

    def ago(self, at: datetime | None) -> str:
        """How long ago, or nothing where it is not known."""
        return f"{format.age(at, self.now)} ago" if at else ""

    def paint(self, text: str, style: str) -> str:
        """Colour, where there is any."""
        return self.shown_on.paint(text, style)

    def wrap(self, text: str, first: str = IN, indent: str = "") -> list[str]:
        """A paragraph behind ``first``, its other lines behind blanks (or ``indent``)."""
        indent = indent or " " * output.width(first)
        return output.wrap(text, self.shown_on, indent=indent, first=first)

    def table(self, rows: Sequence[Sequence[Cell]]) -> list[str]:
        """Aligned rows behind an indent, without titles."""
        if not rows:
            return []
        columns = [Column("", 0), *(Column("") for _ in rows[0])]
        return output.table(columns, [[Cell(""), *row] for row in rows], self.shown_on)[1:]


def page(snapshot: Snapshot, view: View) -> list[str]:
    """Every line: the headline, then each section that has something to say."""
    lines = _top(snapshot, view)
    for title, section in (
        ("Needs you", _needs(view, snapshot)),
        ("Notices", _notices(snapshot, view)),
        ("Waiting for", _waiting(snapshot, view)),
        ("Next", _next(snapshot, view)),
        (_timeline_title(snapshot, view), _timeline(snapshot, view)),
        ("Documents", _documents(snapshot, view)),
        ("Gates", _gates(snapshot, view)),
        (_findings_title(snapshot), _findings(snapshot, view)),
        *((panel.title, _panel(panel, view)) for panel in snapshot.panels),
        ("Story", _lineage(snapshot, view)),
    ):
        if section:
            lines += ["", view.paint(title, "head"), *section]
    return lines


def _top(snapshot: Snapshot, view: View) -> list[str]:
    dialect = f" {snapshot.dialect}" if snapshot.dialect else ""
    facts = [
        f"{snapshot.protocol}{dialect}",
        f"{signs.VERDICT[snapshot.verdict]} {snapshot.verdict.value}",
        f"started {format.moment(snapshot.started, view.now, view.utc)}"
        if snapshot.started
        else "",
        f"changed {view.ago(snapshot.changed)}" if snapshot.changed else "",
        snapshot.location,
    ]
    lines = view.wrap(f"{snapshot.name} — {snapshot.headline}", first="")
    if snapshot.objective:
        lines += view.wrap(snapshot.objective, first="Objective: ", indent=IN)
    lines += view.wrap(" · ".join(filter(None, facts)), first="", indent=IN)
    if snapshot.source != Source():
        note = f", {snapshot.source.note}" if snapshot.source.note else ""
        sign = signs.SOURCE[snapshot.source.state]
        lines += view.wrap(f"{sign} {snapshot.source.state.value.capitalize()}{note}", first="")
    if snapshot.doubt:
        lines += view.wrap(f"Uncertain: {snapshot.doubt}", first="? ")
    return lines + _rail(snapshot, view)


def _rail(snapshot: Snapshot, view: View) -> list[str]:
    """The phases in their order, with the time spent in each, wrapped between phases."""
    stations = [(_station(phase, snapshot, view), phase.state) for phase in snapshot.phases]
    if not stations:
        return []
    if spoken.is_wanted():
        return view.wrap(f"Phases: {'; '.join(text for text, _ in stations)}", first="", indent=IN)
    lines = [""]
    used = 0
    for i, (text, state) in enumerate(stations):
        link = " ─ " if i else ""
        cells = output.width(link + text)
        if view.shown_on.width is not None and i and used + cells > view.shown_on.width:
            lines.append(IN)
            used, link, cells = len(IN), "─ ", cells - 1
        lines[-1] += link + view.paint(text, PHASE_STYLES.get(state, "dim"))
        used += cells
    return ["", *lines]


def _station(phase: Phase, snapshot: Snapshot, view: View) -> str:
    over = snapshot.status in (Status.COMPLETED, Status.BLOCKED)
    spent = [
        ((visit.left or view.now) - visit.entered).total_seconds()
        for visit in phase.visits
        if visit.entered and (visit.left or not over)
    ]
    text = f"{spoken.mark(signs.PHASE[phase.state], f'{phase.state.value}:')} {phase.label}"
    if spent:
        text += f" {format.span(sum(spent))}"
    return f"{text} ({len(phase.visits)} rounds)" if len(phase.visits) > 1 else text


def _needs(view: View, snapshot: Snapshot) -> list[str]:
    lines: list[str] = []
    for need in view.needs:
        since = f" ({view.ago(need.since)})" if need.since else ""
        lines += view.wrap(f"{need_case(need, snapshot)}{since}", first=f"{IN}{signs.NEED} ")
        if need.remedy:
            command = act_command(snapshot, need.remedy, need.given, SHORT)
            lines += view.wrap(command, first=f"    {spoken.mark('→', 'command:')} ")
            if hint := choice_hint(snapshot, need.remedy, need.given):
                lines += view.wrap(hint, first="      ")
    return lines


def _notices(snapshot: Snapshot, view: View) -> list[str]:
    lines: list[str] = []
    for notice in snapshot.notices:
        since = f" ({view.ago(notice.since)})" if notice.since else ""
        text = sentence_case(notice.sentence, names_in(snapshot))
        lines += view.wrap(f"{text}{since}", first=f"{IN}! ")
    return lines


def _waiting(snapshot: Snapshot, view: View) -> list[str]:
    usual = [view.outlook.words(place) for place in range(len(snapshot.turns))]
    lines = view.table(
        [
            [
                Cell(turn.participant, "head"),
                Cell(format.age(turn.since, view.now)),
                *([Cell(words, "dim")] if any(usual) else []),
                Cell(turn.what),
            ]
            for turn, words in zip(snapshot.turns, usual, strict=True)
        ]
    )
    if view.outlook.ends:
        lines += view.wrap(f"This phase {view.outlook.ends.words(view.now, view.utc)}.")
    return lines


def _next(snapshot: Snapshot, view: View) -> list[str]:
    widest = max((output.width(each.participant) for each in snapshot.next_actions), default=0)
    lines: list[str] = []
    for each in snapshot.next_actions:
        mark = spoken.mark("→", "now:") if each.waited else " "
        lines += view.wrap(each.text, first=f"{IN}{mark} {output.fit(each.participant, widest)}  ")
    return lines


def _timeline_title(snapshot: Snapshot, view: View) -> str:
    total = len(snapshot.events)
    new = f", {view.unread:,} new since your last visit" if view.unread else ""
    if view.events is None or total <= view.events:
        return f"Timeline ({format.count(total, 'event')}{new})"
    return f"Timeline (last {view.events} of {total:,} events{new}; use --all to see every event)"


def _timeline(snapshot: Snapshot, view: View) -> list[str]:
    total = len(snapshot.events)
    start = 0 if view.events is None else max(0, total - view.events)
    shown = [snapshot.events[i] for i in range(start, total)]
    if not shown:
        return []
    rows = [
        _event(event, view, new=start + i >= total - view.unread) for i, event in enumerate(shown)
    ]
    lines: list[str] = []
    for event, line in zip(shown, view.table(rows), strict=True):
        lines.append(line)
        if event.reply_to:
            lines.append(f"{IN}       ↳ replies to {event.reply_to}")
        if event.problem:
            lines += view.wrap(event.problem, first=f"{IN}       {spoken.mark('✗', 'problem:')} ")
    return lines


def _event(event: Event, view: View, *, new: bool) -> list[Cell]:
    at = format.moment(event.at, view.now, view.utc) if event.at else "-"
    if event.at and event.at_source != "recorded":
        at += "~"  # not written down by whoever did it
    style = TONE_STYLES.get(event.tone, "")
    return [
        Cell("new" if new else "", "need"),
        Cell(at, "dim"),
        Cell(event.id),
        Cell(signs.TONE[event.tone], style),
        Cell(event.actor),
        Cell(event.kind, style),
        Cell(event.summary),
    ]


def _documents(snapshot: Snapshot, view: View) -> list[str]:
    lines = view.table([_document(each, view) for each in snapshot.documents])
    for each in snapshot.documents:
        if each.late:
            lines += view.wrap(f"{each.id}: {each.late}", first=f"{IN}! ")
    return lines


def _document(each: Document, view: View) -> list[Cell]:
    news = ""
    if view.seen is not None and each.version:
        looked = view.seen.get(each.id)
        news = "new to you" if looked is None else ""
        news = "changed since your last visit" if looked not in (None, each.version) else news
    changed = f"changed {view.ago(each.changed)}" if each.changed else ""
    return [
        Cell(each.id, "head"),
        Cell(each.title),
        Cell(each.state, "" if each.state == "present" else "warning"),
        Cell(format.size(each.size) if each.size is not None else ""),
        Cell(changed),
        Cell(" · ".join(filter(None, [news, each.note])), "need"),
    ]


def _gates(snapshot: Snapshot, view: View) -> list[str]:
    words = {True: "met:", False: "not met:", None: "unknown:"}
    marks = {True: ("[x]", "good"), False: ("[ ]", ""), None: ("[?]", "warning")}
    lines: list[str] = []
    for gate in snapshot.gates:
        place = _place(gate.document, gate.line)
        evidence = f" ({gate.evidence})" if gate.evidence else ""
        text = f"{gate.label}{evidence}{'  ' + place if place else ''}"
        mark, style = spoken.mark(marks[gate.met][0], words[gate.met]), marks[gate.met][1]
        wrapped = view.wrap(text, first=f"{IN}{mark} ")
        lines += [wrapped[0].replace(mark, view.paint(mark, style), 1), *wrapped[1:]]
    return lines


def _findings_title(snapshot: Snapshot) -> str:
    parts = [
        format.count(snapshot.count(severity), severity.value, many)
        for severity, many in (
            (Severity.ERROR, ""),
            (Severity.WARNING, ""),
            (Severity.ADVICE, "advice"),
        )
        if snapshot.count(severity)
    ]
    return f"Findings ({', '.join(parts)})"


def _findings(snapshot: Snapshot, view: View) -> list[str]:
    lines: list[str] = []
    for each in snapshot.findings:
        sign = view.paint(signs.SEVERITY[each.severity], SEVERITY_STYLES[each.severity])
        place = " ".join(filter(None, [_place(each.document, each.line), _event_of(each)]))
        head = " ".join(filter(None, [each.severity.value, each.code, place, each.message]))
        wrapped = view.wrap(head, first=f"{IN}? ")
        lines += [wrapped[0].replace("?", sign, 1), *wrapped[1:]]
        for text, first in (
            (each.explanation, "    "),
            (each.remedy, f"    {spoken.mark('→', 'fix:')} "),
        ):
            lines += view.wrap(text, first=first) if text else []
    return lines


def _event_of(finding: Finding) -> str:
    return f"event {finding.event}" if finding.event else ""


def _place(document: str | None, line: int | None) -> str:
    if document is None:
        return ""
    return f"{document}:{line}" if line else document


def _panel(panel: Panel, view: View) -> list[str]:
    """What a protocol adds, in whatever shape: its rows as a table, indented as in a tree."""
    met, unmet = spoken.mark("[x]", "done:"), spoken.mark("[ ]", "open:")
    marks = {True: f"{met} ", False: f"{unmet} ", None: ""}
    if not panel.rows:
        return [f"{IN}{panel.empty}"] if panel.empty else []
    rows = []
    for row in panel.rows:
        first, *others = row.cells or ("",)
        start = "  " * row.depth + marks[row.checked]
        rows.append([Cell(start + first), *map(Cell, others)])
    widest = max(len(row) for row in rows)
    filled = [[*row, *[Cell("")] * (widest - len(row))] for row in rows]
    return view.table(filled)


def _lineage(snapshot: Snapshot, view: View) -> list[str]:
    lines: list[str] = []
    for link in snapshot.lineage:
        relation = link.relation.replace("_", " ")
        missing = "" if link.found else " (not found)"
        summary = f": {link.summary}" if link.summary else ""
        lines += view.wrap(f"{relation} {link.name}{missing}{summary}")
        lines += view.wrap(link.location, first=IN * 2)
    return lines


SCHEMA = "acp.show/1"
LAST = 15  # events that are shown without --all


def show(given: Values) -> int:
    """Print the page, or the object."""
    fleet, snapshot = open_one(given.folder)
    now = utc_now()
    outlook = fleet.learn().outlook(snapshot, now)
    attention = Attention()
    needs = attention.open_needs(snapshot)
    if given.json:
        told = fields.detail(snapshot) | {
            "needs": fields.needs(snapshot, needs),
            "forecast": fields.outlook(outlook, snapshot),
        }
        say(dump({"schema": SCHEMA, "collaboration": snapshot.key, "snapshot": told}))
        return 0
    visit = attention.last_visit(snapshot.key)
    view = View(
        now,
        terminal(),
        needs=needs,
        unread=unread(attention, snapshot),
        seen=visit.versions if visit else None,
        events=None if given.all else LAST,
        utc=given.utc or load_settings().utc,
        outlook=outlook,
    )
    for line in page(snapshot, view):
        say(line)
    return 0
