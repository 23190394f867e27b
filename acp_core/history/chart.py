"""Who did what when, as lanes of bars: the data of a Gantt chart, and its drawing as SVG.

The data is made once and drawn elsewhere too; nothing here knows a protocol or a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from xml.sax.saxutils import escape, quoteattr

from acp_core import format
from acp_core.model import Snapshot, Status
from acp_core.story import PastTurn

_LABELS = 150  # width of the lanes' names, in SVG units
_RIGHT = 44  # room for half of the last label of the scale
WIDTH = 960
_LANE = 28
_TOP = 34
_TICKS = 6  # at most, of the time scale
_LIMIT = 2_000  # bars that are drawn at most: more would be a smear, and a file too big to mail
_STEPS = (
    1, 5, 15, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400,
    7 * 86_400, 30 * 86_400,
)  # fmt: skip
STYLE = """
svg.gantt { font: 12px system-ui, sans-serif; }
svg.gantt text { fill: #1c1c1c; }
svg.gantt text.scale { fill: #555; font-size: 11px; }
svg.gantt line { stroke: #d4d4d4; }
svg.gantt rect.phase { fill: #c3cfee; }
svg.gantt rect.turn { fill: #b5e0cf; }
svg.gantt rect.open { fill: #f5d29c; }
svg.gantt path.handover { stroke: #444; fill: none; }
svg.gantt path.tip { fill: #444; }
@media screen and (prefers-color-scheme: dark) {
  svg.gantt text { fill: #ececec; }
  svg.gantt text.scale { fill: #aaa; }
  svg.gantt line { stroke: #444; }
  svg.gantt rect.phase { fill: #3b4c7c; }
  svg.gantt rect.turn { fill: #22604c; }
  svg.gantt rect.open { fill: #7a5013; }
  svg.gantt path.handover { stroke: #bbb; }
  svg.gantt path.tip { fill: #bbb; }
}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """Something that lasted: ``kind`` is ``phase`` or ``turn``; ``end`` is None while it lasts."""

    start: datetime
    end: datetime | None
    label: str
    kind: str = "turn"


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of the chart: a participant, or the phases."""

    name: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Handover:
    """At ``at``, the lane ``giver`` ended what the lane ``taker`` was waiting for (by index)."""

    at: datetime
    giver: int
    taker: int


@dataclass(frozen=True, slots=True)
class Chart:
    """Lanes from ``start`` to ``end``. ``omitted`` bars have no times, or are too many to draw."""

    start: datetime
    end: datetime
    lanes: tuple[Lane, ...]
    handovers: tuple[Handover, ...] = ()
    omitted: int = 0


def chart(
    lanes: Sequence[Lane], handovers: Iterable[Handover], now: datetime, *, untimed: int = 0
) -> Chart | None:
    """A chart of these lanes; None where nothing in them has a time.

    Args:
        lanes: In the order in which they are shown.
        handovers: Between these lanes, by index.
        now: Where a bar that lasts still ends.
        untimed: How many bars could not be made because their times are not recorded.
    """
    left, kept = _LIMIT, []
    for lane in lanes:
        kept.append(Lane(lane.name, lane.bars[:left]))
        left -= len(kept[-1].bars)
    bars = [bar for lane in kept for bar in lane.bars]
    if not bars:
        return None
    start = min(bar.start for bar in bars)
    end = max(bar.end or now for bar in bars)
    cut = sum(len(lane.bars) for lane in lanes) - len(bars)
    shown = tuple(each for each in handovers if start <= each.at <= end)[:_LIMIT]
    return Chart(start, max(start, end), tuple(kept), shown, untimed + cut)


def of_snapshot(
    snapshot: Snapshot, turns: Sequence[PastTurn], now: datetime, *, phases: str = "phases"
) -> Chart | None:
    """The chart of a collaboration: a lane for its phases, and one for each participant.

    Args:
        snapshot: as it was read.
        turns: whose turn it was when.
        now: the present time; where the collaboration is over, its last event takes its place.
        phases: the name of the first lane.
    """
    over = snapshot.status in (Status.COMPLETED, Status.BLOCKED)
    times = [event.at for event in snapshot.events if event.at is not None]
    end = max(times) if over and times else now
    last = end if over else None
    stays = [(phase.label, visit) for phase in snapshot.phases for visit in phase.visits]
    bars = [
        _lasting(visit.entered, visit.left or last, label, "phase")
        for label, visit in stays
        if visit.entered is not None
    ]
    untimed = len(stays) - len(bars)
    names = list(dict.fromkeys(person.id for person in snapshot.participants))
    names += [name for name in dict.fromkeys(turn.participant for turn in turns)
              if name not in names]  # fmt: skip
    lanes = [Lane(phases, tuple(bars))]
    for name in names:
        own = [turn for turn in turns if turn.participant == name]
        bars = [
            _lasting(turn.since, turn.ended or last, turn.kind or "waited for", "turn")
            for turn in own
            if turn.since is not None
        ]
        untimed += len(own) - len(bars)
        lanes.append(Lane(name, tuple(bars)))
    rows = {name: row for row, name in enumerate(names, 1)}
    actors = {event.id: event.actor for event in snapshot.events}
    handovers = []
    for turn in turns:
        giver = rows.get(actors.get(turn.since_event or "", ""))
        taker = rows[turn.participant]
        if turn.since is not None and giver is not None and giver != taker:
            handovers.append(Handover(turn.since, giver, taker))
    return chart(lanes, handovers, end, untimed=untimed)


def across(drawn: Chart, at: datetime, width: int = WIDTH) -> float:
    """How far from the left a time is drawn, in SVG units; the nearest edge where it is outside."""
    return _Scale(drawn, width).x(at)


def svg(drawn: Chart, *, width: int = WIDTH, utc: bool = False) -> str:
    """The chart as one ``svg`` element: no script, no link; every label is escaped text.

    Args:
        drawn: What to draw.
        width: In SVG units; the height follows from the lanes.
        utc: Show times in UTC rather than in local time.
    """
    height = _TOP + _LANE * len(drawn.lanes) + 8
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gantt" width="100%" role="img" '
            f'viewBox="0 0 {width} {height}" aria-label="Phases and turns over time">'
        ),
        f"<style>{STYLE}</style>",
    ]
    place = _Scale(drawn, width)
    for at in place.ticks():
        x = place.x(at)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{height - 8}"/>')
        parts.append(
            f'<text class="scale" x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">'
            f"{escape(place.said(at, utc))}</text>"
        )
    for row, lane in enumerate(drawn.lanes):
        y = _TOP + _LANE * row
        parts.append(f'<text x="4" y="{y + 17}">{escape(_short(lane.name, 22))}</text>')
        parts.extend(_bar(bar, place, y, drawn.end) for bar in lane.bars)
    parts.extend(_arrow(each, place) for each in drawn.handovers)
    parts.append(f'<line class="cursor" display="none" y1="{_TOP - 8}" y2="{height - 4}"/>')
    parts.append("</svg>")
    return "\n".join(parts)


def _lasting(start: datetime, end: datetime | None, label: str, kind: str) -> Bar:
    """A bar; clocks that disagree make it end where it begins, never before."""
    return Bar(start, None if end is None else max(start, end), label, kind)


def _bar(bar: Bar, place: _Scale, y: float, now: datetime) -> str:
    left, right = place.x(bar.start), place.x(bar.end or now)
    kind = "open" if bar.end is None and bar.kind == "turn" else bar.kind
    lasted = ((bar.end or now) - bar.start).total_seconds()
    title = f"{bar.label}: {format.long_span(lasted)}{'' if bar.end else ' so far'}"
    wide = max(1.5, right - left)
    text = ""
    if len(bar.label) * 7 + 8 < wide:
        text = f'<text x="{left + 5:.1f}" y="{y + 17}">{escape(bar.label)}</text>'
    return (
        f"<g aria-label={quoteattr(title)}><title>{escape(title)}</title>"
        f'<rect class="{kind}" x="{left:.1f}" y="{y + 4}" width="{wide:.1f}" '
        f'height="{_LANE - 9}" rx="3"/>{text}</g>'
    )


def _arrow(each: Handover, place: _Scale) -> str:
    x = place.x(each.at)
    y1, y2 = (_TOP + _LANE * row + _LANE / 2 for row in (each.giver, each.taker))
    tip = 5 if y2 > y1 else -5
    return (
        f'<path class="handover" d="M{x:.1f} {y1:.1f}V{y2 - tip:.1f}"/>'
        f'<path class="tip" d="M{x - 3:.1f} {y2 - tip:.1f}h6L{x:.1f} {y2:.1f}z"/>'
    )


class _Scale:
    """Times to places from left to right."""

    def __init__(self, drawn: Chart, width: int) -> None:
        self._start, self._end = drawn.start, drawn.end
        self._span = max(1e-6, (drawn.end - drawn.start).total_seconds())
        self._wide = width - _LABELS - _RIGHT

    def x(self, at: datetime) -> float:
        share = (at - self._start).total_seconds() / self._span
        return _LABELS + min(1.0, max(0.0, share)) * self._wide

    def ticks(self) -> list[datetime]:
        """At whole steps from the start; the last one leaves room for its label."""
        step = next((s for s in _STEPS if self._span / s <= _TICKS), self._span / _TICKS)
        count = int(self._span / step)
        return [self._start + timedelta(seconds=step * n) for n in range(count + 1)]

    def said(self, at: datetime, utc: bool) -> str:
        local = format.zoned(at, utc)
        if self._span > 86_400:
            return f"{local:%d %b %H:%M}"
        return f"{local:%H:%M:%S}" if self._span < 600 else f"{local:%H:%M}"


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
