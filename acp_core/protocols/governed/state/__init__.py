"""The state machine of a governed run: pure functions from a state to the next one.

Source: governed protocol specification, "Repo-local governed run". Nothing here reads or writes
files; what a step adds to which log stands in its `Move`.
"""

from __future__ import annotations

import copy
from datetime import datetime
from typing import NamedTuple

from acp_core.model.errors import Refused
from acp_core.protocols.governed.schema import Object, is_id, obj, objects, strings, text

OPERATION_MARK = "ACP_GOVERNED_TURN"
"""The variable that tells an agent's program, and all that it starts, whose turn it is."""


class Move(NamedTuple):
    """What a step makes of a run: its state, and the lines that follow in its logs."""

    state: Object
    ledger: tuple[Object, ...] = ()
    events: tuple[Object, ...] = ()
    history: tuple[Object, ...] = ()

    def adding(self, *, ledger: tuple[Object, ...] = (), events: tuple[Object, ...] = ()) -> Move:
        """The same with more lines."""
        return self._replace(ledger=self.ledger + ledger, events=self.events + events)


def format_time(at: datetime) -> str:
    """A time as the files hold it, in milliseconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def copied(state: Object) -> Object:
    """The state to change: nothing of it is shared with the one before."""
    return copy.deepcopy(state)


def event(
    state: Object, kind: str, at: str, turn: Object | None = None, **payload: object
) -> Object:
    """A line for the events, without its id, as of the state after the step."""
    of = None
    if turn:
        of = {"turn_id": turn.get("turn_id"), "role_id": turn.get("assigned_role")}
    return {
        "event_type": kind,
        "timestamp": at,
        "run_id": state.get("run_id"),
        "phase": state.get("phase"),
        "status": state.get("status"),
        "turn": of,
        "intent_id": None,
        "payload": payload,
    }


def ledger_line(state: Object, kind: str, at: str, **more: object) -> Object:
    """A line for the ledger that is no decision: it has a type, and never an ``id``."""
    return {
        "type": kind,
        "at": at,
        "run_id": state.get("run_id"),
        "phase": state.get("phase"),
        **more,
    }


def phases(config: Object) -> tuple[str, ...]:
    """The phases in order: the keys of the routing."""
    return tuple(obj(config, "routing"))


def routing(config: Object, phase: object) -> Object:
    """What the configuration says of a phase."""
    return objects(config.get("routing")).get(str(phase), {})


def by_acp(state: Object) -> bool:
    """Whether acp made the run, so that every transition and the completion need a human."""
    return obj(state, "provenance").get("created_by") == "acp"


def exit_gate(config: Object, phase: str) -> str:
    """The gate that ends a phase; a phase without one ends through a gate named after it."""
    raw = routing(config, phase).get("exit_gate")
    return raw if isinstance(raw, str) and raw else f"{phase}_exit"


def roles_of(config: Object, phase: str) -> tuple[str, ...]:
    """The roles that may take a turn in a phase: its entry role first; all where none is named."""
    defined = objects(config.get("roles"))
    route = routing(config, phase)
    entry = route.get("entry_role")
    named = ([entry] if isinstance(entry, str) else []) + strings(route, "allowed_next_roles")
    found = tuple(dict.fromkeys(name for name in named if name in defined))
    return found or tuple(defined)


def next_role(config: Object, state: Object) -> str:
    """The role whose turn comes next: the recommended one, else the phase's first.

    Raises:
        Refused: the configuration defines no role.
    """
    allowed = roles_of(config, str(state.get("phase")))
    if not allowed:
        raise Refused("the configuration defines no role")
    recommended = state.get("next_recommended_role")
    return recommended if isinstance(recommended, str) and recommended in allowed else allowed[0]


def turns_of(state: Object) -> dict[str, Object]:
    """The turns that are under way, by their ids, which become names of folders.

    Raises:
        Refused: an id is none, or a turn bears another one.
    """
    found = objects(state.get("active_turns"))
    for id, turn in found.items():
        if not is_id(id) or turn.get("turn_id") != id:
            raise Refused(f"the state names a turn {id!r}, which is not a turn id: correct it")
    return found


def active_turn(state: Object, turn_id: str | None = None) -> Object:
    """The turn that is under way.

    Raises:
        Refused: there is none, there are several and none is named, or it is another one.
    """
    turns = turns_of(state)
    if turn_id is not None:
        if turn_id not in turns:
            raise Refused(f"no active turn {turn_id}; active: {', '.join(turns) or 'none'}")
        return turns[turn_id]
    if not turns:
        raise Refused("no turn is active")
    if len(turns) > 1:
        raise Refused(f"several turns are active: name one of {', '.join(turns)}")
    return next(iter(turns.values()))


def initial(config: Object, at: str, *, super_run_id: str | None = None) -> Object:
    """The state of a run that has not begun."""
    order = phases(config)
    state: Object = {
        "schema_version": "1.1",
        "run_id": None,
        "project_id": text(obj(config, "project"), "id", 200),
        "status": "idle",
        "phase": order[0] if order else "planning",
        "accepted_integration_ref": None,
        "active_turns": {},
        "turn_sequence": 0,
        "last_completed_turn_id": None,
        "blocked_on": None,
        "blocked_reason": None,
        "escalation": None,
        "queued_phase_transition": None,
        "queued_run_completion": None,
        "last_gate_failure": None,
        "phase_gate_status": {exit_gate(config, phase): "pending" for phase in order},
        "budget_reservations": {},
        "budget_status": {"spent_usd": 0, "remaining_usd": None},
        "provenance": {
            "trigger": "manual",
            "parent_run_id": None,
            "trigger_reason": None,
            "intake_intent_id": None,
            "created_by": "acp",
        },
    }
    if super_run_id is not None:
        state["super_run_id"] = super_run_id
    return state


def begun(state: Object, run_id: str, at: str) -> Move:
    """The run begins in its first phase.

    Raises:
        Refused: it has begun already.
    """
    if state.get("status") != "idle":
        raise Refused(f'Cannot begin the run: status is "{state.get("status")}", expected "idle"')
    new = copied(state)
    new |= {"run_id": run_id, "status": "active", "created_at": at, "phase_entered_at": at}
    return Move(new, events=(event(new, "run_started", at, provenance=new.get("provenance")),))


def is_named(state: Object) -> bool:
    """Whether the run has an id: one that another program migrated may have none."""
    id = state.get("run_id")
    return isinstance(id, str) and bool(id)


def named(state: Object, run_id: str, at: str) -> Move:
    """The run with an id, and its turns with it: no result could be accepted without."""
    new = copied(state)
    new["run_id"] = run_id
    for turn in turns_of(new).values():
        turn["run_id"] = run_id
    return Move(new, events=(event(new, "run_named", at, provenance=new.get("provenance")),))
