"""The past of a run or an initiative: what its logs tell of it, whose turn it was, what is counted.

Where nothing was recorded, a run's own logs tell its phase, status, turns and gates: every event
bears the phase and the status after it; the lines of history, ledger and events bear their times,
and no log is ever rewritten. What documents held is not told.

In a run, a role is waited for from the dispatch of its turn until that is accepted, is rejected, or
comes to nothing: no file tells when a result was staged. You are waited for whenever nobody has a
turn, a gate waits or the run is blocked, until you decide or dispatch. Nobody is waited for at a
barrier.

In an initiative, a workstream is waited for from when it is put to work in a phase until it reaches
the barrier that ends it; you are while a cross-repo gate is open, and from a failed resync or
workstream until that is mended. In the existing program's layout a workstream is waited for from a
turn's dispatch until its acceptance is seen. Source: governed protocol specification, "Repo-local
governed run", "How it works" and "Files"; the events' shapes are the existing program's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from acp_core.model import Event
from acp_core.model.past import Count, Derivation, Evidence, Files, PastTurn, Story
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.initiative import OWN, Initiative, existing_streams, logs
from acp_core.protocols.governed.read.run import Run, bundle_folder
from acp_core.protocols.governed.schema import (
    YOU,
    CoordinatorLine,
    Object,
    RunEvent,
    decode,
    exit_gate,
    number,
    obj,
    text,
)
from acp_core.protocols.governed.state import initial

_LOGS = (schema.HISTORY, schema.LEDGER, schema.EVENTS)

_TIMES = ("accepted_at", "at", "timestamp", "created_at", "failed_at")

_TICK = timedelta(milliseconds=1)  # what a time in the files is rounded to

_STAYS = ("schema_version", "project_id", "provenance", "super_run_id", "barriers")

_DECIDED = ("gate_approved", "gate_rejected", "phase_entered", "run_completed")


class GovernedDerivation(Derivation):
    """Tells a run's state and logs as they were at a moment; of an initiative it tells nothing."""

    def derive(self, evidence: Evidence) -> Files:
        """See `Derivation`. A configuration that is not known of then is taken as the first known."""
        contents = {name: data for name, (data, _) in evidence.there.items()}
        known = dict(evidence.known) | contents
        events = known.get(schema.EVENTS)
        if events is None or schema.CONFIG not in known or schema.MULTI_CONFIG in known:
            return {}
        files: Files = {schema.CONFIG: known[schema.CONFIG]}
        files |= {name: _until(known[name], evidence.at) for name in _LOGS if name in known}
        happened = [value for value in _lines(_until(events, evidence.at)) if value]
        config, last = _parsed(known[schema.CONFIG]), _parsed(known.get(schema.STATE, b""))
        state = _state(config, last, happened)
        files[schema.STATE] = _document(state)
        files |= _assignments(state)
        return {name: data for name, data in files.items() if name not in contents}


def _until(log: bytes, at: datetime) -> bytes:
    """A log as far as it had got: up to the first line that is later."""
    end = 0
    for raw in log.splitlines(keepends=True):
        when = schema.moment(_parsed(raw), *_TIMES)
        if when is not None and when > at + _TICK:
            break
        end += len(raw)
    return log[:end]


def _lines(log: bytes) -> Iterator[Object]:
    for raw in log.splitlines():
        yield _parsed(raw)


def _parsed(data: bytes) -> Object:
    """A JSON object, empty where there is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _document(value: Object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace")


def _state(config: Object, last: Object, events: Iterable[Object]) -> Object:
    """The state to which the events lead. ``last`` is a state of the same run, for what stays."""
    state = initial(config, "")
    state |= {key: last[key] for key in _STAYS if key in last}
    for value in events:
        _feed(state, config, value)
    return state


def _feed(state: Object, config: Object, event: Object) -> None:
    """One event: what it says itself, and what follows from its kind."""
    kind, at, payload = event.get("event_type"), event.get("timestamp"), obj(event, "payload")
    state["run_id"] = event.get("run_id") or state["run_id"]
    for key in ("phase", "status"):
        if isinstance(event.get(key), str):
            state[key] = event[key]
    if kind == "run_started":
        state |= {"created_at": at, "phase_entered_at": at}
    elif kind == "phase_entered":
        state["phase_entered_at"] = at
    if kind in _DECIDED:
        state |= {"pending_phase_transition": None, "pending_run_completion": None}
    if kind == "gate_approved" and (gate := text(payload, "gate_id", 120)):
        state["phase_gate_status"][gate] = "passed"
    if kind == "gate_pending":
        _ask(state, config, payload, at)
    _block(state, event)
    _turn(state, config, event)


def _ask(state: Object, config: Object, payload: Object, at: object) -> None:
    """A gate waits for a human."""
    phase = text(payload, "from", 80) or text(state, "phase", 80)
    asked: Object = {
        "gate": text(payload, "gate_id", 120) or exit_gate(config, phase),
        "requested_by_turn": payload.get("requested_by_turn") or state["last_completed_turn_id"],
        "requested_at": at,
    }
    if text(payload, "gate_type", 40) == "run_completion":
        state["pending_run_completion"] = asked
    else:
        state["pending_phase_transition"] = asked | {"from": phase, "to": payload.get("to")}


def _block(state: Object, event: Object) -> None:
    """What blocks the run, as far as the events tell it; nothing once it goes on."""
    payload, at = obj(event, "payload"), event.get("timestamp")
    if state["status"] != "blocked":
        state |= {"blocked_on": None, "blocked_reason": None}
        return
    category = text(payload, "category", 80)
    on = text(payload, "blocked_on", 300) or state["blocked_on"] or category
    if category or not state["blocked_reason"]:
        recovery = {"typed_reason": category, "owner": "human", "recovery_action": "",
                    "turn_retained": False, "detail": text(payload, "reason", 300)}  # fmt: skip
        reason = {"category": category, "recovery": recovery, "blocked_at": at, "turn_id": None}
        state["blocked_reason"] = reason
    state["blocked_on"] = on or "unknown"


def _turn(state: Object, config: Object, event: Object) -> None:
    """What becomes of the turn that an event is about."""
    kind, at, about = event.get("event_type"), event.get("timestamp"), obj(event, "turn")
    id, active = text(about, "turn_id", 80), state["active_turns"]
    if kind == "turn_dispatched" and id:
        role = text(about, "role_id", 80)
        before = active.get(id, {"attempt": 1, "assigned_at": at})
        active[id] = before | {
            "turn_id": id, "run_id": state["run_id"], "assigned_role": role, "status": "dispatched",
            "runtime_id": obj(obj(config, "roles"), role).get("runtime"), "dispatched_at": at,
        }  # fmt: skip
    elif kind == "turn_accepted":
        active.pop(id, None)
        state["last_completed_turn_id"] = id or state["last_completed_turn_id"]
    elif id in active:
        reason = text(obj(event, "payload"), "reason", 500)
        _changed(active[id], str(kind), reason, obj(event, "payload"))


def _changed(turn: Object, kind: str, reason: str, payload: Object) -> None:
    """A turn that is still under way, after an event about it."""
    match kind:
        case "turn_rejected" if payload.get("retrying") is True:
            turn |= {"status": "retrying", "attempt": (number(turn, "attempt") or 1) + 1}
        case "turn_rejected":
            turn["status"] = "failed"
        case "turn_start_failed":
            turn |= {"status": "failed_start", "failed_start_reason": reason}
        case "acceptance_failed":
            turn |= {"status": "failed_acceptance", "failure_reason": reason}
        case "turn_conflicted":
            turn["status"] = "conflicted"


def _assignments(state: Object) -> Files:
    """The bundles of the turns under way: that they were there follows from their dispatch."""
    return {
        f"{bundle_folder(id)}/ASSIGNMENT.json": _document(
            {"run_id": state["run_id"], "turn_id": id, "role": turn["assigned_role"]}
        )
        for id, turn in state["active_turns"].items()
        if schema.is_id(id)
    }


_ROLE_ENDS = ("turn_accepted", "turn_rejected", "turn_start_failed", "turn_conflicted")

_DECISIONS = (
    "gate_approved", "gate_rejected", "human_escalation_resolved", "turn_dispatched",
    "turn_accepted", "turn_rejected",
)  # fmt: skip

_BLOCKS = ("run_blocked", "escalation_raised", "operator_escalated")

_WANTS_YOU = ("gate_pending", "turn_start_failed", "turn_conflicted", *_BLOCKS)

_COUNTED_OF_RUN = (
    ("accepted turns", "turn_accepted"),
    ("rejected turns", "turn_rejected"),
    ("gates approved", "gate_approved"),
    ("gates rejected", "gate_rejected"),
    ("gates not met", "gate_failed"),
)


class _RunWait(NamedTuple):
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


def run_story(run: Run, events: Sequence[Event]) -> Story:
    """The turns in the order in which they ended, and counts of the whole.

    Args:
        run: the run as it was read.
        events: its timeline, oldest first.
    """
    past = _RunPast(run)
    turns = tuple(past.turns(events))
    return Story(turns, (*_run_counts(run, events), Count("blocks", past.blocks)))


def durations(turns: Sequence[PastTurn], participant: str) -> list[float]:
    """How many seconds the turns of a participant took that ended, oldest first."""
    return [
        (turn.ended - turn.since).total_seconds()
        for turn in turns
        if turn.participant == participant and turn.event and turn.since and turn.ended
    ]


class _RunPast:
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
        self._roles: dict[str, _RunWait] = {}  # by the turn's id
        self._held: dict[str, _RunWait] = {}  # turns that go on once the run is unblocked
        self._you: _RunWait | None = None
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
            self._roles[turn] = _RunWait(
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
            self._you = self._you or _RunWait(YOU, event.at, event.id, self._phase)

    def _stop(self, event: Event) -> Iterator[PastTurn]:
        """Turns of roles that nobody waits for any more, although nothing became of them."""
        for wait in self._roles.values():
            yield wait.ended(event.at, None)


def _run_counts(run: Run, events: Sequence[Event]) -> Iterator[Count]:
    kinds = [event.kind for event in events]
    for what, kind in _COUNTED_OF_RUN:
        yield Count(what, kinds.count(kind))
    yield Count("decisions", kinds.count("decision"))
    yield Count("objections", len(run.objections))
    yield Count("open objections", sum(each.open for each in run.objections))


_COUNTED_OF_INITIATIVE = (
    ("barriers approved", ("barrier_approved",)),
    ("barriers rejected", ("barrier_rejected",)),
    ("resyncs that failed", ("resync_failed",)),
    ("workstreams that failed", ("workstream_failed",)),
)

_COUNTED_IN_EXISTING = (("gates approved", ("phase_transition_approved", "run_completed")),)

"""Accepted turns are counted by workstream: the coordinator's own lines tell of the same turns."""

_GATE_ASKED = ("phase_transition_requested", "run_completion_requested")

_GATE_ANSWERED = ("phase_transition_approved", "run_completed")


def initiative_story(initiative: Initiative, events: Sequence[Event]) -> Story:
    """The turns in the order in which they ended, and counts of the whole.

    Args:
        initiative: as it was read.
        events: its timeline, oldest first.
    """
    own = initiative.layout == OWN
    past = _InitiativePast(initiative)
    for event in events:
        value = past.raw.get((event.source, event.line or 0), {})
        (past.feed if own else past.feed_there)(event, value)
    turns = (*past.turns, *(past.still() if initiative.status != "completed" else ()))
    kinds = [event.kind for event in events]
    counts = [
        Count(what, sum(map(kinds.count, of)))
        for what, of in (_COUNTED_OF_INITIATIVE if own else _COUNTED_IN_EXISTING)
    ]
    return Story(turns, (*counts, *_of_workstreams(initiative)))


class _InitiativeWait(NamedTuple):
    """Somebody is waited for, in the place of what: a workstream, or a reason why you are."""

    participant: str
    since: datetime | None
    event: str
    phase: str
    round: int


class _InitiativePast:
    """Goes through the events, and keeps who is waited for."""

    def __init__(self, initiative: Initiative) -> None:
        self.turns: list[PastTurn] = []
        self.raw = {
            (name, line.number): line.value for name, log in logs(initiative) for line in log.lines
        }
        self._work = {
            name: stream.phase for name, stream in existing_streams(initiative.config.value).items()
        }
        self._waits: dict[str, _InitiativeWait] = {}  # by what ends it
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
        elif event.kind in _GATE_ASKED:
            self._begin("gate", YOU, line.origin, event)
        elif event.kind in _GATE_ANSWERED:
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
        self._waits[key] = _InitiativeWait(participant, event.at, event.id, phase, round)

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
