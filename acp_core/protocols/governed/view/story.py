"""What a governed run tells of its past: whose turn it was when, and what can be counted.

A role is waited for from the dispatch of its turn until that is accepted, is rejected, or comes to
nothing: no file tells when a result was staged. You are waited for whenever nobody has a turn, a
gate waits or the run is blocked, until you decide or dispatch. Nobody is waited for at a barrier.
Source: governed runs specification, "Repo-local governed run".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.model import Event
from acp_core.model.past import Count, PastTurn, Story
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import YOU, Object, RunEvent, decode

_ROLE_ENDS = ("turn_accepted", "turn_rejected", "turn_start_failed", "turn_conflicted")
_DECISIONS = (
    "gate_approved", "gate_rejected", "human_escalation_resolved", "turn_dispatched",
    "turn_accepted", "turn_rejected",
)  # fmt: skip
_BLOCKS = ("run_blocked", "escalation_raised", "operator_escalated")
_WANTS_YOU = ("gate_pending", "turn_start_failed", "turn_conflicted", *_BLOCKS)
_COUNTED = (
    ("accepted turns", "turn_accepted"),
    ("rejected turns", "turn_rejected"),
    ("gates approved", "gate_approved"),
    ("gates rejected", "gate_rejected"),
    ("gates not met", "gate_failed"),
)


class _Wait(NamedTuple):
    """Somebody is waited for."""

    participant: str
    since: datetime | None
    event: str
    phase: str
    attempt: int = 1

    def ended(self, at: datetime | None, event: Event | None) -> PastTurn:
        """The turn that it was; it goes on where ``at`` is None."""
        id, kind = (event.id, event.kind) if event else (None, "")
        return PastTurn(
            self.participant, self.since, self.event, at, id, kind, self.phase, self.attempt
        )


def story(run: Run, events: Sequence[Event]) -> Story:
    """The turns in the order in which they ended, and counts of the whole.

    Args:
        run: the run as it was read.
        events: its timeline, oldest first.
    """
    past = _Past(run)
    turns = tuple(past.turns(events))
    return Story(turns, (*_counts(run, events), Count("blocks", past.blocks)))


def durations(turns: Sequence[PastTurn], participant: str) -> list[float]:
    """How many seconds the turns of a participant took that ended, oldest first."""
    return [
        (turn.ended - turn.since).total_seconds()
        for turn in turns
        if turn.participant == participant and turn.event and turn.since and turn.ended
    ]


class _Past:
    """Goes through the events, and keeps who is waited for; ``blocks`` counts the blocks."""

    def __init__(self, run: Run) -> None:
        self.blocks = 0
        self._blocked = False  # several events may tell of one block
        self._run = run
        self._raw = {
            (name, line.number): line.value
            for name, log in (
                (schema.HISTORY, run.history),
                (schema.LEDGER, run.ledger),
                (schema.EVENTS, run.events),
            )
            for line in log.lines
        }
        self._phase = run.phases[0] if run.phases else ""
        self._roles: dict[str, _Wait] = {}  # by the turn's id
        self._held: dict[str, _Wait] = {}  # turns that go on once the run is unblocked
        self._you: _Wait | None = None
        self._attempts: dict[str, int] = {}

    def turns(self, events: Sequence[Event]) -> Iterator[PastTurn]:
        """The turns, in the order in which they ended; those that last come at the end."""
        for event in events:
            yield from self._feed(event, self._raw.get((event.source, event.line or 0), {}))
        if self._run.status not in ("active", "paused", "blocked", "idle"):
            return
        active = {turn.id for turn in self._run.turns}
        for turn, wait in self._roles.items():
            if turn in active:
                yield wait.ended(None, None)
        if self._you is not None:
            yield self._you.ended(None, None)

    def _feed(self, event: Event, value: Object) -> Iterator[PastTurn]:
        line = decode(RunEvent, value)
        kind, turn = event.kind, line.turn_id
        if kind == "phase_entered":
            self._phase = line.to or self._phase
            if self._you is not None and self._you.since == event.at:
                self._you = self._you._replace(phase=self._phase)
        if kind in _ROLE_ENDS:
            self._held.pop(turn, None)
            wait = self._roles.pop(turn, None)
            if wait is not None:
                yield wait.ended(event.at, event)
        if kind in _DECISIONS and self._you is not None:
            yield self._you.ended(event.at, event)
            self._you = None
        if kind in _BLOCKS:
            self.blocks += not self._blocked
            self._blocked = True
        elif kind in _DECISIONS:
            self._blocked = False
        if kind == "turn_dispatched" and turn:
            self._attempts[turn] = self._attempts.get(turn, 0) + 1
            self._roles[turn] = _Wait(
                line.role, event.at, event.id, self._phase, self._attempts[turn]
            )
        elif kind == "escalation_resolved" and value.get("turn_dropped") is True:
            self._held.clear()
        elif kind == "human_escalation_resolved":
            for id, wait in self._held.items():
                self._roles[id] = wait._replace(since=event.at, event=event.id)
            self._held.clear()
        elif kind in _BLOCKS:
            yield from self._stop(event)
            self._held.update(self._roles)
            self._roles.clear()
        elif kind == "run_completed":
            yield from self._stop(event)
            self._roles.clear()
        if kind == "run_completed" or (kind == "run_blocked" and line.is_at_barrier):
            if self._you is not None and self._you.since != event.at:
                yield self._you.ended(event.at, None)
            self._you = None
        elif kind in _WANTS_YOU or (
            not self._roles and kind in (*_DECISIONS, "run_started", "phase_entered")
        ):
            self._you = self._you or _Wait(YOU, event.at, event.id, self._phase)

    def _stop(self, event: Event) -> Iterator[PastTurn]:
        """Turns of roles that nobody waits for any more, although nothing became of them."""
        for wait in self._roles.values():
            yield wait.ended(event.at, None)


def _counts(run: Run, events: Sequence[Event]) -> Iterator[Count]:
    kinds = [event.kind for event in events]
    for what, kind in _COUNTED:
        yield Count(what, kinds.count(kind))
    yield Count("decisions", kinds.count("decision"))
    yield Count("objections", len(run.objections))
    yield Count("open objections", sum(each.open for each in run.objections))
