"""Who did what when, as lanes of bars: a Gantt chart, as data, as SVG and as lines of text.

The data is made once, from a Snapshot; nothing here knows a protocol. The SVG shows bars, hand-overs,
numbers over time and shares on one axis of time; the lines are for the terminal, readable without
colour, in any width from 60 on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from html import escape
from itertools import groupby

from acp_core.model import Snapshot, Status, format
from acp_core.model.past import PastTurn, marks

TICKS = 6  # at most, of the time scale
_STEPS = (
    1, 5, 15, 60, 300, 900, 1800, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86_400, 2 * 86_400,
    7 * 86_400, 30 * 86_400,
)  # fmt: skip
_LIMIT = 2_000  # bars that are drawn, about: more would be a smear, and a file too big to mail
_NAMED = 3  # labels of bars that are drawn as one


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
class Level:
    """A number over time: each holds from its moment on; before the first it is not recorded.

    ``bad`` says that it should be nothing.
    """

    name: str
    points: tuple[tuple[datetime, int], ...]
    bad: bool = False

    def at(self, moment: datetime) -> int | None:
        """The number at a moment; None where it is not recorded."""
        place = bisect_right(self.points, moment, key=lambda point: point[0])
        return self.points[place - 1][1] if place else None

    @property
    def most(self) -> int:
        """The greatest number."""
        return max((number for _, number in self.points), default=0)


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the whole time, 0 to 1, with its words."""

    name: str
    share: float
    label: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Lanes from ``start`` to ``end``.

    ``doubt`` says why times are uncertain; ``omitted`` bars have no times; ``merged`` ones are drawn
    as one with others that begin near them. Below the lanes stand ``levels`` on the same axis of time, and ``shares`` of all of it.
    """

    start: datetime
    end: datetime
    lanes: tuple[Lane, ...]
    handovers: tuple[Handover, ...] = ()
    omitted: int = 0
    levels: tuple[Level, ...] = ()
    shares: tuple[Share, ...] = ()
    merged: int = 0
    doubt: str = ""

    @property
    def seconds(self) -> float:
        """How long it is, for dividing."""
        return max(1e-6, (self.end - self.start).total_seconds())

    def share_at(self, at: datetime) -> float:
        """Which share of it a time ends; the nearest edge where it is outside."""
        return min(1.0, max(0.0, (at - self.start).total_seconds() / self.seconds))


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
    bars = [bar for lane in lanes for bar in lane.bars]
    if not bars:
        return None
    start = min(bar.start for bar in bars)
    end = max(start, *(bar.end or now for bar in bars))
    kept, shown = tuple(lanes), tuple(each for each in handovers if start <= each.at <= end)
    if len(bars) > _LIMIT:
        cell = _cell(end - start, len(lanes))
        kept = tuple(Lane(lane.name, tuple(_merged(lane.bars, start, cell))) for lane in lanes)
    if len(shown) > _LIMIT:
        pairs = len({(each.giver, each.taker) for each in shown})
        shown = tuple(_thinned(shown, start, _cell(end - start, pairs)))
    merged = len(bars) - sum(len(lane.bars) for lane in kept)
    return Chart(start, end, kept, shown, untimed, merged=merged)


def _cell(whole: timedelta, rows: int) -> timedelta:
    """How near to each other things may be that are drawn apart, in so many rows."""
    return max(whole / (_LIMIT // rows or 1), timedelta(microseconds=1))


def _merged(bars: Iterable[Bar], start: datetime, cell: timedelta) -> Iterator[Bar]:
    """The bars of a lane; those that begin too near to each other to be told apart as one."""
    ordered = sorted(bars, key=lambda bar: bar.start)
    for _, together in groupby(ordered, key=lambda bar: (bar.start - start) // cell):
        near = list(together)
        lasts = any(bar.end is None for bar in near)
        end = None if lasts else max(bar.end for bar in near if bar.end is not None)
        labels = list(dict.fromkeys(bar.label for bar in near))
        label = ", ".join(labels[:_NAMED]) + (", …" if len(labels) > _NAMED else "")
        number = f" ({len(near)} times)" if len(near) > 1 else ""
        yield Bar(near[0].start, end, f"{label}{number}", near[0].kind)


def _thinned(handovers: Iterable[Handover], start: datetime, cell: timedelta) -> Iterable[Handover]:
    """One hand-over of those between the same lanes that cannot be told apart."""
    found: dict[tuple[int, int, int], Handover] = {}
    for each in handovers:
        found.setdefault(((each.at - start) // cell, each.giver, each.taker), each)
    return found.values()


def of_snapshot(snapshot: Snapshot, turns: Sequence[PastTurn], now: datetime) -> Chart | None:
    """The chart of a collaboration: a lane for its phases, and one for each participant.

    Args:
        snapshot: as it was read.
        turns: whose turn it was when.
        now: the present time; where the collaboration is over, its last event takes its place.
    """
    over = snapshot.status in (Status.COMPLETED, Status.BLOCKED)
    end = now
    if over:
        end = max((each.at for each in marks(snapshot.events) if each.at is not None), default=now)
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
    lanes = [Lane("phases", tuple(bars))]
    for name in names:
        own = [turn for turn in turns if turn.participant == name]
        bars = [
            _lasting(turn.since, turn.ended or last, turn.kind or "turn", "turn")
            for turn in own
            if turn.since is not None
        ]
        untimed += len(own) - len(bars)
        lanes.append(Lane(name, tuple(bars)))
    rows = {name: row for row, name in enumerate(names, 1)}
    actors = {each.id: each.actor for each in marks(snapshot.events)}
    handovers = []
    for turn in turns:
        giver = rows.get(actors.get(turn.since_event or "", ""))
        taker = rows[turn.participant]
        if turn.since is not None and giver is not None and giver != taker:
            handovers.append(Handover(turn.since, giver, taker))
    return chart(lanes, handovers, end, untimed=untimed)


def _lasting(start: datetime, end: datetime | None, label: str, kind: str) -> Bar:
    """A bar; clocks that disagree make it end where it begins, never before."""
    return Bar(start, None if end is None else max(start, end), label, kind)


def joined(charts: Sequence[tuple[str, Chart]]) -> Chart | None:
    """The charts of a chain of collaborations as one: a lane tells which of them it was.

    Args:
        charts: each with its collaboration's name, oldest first.
    """
    if not charts:
        return None
    names = list(dict.fromkeys(lane.name for _, each in charts for lane in each.lanes))
    lanes = [Lane("collaboration", tuple(Bar(c.start, c.end, name, "phase") for name, c in charts))]
    handovers = []
    for name in names:
        bars = [bar for _, each in charts for lane in each.lanes if lane.name == name
                for bar in lane.bars]  # fmt: skip
        lanes.append(Lane(name, tuple(bars)))
    for _, each in charts:
        rows = [names.index(lane.name) + 1 for lane in each.lanes]
        handovers += [replace(h, giver=rows[h.giver], taker=rows[h.taker]) for h in each.handovers]
    end = max(each.end for _, each in charts)
    whole = chart(lanes, handovers, end, untimed=sum(each.omitted for _, each in charts))
    if whole is None:
        return None
    titles = {level.name: level.bad for _, each in charts for level in each.levels}
    levels = [
        Level(title, tuple(point for _, each in charts for level in each.levels
                           if level.name == title for point in level.points), bad)
        for title, bad in titles.items()
    ]  # fmt: skip
    merged = whole.merged + sum(each.merged for _, each in charts)
    return replace(whole, levels=tuple(levels), merged=merged)


def ticks(drawn: Chart, most: int = TICKS) -> list[datetime]:
    """Times for the scale: whole steps from the start, at most ``most`` of them after it."""
    whole = drawn.seconds
    step = next((each for each in _STEPS if whole / each <= most), whole / most)
    return [drawn.start + timedelta(seconds=step * n) for n in range(int(whole / step) + 1)]


def tick_label(drawn: Chart, at: datetime, utc: bool) -> str:
    """A time of the scale, as exact as the chart's length asks for."""
    whole = (drawn.end - drawn.start).total_seconds()
    local = format.zoned(at, utc)
    if whole > 86_400:
        return f"{local:%d %b %H:%M}"
    return f"{local:%H:%M:%S}" if whole < 600 else f"{local:%H:%M}"


_LABELS = 150  # width of the lanes' names, in SVG units
_RIGHT = 44  # room for half of the last label of the scale
WIDTH = 960
_WIDE = WIDTH - _LABELS - _RIGHT  # of that, for the time
_LANE = 28
_TOP = 34
_LEVEL = 34  # height of a number over time
_SHARE = 22
STYLE = """
svg.gantt { font: 12px system-ui, sans-serif; }
svg.gantt text { fill: #1c1c1c; }
svg.gantt text.scale { fill: #555; font-size: 11px; }
svg.gantt line { stroke: #d4d4d4; }
svg.gantt rect.phase { fill: #c3cfee; }
svg.gantt rect.turn { fill: #b5e0cf; }
svg.gantt rect.open { fill: #f5d29c; }
svg.gantt path.level { fill: #d9d2ea; stroke: #6c5aa0; }
svg.gantt path.bad { fill: #e3b3b3; stroke: #a33; }
svg.gantt rect.share { fill: #b5cfe8; }
svg.gantt rect.rest { fill: #ececec; }
svg.gantt path.handover { stroke: #444; fill: none; }
svg.gantt path.tip { fill: #444; }
@media screen and (prefers-color-scheme: dark) {
  svg.gantt text { fill: #ececec; }
  svg.gantt text.scale { fill: #aaa; }
  svg.gantt line { stroke: #444; }
  svg.gantt rect.phase { fill: #3b4c7c; }
  svg.gantt rect.turn { fill: #22604c; }
  svg.gantt rect.open { fill: #7a5013; }
  svg.gantt path.level { fill: #463b66; stroke: #a898d8; }
  svg.gantt path.bad { fill: #6b3535; stroke: #d88; }
  svg.gantt rect.share { fill: #35597c; }
  svg.gantt rect.rest { fill: #2c2c2c; }
  svg.gantt path.handover { stroke: #bbb; }
  svg.gantt path.tip { fill: #bbb; }
}
"""


def across(drawn: Chart, at: datetime) -> float:
    """How far from the left a time is drawn, in SVG units; the nearest edge where it is outside."""
    return _LABELS + drawn.share_at(at) * _WIDE


def svg(drawn: Chart, *, utc: bool = False) -> str:
    """The chart as one ``svg`` element: no script, no link; every label is escaped text.

    Args:
        drawn: What to draw; the height follows from the lanes.
        utc: Show times in UTC rather than in local time.
    """
    lanes = _TOP + _LANE * len(drawn.lanes)
    axis = lanes + _LEVEL * len(drawn.levels)
    height = axis + (_SHARE * len(drawn.shares) + 10 if drawn.shares else 0) + 8
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="gantt" width="100%" role="img" '
            f'viewBox="0 0 {WIDTH} {height}" aria-label="Phases and turns over time">'
        ),
        f"<style>{STYLE}</style>",
    ]
    for at in ticks(drawn):
        x = across(drawn, at)
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP - 8}" y2="{axis}"/>')
        parts.append(
            f'<text class="scale" x="{x:.1f}" y="{_TOP - 14}" text-anchor="middle">'
            f"{escape(tick_label(drawn, at, utc))}</text>"
        )
    for row, lane in enumerate(drawn.lanes):
        y = _TOP + _LANE * row
        parts.append(_name(lane.name, y + 17))
        parts.extend(_bar(bar, drawn, y) for bar in lane.bars)
    parts.extend(_arrow(each, drawn) for each in drawn.handovers)
    for row, level in enumerate(drawn.levels):
        parts.extend(_level(level, drawn, lanes + _LEVEL * row))
    for row, share in enumerate(drawn.shares):
        parts.extend(_share(share, axis + 10 + _SHARE * row))
    parts.append(f'<line class="cursor" display="none" y1="{_TOP - 8}" y2="{axis}"/>')
    parts.append("</svg>")
    return "\n".join(parts)


def _name(text: str, y: float) -> str:
    return f'<text x="4" y="{y}">{escape(_short(text, 22))}</text>'


def _level(level: Level, drawn: Chart, y: float) -> Iterator[str]:
    """Steps; where nothing is recorded, nothing is drawn."""
    bottom, high = y + _LEVEL - 6, _LEVEL - 12
    most = max(1, level.most)
    yield _name(level.name, y + 20)
    points = [(max(at, drawn.start), number) for at, number in level.points if at <= drawn.end]
    if not points:
        return
    ends = [at for at, _ in points[1:]] + [drawn.end]
    path = f"M{across(drawn, points[0][0]):.1f} {bottom}"
    for (at, number), end in zip(points, ends, strict=True):
        top = bottom - high * number / most
        path += f"L{across(drawn, at):.1f} {top:.1f}L{across(drawn, end):.1f} {top:.1f}"
    title = f"{level.name}: {', '.join(str(number) for _, number in points[:50])}"
    kind = "level bad" if level.bad else "level"
    yield f'<path class="{kind}" d="{path}V{bottom}z"><title>{escape(title)}</title></path>'
    x = across(drawn, ends[-1]) + 4
    yield f'<text class="scale" x="{x:.1f}" y="{bottom}">{points[-1][1]}</text>'


def _share(share: Share, y: float) -> Iterator[str]:
    wide = _WIDE / 2
    yield _name(share.name, y + 14)
    part = min(1.0, max(0.0, share.share)) * wide
    yield f'<rect class="rest" x="{_LABELS}" y="{y + 3}" width="{wide:.1f}" height="14" rx="3"/>'
    yield f'<rect class="share" x="{_LABELS}" y="{y + 3}" width="{part:.1f}" height="14" rx="3"/>'
    yield f'<text class="scale" x="{_LABELS + wide + 8:.1f}" y="{y + 14}">{escape(share.label)}</text>'


def _bar(bar: Bar, drawn: Chart, y: float) -> str:
    end = bar.end or drawn.end
    left, right = across(drawn, bar.start), across(drawn, end)
    kind = "open" if bar.end is None and bar.kind == "turn" else bar.kind
    lasted = (end - bar.start).total_seconds()
    title = f"{bar.label}: {format.long_span(lasted)}{'' if bar.end else ' so far'}"
    wide = max(1.5, right - left)
    text = ""
    if len(bar.label) * 7 + 8 < wide:
        text = f'<text x="{left + 5:.1f}" y="{y + 17}">{escape(bar.label)}</text>'
    return (
        f'<g aria-label="{escape(title)}"><title>{escape(title)}</title>'
        f'<rect class="{kind}" x="{left:.1f}" y="{y + 4}" width="{wide:.1f}" '
        f'height="{_LANE - 9}" rx="3"/>{text}</g>'
    )


def _arrow(each: Handover, drawn: Chart) -> str:
    x = across(drawn, each.at)
    y1, y2 = (_TOP + _LANE * row + _LANE / 2 for row in (each.giver, each.taker))
    tip = 5 if y2 > y1 else -5
    return (
        f'<path class="handover" d="M{x:.1f} {y1:.1f}V{y2 - tip:.1f}"/>'
        f'<path class="tip" d="M{x - 3:.1f} {y2 - tip:.1f}h6L{x:.1f} {y2:.1f}z"/>'
    )


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


Piece = tuple[str, str]
"""Text, and the name of its style: ``head``, ``dim``, ``phase``, ``turn``, ``open``, ``arrow``,
``level``, ``bad`` or ""."""
Fit = Callable[[str, int], str]
NARROWEST = 60
_NAMES = (12, 30)  # columns of the lanes' names, at least and at most
_BLOCKS = "▁▂▃▄▅▆▇█"
_UNKNOWN = "·"


def chart_lines(
    drawn: Chart,
    width: int,
    *,
    utc: bool = False,
    fit: Fit,
) -> list[tuple[Piece, ...]]:
    """The chart: a scale, a lane for each row, hand-overs between them, numbers over time, shares.

    Args:
        drawn: What to draw; its names are safe to show.
        width: Columns; fewer than `NARROWEST` are drawn as that many.
        utc: Show times in UTC rather than in local time.
        fit: A text in exactly so many columns, cut or filled.
    """
    return list(_Drawing(drawn, max(NARROWEST, width), utc, fit).lines())


class _Drawing:
    def __init__(self, drawn: Chart, width: int, utc: bool, fit: Fit) -> None:
        self.drawn, self.utc, self.fit = drawn, utc, fit
        named = [lane.name for lane in drawn.lanes] + [level.name for level in drawn.levels]
        longest = max(map(len, named), default=0)
        self.names = max(_NAMES[0], min(_NAMES[1], width // 4, longest))
        self.wide = width - self.names - 1

    def column(self, at: datetime) -> int:
        return round(self.drawn.share_at(at) * (self.wide - 1))

    def lines(self) -> Iterator[tuple[Piece, ...]]:
        drawn = self.drawn
        yield self._named("", [(self._scale(), "dim")])
        for row, lane in enumerate(drawn.lanes):
            yield self._named(lane.name, self._lane(lane.bars))
            if row + 1 < len(drawn.lanes) and drawn.handovers:
                yield self._named("", [(self._between(row), "arrow")])
        if drawn.levels:
            yield ()
        for level in drawn.levels:
            yield self._named(level.name, [(self._level(level), "bad" if level.bad else "level")])
        if drawn.shares:
            yield ()
            yield (("time in which all others waited for this one", "head"),)
        for share in drawn.shares:
            bar = format.bar(min(1.0, max(0.0, share.share)), 20)
            yield self._named(share.name, [(bar, "turn"), (f" {share.share:.0%}", "")])
        if drawn.doubt:
            yield ((f"uncertain: {drawn.doubt}", "dim"),)
        if drawn.omitted:
            yield ((f"{drawn.omitted} not drawn: no recorded time", "dim"),)
        if drawn.merged:
            yield ((f"{drawn.merged} merged with neighbors: too close to draw", "dim"),)

    def _named(self, name: str, pieces: Sequence[Piece]) -> tuple[Piece, ...]:
        return ((f"{self.fit(name, self.names)} ", "head"), *pieces)

    def _scale(self) -> str:
        text = ""
        for at in ticks(self.drawn, max(1, self.wide // 14)):
            label = f"╷{tick_label(self.drawn, at, self.utc)}"
            column = self.column(at)
            if column >= len(text) + bool(text) and column + len(label) <= self.wide:
                text = text.ljust(column) + label
        return text

    def _lane(self, bars: Sequence[Bar]) -> list[Piece]:
        """The bars from left to right; of those that share a column, the later one is seen."""
        styles = [""] * self.wide
        signs = [" "] * self.wide
        for bar in bars:
            first = self.column(bar.start)
            last = max(first, self.column(bar.end or self.drawn.end))
            if last > first and last < self.wide - 1:
                last -= 1  # where the next one begins
            text = self._bar(bar, last - first + 1)
            style = "open" if bar.end is None and bar.kind == "turn" else bar.kind
            signs[first : last + 1] = text
            styles[first : last + 1] = [style] * len(text)
        seen = groupby(zip(signs, styles, strict=True), key=lambda each: each[1])
        return [("".join(sign for sign, _ in each), style) for style, each in seen]

    def _bar(self, bar: Bar, wide: int) -> list[str]:
        """As many signs as columns, the label's beginning among them where there is room."""
        fill, edge = ("─", "├") if bar.kind == "phase" else ("━", "┝")
        if wide == 1:
            return ["│" if bar.kind == "phase" else "┃"]
        end = "┤" if bar.kind == "phase" else "┥"
        if bar.end is None:
            end = "→"
        label = bar.label if self.fit(bar.label, len(bar.label)) == bar.label else ""
        inside = wide - 2
        text = f" {label} " if label and len(label) + 2 <= inside else label
        if len(text) > inside:
            text = f"{text[: inside - 1]}…" if inside >= 4 else ""
        return [edge, *text, *fill * (inside - len(text)), end]

    def _between(self, row: int) -> str:
        """The arrows that cross the gap below a lane."""
        signs = [" "] * self.wide
        for each in self.drawn.handovers:
            high, low = sorted((each.giver, each.taker))
            if high <= row < low:
                down = each.taker > each.giver
                ends = (row == low - 1) if down else (row == high)
                column = self.column(each.at)
                if ends or signs[column] == " ":  # a tip is never hidden by what goes on
                    signs[column] = ("▼" if down else "▲") if ends else "│"
        return "".join(signs).rstrip()

    def _level(self, level: Level) -> str:
        most = max(1, level.most)
        text = ""
        for column in range(self.wide - 5):
            share = column / max(1, self.wide - 1)
            moment = self.drawn.start + timedelta(seconds=share * self.drawn.seconds)
            number = level.at(moment)
            if number is None:
                text += _UNKNOWN
            elif not number:
                text += " "
            else:
                text += _BLOCKS[max(0, round(number / most * len(_BLOCKS)) - 1)]
        last = level.at(self.drawn.end)
        return f"{text} {'' if last is None else last}"
