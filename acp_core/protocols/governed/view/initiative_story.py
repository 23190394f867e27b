"""What an initiative tells of its past: which workstream the others waited for, and when you were.

A workstream is waited for from when it is put to work in a phase until it reaches the barrier that
ends it; you are while a cross-repo gate is open, and from a failed resync or workstream until that
is mended. In the existing program's layout a workstream is waited for from a turn's dispatch until
its acceptance is seen. Source: governed protocol specification, "How it works".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.model import Event
from acp_core.model.past import Count, PastTurn, Story
from acp_core.protocols.governed.read.initiative import OWN, Initiative, existing_streams, logs
from acp_core.protocols.governed.schema import YOU, CoordinatorLine, Object, decode

_COUNTED = (
    ("barriers approved", ("barrier_approved",)),
    ("barriers rejected", ("barrier_rejected",)),
    ("resyncs that failed", ("resync_failed",)),
    ("workstreams that failed", ("workstream_failed",)),
)

_COUNTED_THERE = (("gates approved", ("phase_transition_approved", "run_completed")),)

"""Accepted turns are counted by workstream: the coordinator's own lines tell of the same turns."""

_ASKED = ("phase_transition_requested", "run_completion_requested")

_ANSWERED = ("phase_transition_approved", "run_completed")


def story(initiative: Initiative, events: Sequence[Event]) -> Story:
    """The turns in the order in which they ended, and counts of the whole.

    Args:
        initiative: as it was read.
        events: its timeline, oldest first.
    """
    own = initiative.layout == OWN
    past = _Past(initiative)
    for event in events:
        value = past.raw.get((event.source, event.line or 0), {})
        (past.feed if own else past.feed_there)(event, value)
    turns = (*past.turns, *(past.still() if initiative.status != "completed" else ()))
    kinds = [event.kind for event in events]
    counts = [
        Count(what, sum(map(kinds.count, of))) for what, of in (_COUNTED if own else _COUNTED_THERE)
    ]
    return Story(turns, (*counts, *_of_workstreams(initiative)))


class _Wait(NamedTuple):
    """Somebody is waited for, in the place of what: a workstream, or a reason why you are."""

    participant: str
    since: datetime | None
    event: str
    phase: str
    round: int


class _Past:
    """Goes through the events, and keeps who is waited for."""

    def __init__(self, initiative: Initiative) -> None:
        self.turns: list[PastTurn] = []
        self.raw = {
            (name, line.number): line.value for name, log in logs(initiative) for line in log.lines
        }
        self._work = {
            name: stream.phase for name, stream in existing_streams(initiative.config.value).items()
        }
        self._waits: dict[str, _Wait] = {}  # by what ends it
        self._rounds: dict[tuple[str, str], int] = {}

    def feed(self, event: Event, value: Object) -> None:
        """One line of the coordinator's ledger, in the specification's layout."""
        line = decode(CoordinatorLine, value)
        name, barrier, phase = line.workstream, line.barrier, line.phase
        match event.kind:
            case "workstream_linked":
                self._to_work(name, phase, event)
            case "workstream_at_barrier":
                self._end(name, event)
            case "barrier_reached":
                self._begin(f"gate:{barrier}", YOU, phase, event)
            case "barrier_approved":
                self._end(f"gate:{barrier}", event)
            case "barrier_rejected":
                self._end(f"gate:{barrier}", event)
                for each in line.workstreams:
                    self._to_work(each, phase, event)
            case "resync":
                self._end("resync", event)
                for crossing in line.crossings:
                    if crossing.to != crossing.origin:  # else it is completed
                        self._to_work(crossing.workstream, crossing.to, event)
            case "resync_failed":
                self._begin("resync", YOU, phase, event)
            case "workstream_failed":
                self._begin(f"failed:{name}", YOU, phase, event)
            case "workstream_recovered" | "workstream_mended":
                self._end(f"failed:{name}", event)
            case "super_run_completed":
                for key in list(self._waits):
                    self._end(key, event)

    def feed_there(self, event: Event, value: Object) -> None:
        """One line of the logs in the existing program's layout."""
        line = decode(CoordinatorLine, value)
        if event.kind == "turn_dispatched" and line.repo_id:
            phase = self._work.get(line.workstream_id, "")
            self._begin(line.turn, line.repo_id, phase, event)
        elif event.kind == "acceptance_projection":
            self._end(line.turn, event)
        elif event.kind in _ASKED:
            self._begin("gate", YOU, line.origin, event)
        elif event.kind in _ANSWERED:
            self._end("gate", event)

    def still(self) -> Iterator[PastTurn]:
        """The turns that last."""
        for wait in self._waits.values():
            yield PastTurn(*wait[:3], None, None, "", *wait[3:])

    def _to_work(self, name: str, phase: str, event: Event) -> None:
        if name:
            self._waits.pop(name, None)
            self._begin(name, name, phase, event)

    def _begin(self, key: str, participant: str, phase: str, event: Event) -> None:
        if key in self._waits:
            return
        place = (participant, phase)
        self._rounds[place] = self._rounds.get(place, 0) + 1
        round = self._rounds[place]
        self._waits[key] = _Wait(participant, event.at, event.id, phase, round)

    def _end(self, key: str, event: Event) -> None:
        wait = self._waits.pop(key, None)
        if wait is not None:
            end = (event.at, event.id, event.kind)
            self.turns.append(PastTurn(*wait[:3], *end, *wait[3:]))


def _of_workstreams(initiative: Initiative) -> Iterator[Count]:
    runs = [(stream.name, stream.run) for stream in initiative.workstreams if stream.run]
    for name, run in runs:
        yield Count("accepted turns", len(run.history.lines), participant=name)
    yield Count(
        "decisions", sum("id" in line.value for _, run in runs for line in run.ledger.lines)
    )
    objections = [each for _, run in runs for each in run.objections]
    yield Count("objections", len(objections))
    yield Count("open objections", sum(each.open for each in objections))
