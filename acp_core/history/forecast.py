"""How long turns and phases usually take, and when the present phase will probably end.

Everything here is worked out from cases: turns and phases that began and ended within what is
known. A turn or a phase that lasts, or that something else cut short (a block), is no case. With
fewer than `LEAST` cases nothing is said. Pure functions over Snapshots, stories and recordings.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from acp_core.history.clocks import forward
from acp_core.model import Phase, PhaseState, Snapshot, Status, Turn, format
from acp_core.model.past import Story

if TYPE_CHECKING:
    from acp_core.history.schema import Seen, Span

LEAST = 5
"""How many cases must be known."""
TURN, PHASE = "turn", "phase"
_SHORTEST = 1.0  # seconds: what took less was written by a script in one go


class Case(NamedTuple):
    """A turn or a phase that ended: ``kind`` is `TURN` or `PHASE`."""

    kind: str
    phase: str
    seconds: float


class Usual(NamedTuple):
    """How long it usually takes, in seconds: half of ``cases`` took from ``low`` to ``high``."""

    median: float
    low: float
    high: float
    cases: int

    @property
    def words(self) -> str:
        """``usually 14 min``."""
        return f"usually {format.long_span(self.median)}"


class Ending(NamedTuple):
    """When a phase will probably end; half of ``cases`` say from ``early`` to ``late``."""

    likely: datetime
    early: datetime
    late: datetime
    cases: int

    def words(self, now: datetime, utc: bool = False) -> str:
        """``probably ends in 12 min (5 min to 40 min)``; from a day on, the times themselves."""
        times = self.likely, self.early, self.late
        if self.late - now >= timedelta(days=1):
            likely, early, late = (format.moment(at, now, utc) for at in times)
        else:
            likely, early, late = (format.long_span((at - now).total_seconds()) for at in times)
            likely = f"in {likely}"
        return f"probably ends {likely}" + (f" ({early} to {late})" if early != late else "")


class Outlook(NamedTuple):
    """What history says of a collaboration as it is now.

    ``turns`` stand beside the Snapshot's turns, one each; ``phase`` is how long a stay in the
    present phase usually takes. None, or nothing, where too few cases are known.
    """

    turns: tuple[Usual | None, ...] = ()
    phase: Usual | None = None
    ends: Ending | None = None

    def words(self, place: int) -> str:
        """How long the turn at this place of the Snapshot's turns usually takes; "" if not known."""
        usual = self.turns[place] if place < len(self.turns) else None
        return usual.words if usual else ""

    def oldest(self, turns: Sequence[Turn]) -> Usual | None:
        """How long the turn usually takes that lasts longest, among these of the Snapshot."""
        known = [
            (turn.since, usual)
            for turn, usual in zip(turns, self.turns, strict=False)
            if turn.since is not None
        ]
        return min(known, key=lambda each: each[0])[1] if known else None


NOTHING = Outlook()


class Forecast:
    """What all known cases say together; immutable, for any thread.

    Args:
        histories: Of each collaboration the name of its protocol, and its cases.
    """

    def __init__(self, histories: Iterable[tuple[str, Iterable[Case]]] = ()) -> None:
        lasted: dict[tuple[str, str, str], list[float]] = {}
        for protocol, cases in histories:
            for case in cases:
                lasted.setdefault((protocol, case.kind, case.phase), []).append(case.seconds)
        self._lasted = {key: sorted(each) for key, each in lasted.items() if len(each) >= LEAST}
        self._usual = {key: _usual(each) for key, each in self._lasted.items()}

    def __eq__(self, other: object) -> bool:
        """Whether both say the same: a screen is drawn anew only for another one."""
        return isinstance(other, Forecast) and self._lasted == other._lasted

    def __hash__(self) -> int:
        return hash(tuple(self._lasted))

    def usual(self, protocol: str, kind: str, phase: str) -> Usual | None:
        """How long turns in a phase, or stays in it, usually take.

        Args:
            protocol: its name.
            kind: `TURN` or `PHASE`.
            phase: its id.
        """
        return self._usual.get((protocol, kind, phase))

    def outlook(self, snapshot: Snapshot, now: datetime) -> Outlook:
        """What is known of a collaboration's turns and its phase; cheap enough for every redraw."""
        if not self._usual or snapshot.status is not Status.ACTIVE:
            return Outlook((None,) * len(snapshot.turns))
        current = [each for each in snapshot.phases if each.state is PhaseState.CURRENT]
        turns = tuple(
            self.usual(snapshot.protocol, TURN, _phase_of(turn, current, snapshot))
            for turn in snapshot.turns
        )
        if len(current) != 1:
            return Outlook(turns)
        phase = self.usual(snapshot.protocol, PHASE, current[0].id)
        return Outlook(turns, phase, self._ending(snapshot.protocol, current[0], now))

    def _ending(self, protocol: str, phase: Phase, now: datetime) -> Ending | None:
        """Among the stays that lasted as long as this one already does, how long they lasted."""
        lasted = self._lasted.get((protocol, PHASE, phase.id), [])
        visit = phase.visits[-1] if phase.visits else None
        if visit is None or visit.entered is None or visit.left is not None:
            return None
        entered = visit.entered
        longer = lasted[bisect_right(lasted, (now - entered).total_seconds()) :]
        if len(longer) < LEAST:
            return None
        usual = _usual(longer)
        likely, early, late = (entered + timedelta(seconds=each) for each in usual[:3])
        return Ending(likely, early, late, usual.cases)


def _phase_of(turn: Turn, current: Sequence[Phase], snapshot: Snapshot) -> str:
    """The phase to which a turn belongs: where several are current, the participant's own."""
    ids = [phase.id for phase in current]
    if turn.participant in ids:
        return turn.participant
    return ids[0] if len(ids) == 1 else snapshot.phase


def _usual(ordered: Sequence[float]) -> Usual:
    low, median, high = (_quantile(ordered, part) for part in (0.25, 0.5, 0.75))
    return Usual(median, low, high, len(ordered))


def _quantile(ordered: Sequence[float], part: float) -> float:
    place = part * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


# where cases come from


def cases_of(snapshot: Snapshot, story: Story) -> tuple[Case, ...]:
    """The turns and phases of a collaboration that ended.

    None where the clocks of its events went back: durations are uncertain then.
    """
    snapshot, turns, doubt = forward(snapshot, story.turns)
    if doubt:
        return ()
    found = [
        Case(TURN, turn.phase, (turn.ended - turn.since).total_seconds())
        for turn in turns
        if turn.event is not None and turn.since is not None and turn.ended is not None
    ]
    found += _stays(snapshot)
    return tuple(case for case in found if case.seconds >= _SHORTEST)


def _stays(snapshot: Snapshot) -> Iterator[Case]:
    """The stays in phases that ended by themselves, not because all was blocked."""
    cut = None
    if snapshot.status is Status.BLOCKED:
        cut = max((event.at for event in snapshot.events if event.at), default=snapshot.changed)
    for phase in snapshot.phases:
        for visit in phase.visits:
            if visit.entered and visit.left and (cut is None or visit.left < cut):
                yield Case(PHASE, phase.id, (visit.left - visit.entered).total_seconds())


def cases_of_recording(observations: Iterable[Seen], spans: Sequence[Span]) -> tuple[Case, ...]:
    """The same, of what a recording kept of each look, oldest first.

    What ended while nobody looked is no case, unless what came next says since when.

    Raises:
        ValueError: this is not what a recording keeps.
    """
    try:
        reading = _Reading(spans)
        for seen in observations:
            reading.add(seen)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"not a valid recording: {error}") from None
    return tuple(case for case in reading.cases if case.seconds >= _SHORTEST)


class _Reading:
    """Goes through observations, and keeps what lasts."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.cases: list[Case] = []
        self._spans = spans
        self._before: tuple[float, int] | None = None  # when was looked, how many events were there
        self._phase: tuple[str, int | None] | None = None
        self._entered: float | None = None
        self._waits: dict[str, tuple[float, str]] = {}  # by participant: since when, in which phase

    def add(self, seen: Seen) -> None:
        """Take the next one."""
        content = json.loads(seen.content)
        waiting = {
            name: datetime.fromisoformat(since).timestamp()
            for name, _, since in content["waiting"]
            if since is not None
        }
        blocked = content["status"] == Status.BLOCKED.value
        changed_at = None if blocked else self._moment(seen.at, waiting.values())
        more = self._before is not None and content["events"] > self._before[1]
        for name, (since, phase) in list(self._waits.items()):
            if waiting.get(name) != since:
                del self._waits[name]
                if changed_at is not None and more:
                    self.cases.append(Case(TURN, phase, changed_at - since))
        stay = (content["phase"], content["round"])
        if stay != self._phase:
            if self._phase and self._entered is not None and changed_at is not None:
                self.cases.append(Case(PHASE, self._phase[0], changed_at - self._entered))
            self._entered = changed_at
            self._phase = stay
        for name, since in waiting.items():
            self._waits.setdefault(name, (since, stay[0]))
        self._before = seen.at, content["events"]

    def _moment(self, at: float, since: Iterable[float]) -> float | None:
        """When that happened by which this look differs from the one before; None: not known."""
        if self._before is None:
            return None
        before = self._before[0]
        begun = [each for each in since if before < each <= at]
        if begun:
            return min(begun)
        watched = any(span.began <= before and at <= span.until for span in self._spans)
        return at if watched else None
