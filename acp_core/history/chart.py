"""Who did what when, as lanes of bars: the data of a Gantt chart.

It is made once, and drawn as SVG and on the terminal; nothing here knows a protocol.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import groupby

from acp_core.model import Snapshot, Status, format
from acp_core.model.marks import marks
from acp_core.model.story import PastTurn

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
    lanes = [Lane(phases, tuple(bars))]
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
    whole = max(1e-6, (drawn.end - drawn.start).total_seconds())
    step = next((each for each in _STEPS if whole / each <= most), whole / most)
    return [drawn.start + timedelta(seconds=step * n) for n in range(int(whole / step) + 1)]


def tick_label(drawn: Chart, at: datetime, utc: bool) -> str:
    """A time of the scale, as exact as the chart's length asks for."""
    whole = (drawn.end - drawn.start).total_seconds()
    local = format.zoned(at, utc)
    if whole > 86_400:
        return f"{local:%d %b %H:%M}"
    return f"{local:%H:%M:%S}" if whole < 600 else f"{local:%H:%M}"
