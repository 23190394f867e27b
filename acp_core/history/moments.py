"""The moments of a collaboration's past, in order: events, versions of documents, loops, findings.

The time that an event bears is rounded, and may come from a clock that was wrong. Where the log
was recorded, each event lies between two recorded states of the log, and its moment between their
times. Also what agents did in live turns, as far as their loops were recorded, and where something
worth looking at happened, for whoever jumps from one to the next.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from statistics import median
from typing import NamedTuple

from acp_core.history.schema import LoopChange, Seen
from acp_core.history.versions import RECORDED, Known
from acp_core.model import Event, Panel, Row
from acp_core.model.format import exact
from acp_core.model.past import marks
from acp_core.model.text import clean_line

_MOST = 200  # uses in a report, the newest
_LONGEST = 200  # characters of one


class RecordedUse(NamedTuple):
    """A use of a tool: when (seconds since 1970), whose agent, on what, and how it ended."""

    at: float
    participant: str
    what: str
    status: str


def tool_uses(loops: Sequence[LoopChange]) -> Iterator[RecordedUse]:
    """Every use of a tool, run by run.

    Args:
        loops: the recorded states of participants' loops, oldest first.
    """
    known: set[tuple[str, str]] = set()
    for change in loops:
        run = json.loads(change.content).get("run")
        calls = run.get("calls") if isinstance(run, dict) else None
        if not calls or (change.participant, str(run.get("started"))) in known:
            continue
        known.add((change.participant, str(run.get("started"))))
        for at, what, status in calls:
            yield RecordedUse(at, change.participant, what, status)


def tool_uses_panel(loops: Sequence[LoopChange], utc: bool) -> Panel | None:
    """The newest of them as a table; None where none is known.

    Args:
        loops: see `tool_uses`.
        utc: show times in UTC rather than in local time.
    """
    found = sorted(tool_uses(loops))[-_MOST:]
    rows = tuple(
        Row(
            (
                exact(datetime.fromtimestamp(each.at, UTC), utc),
                clean_line(each.participant, _LONGEST),
                clean_line(each.what, _LONGEST),
                clean_line(each.status, _LONGEST),
            )
        )
        for each in found
    )
    columns = ("when", "agent of", "what it did", "how it ended")
    return Panel("tool_uses", "What agents did", "table", columns, rows) if rows else None


EVENT, DOCUMENT, FINDINGS, LOOP = "event", "document", "findings", "loop"
END_OF_SECOND = 999_999
"""Microseconds of an event that names only a second: it is the last that happened in it."""
_RANK = {DOCUMENT: 0, EVENT: 1, FINDINGS: 2, LOOP: 3}


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened.

    Attributes:
        at: seconds since 1970.
        kind: `EVENT`, `DOCUMENT`, `FINDINGS` or `LOOP`.
        events: how many events the log held then, this one included.
        what: one line, not yet safe to show where it names files or people.
        name: the event's id, the file's name, the participant; "" for findings.
        exact: whether the time was recorded, or is only what an event or a file says of itself.
    """

    at: float
    kind: str
    events: int
    what: str
    name: str = ""
    exact: bool = False

    @property
    def time(self) -> datetime:
        """When, as it is printed: of an event that names only a second, that second."""
        at = datetime.fromtimestamp(self.at, UTC)
        whole = self.kind == EVENT and at.microsecond == END_OF_SECOND
        return at.replace(microsecond=0) if whole else at


def ids(ordered: Sequence[Moment]) -> list[str]:
    """A name for each moment that no other one has, in their order.

    That of an event is the event's, that of another moment its time; where several bear one time,
    followed by its number among them.
    """
    times = [written(moment.time) for moment in ordered]
    several, names = Counter(times), Counter[str]()
    found: list[str] = []
    taken: set[str] = set()
    for moment, time in zip(ordered, times, strict=True):
        names[time] += 1
        name = time if several[time] == 1 else f"{time}#{names[time]}"
        found.append(moment.name if moment.kind == EVENT and moment.name not in taken else name)
        taken.add(found[-1])
    return found


def end_of(at: datetime) -> datetime:
    """The last instant of a time: one without a fraction of a second is that whole second."""
    return at if at.microsecond else at.replace(microsecond=END_OF_SECOND)


def written(at: datetime) -> str:
    """A time as precisely as moments are told apart by it."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def moments(
    events: Sequence[Event],
    times: Sequence[tuple[float, bool]],
    versions: Sequence[Known],
    observations: Sequence[Seen],
    loops: Sequence[LoopChange],
) -> list[Moment]:
    """All moments, oldest first.

    Args:
        events: of the log, in its order; ``times`` as `event_times` gives them.
        times: see there.
        versions: of documents, not of the log.
        observations: what was made of the collaboration.
        loops: changes of participants' loops.
    """
    found: list[Moment] = []
    said: dict[tuple[str, str], str] = {}  # the same text for all that say the same
    for number, (event, (at, is_exact)) in enumerate(zip(marks(events), times, strict=True), 1):
        what = said.setdefault((event.actor, event.kind), f"{event.actor}: {event.kind}")
        found.append(Moment(at, EVENT, number, what, event.id, is_exact))
    for known in versions:
        what = f"{known.file} changed" if known.size is not None else f"{known.file} was removed"
        if known.lost:
            what = f"{known.file} changed ({known.lost})"
        found.append(Moment(known.since, DOCUMENT, 0, what, known.file, known.source == RECORDED))
    for at, what in _verdicts(observations):
        found.append(Moment(at, FINDINGS, 0, what, exact=True))
    for change, what in _phases(loops):
        found.append(Moment(change.at, LOOP, 0, what, change.participant, True))
    for use in tool_uses(loops):
        what = f"{use.participant}'s agent: {use.what} ({use.status})"
        found.append(Moment(use.at, LOOP, 0, what, use.participant, True))
    # By time, then by rank, else in this order; a key for both would be an object for each.
    found.sort(key=lambda moment: _RANK[moment.kind])
    found.sort(key=lambda moment: moment.at)
    return _counted(found)


def _counted(ordered: list[Moment]) -> list[Moment]:
    """With the number of events at each moment."""
    counted, events = [], 0
    for moment in ordered:
        if moment.kind == EVENT:
            events = max(events, moment.events)
        same = moment.events == events
        counted.append(moment if same else replace(moment, events=events))
    return counted


def _verdicts(observations: Sequence[Seen]) -> list[tuple[float, str]]:
    """When the validator's findings became others."""
    found = []
    last = None
    for reading in observations:
        if last is not None and reading.findings != last:
            count = len(json.loads(reading.findings))
            found.append((reading.at, f"{count} finding{'' if count == 1 else 's'}"))
        last = reading.findings
    return found


def _phases(loops: Sequence[LoopChange]) -> list[tuple[LoopChange, str]]:
    """When a loop did something else than before."""
    found: list[tuple[LoopChange, str]] = []
    last: dict[str, str] = {}
    for change in loops:
        recorded = json.loads(change.content)
        state = "died" if recorded.get("died") else str(recorded.get("phase", "")).replace("_", " ")
        if last.get(change.participant) != state:
            last[change.participant] = state
            found.append((change, f"{change.participant}'s loop: {state}"))
    return found


def event_times(
    recorded: Sequence[float | None], ends: Sequence[int], states: Sequence[Known]
) -> list[tuple[float, bool]]:
    """When each event happened, never going back, and whether that was recorded.

    Args:
        recorded: what each event says of its time (seconds since 1970), None where nothing.
        ends: where each event's line ends in the log, in bytes.
        states: the recorded states of the log, oldest first, those after it was last rewritten.
    """
    times: list[tuple[float, bool]] = []
    latest = float("-inf")
    place, before = 0, None
    for at, end in zip(recorded, ends, strict=True):
        while place < len(states) and (states[place].size or 0) < end:
            before, place = states[place], place + 1
        if place < len(states) and (states[place].size or 0) == end:
            moment, exact = states[place].since, True  # the file's time is that of its last line
        elif place < len(states) and before is not None:
            earliest, last = before.since, states[place].since
            moment, exact = last if at is None else min(max(at, earliest), last), True
        else:  # it was there before anything was recorded, or came after the last state
            known = at if at is not None else latest
            moment = min(known, states[place].since) if place < len(states) else known
            exact = False
        if moment == float("-inf"):
            moment = states[0].since if states else 0.0
        latest = max(latest, moment)
        times.append((latest, exact))
    return times


STALL = 60.0  # seconds that a wait lasts at least to count as a stall
UNUSUAL = 4.0  # times as long as the median wait of the same collaboration


def stalls(moments: Sequence[Moment]) -> list[int]:
    """The places of the events before which nothing happened for unusually long (inferred)."""
    events = [place for place, moment in enumerate(moments) if moment.kind == EVENT]
    waits = [moments[b].at - moments[a].at for a, b in pairwise(events)]
    if not waits:
        return []
    least = max(STALL, UNUSUAL * median(waits))
    return [place for place, wait in zip(events[1:], waits, strict=True) if wait >= least]


def places_of_kind(moments: Sequence[Moment], kind: str) -> list[int]:
    """The places of the moments of a kind.

    Args:
        moments: all of them, in order.
        kind: ``event``, ``findings`` or ``stall`` (see `stalls`).

    Raises:
        KeyError: there is no such kind.
    """
    if kind == "stall":
        return stalls(moments)
    wanted = {"event": EVENT, "findings": FINDINGS}[kind]
    return [place for place, moment in enumerate(moments) if moment.kind == wanted]


def next_place(places: Sequence[int], here: int, direction: int) -> int | None:
    """The nearest of these places in a direction (1 or -1); None where there is none."""
    ahead = [place for place in places if (place - here) * direction > 0]
    if not ahead:
        return None
    return min(ahead) if direction > 0 else max(ahead)
