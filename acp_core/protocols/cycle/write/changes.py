"""What a person changes in a cycle: pure functions of its state, which they change in place.

Source: development cycle specification, "Escalation Path" and "Conflict Resolution". Each change
leaves a request; the orchestrator marks it when it has picked it up. All raise `Refused` where
the cycle is not in a condition for it.

Another account asks for one by the name of its act (`requested_edit`): that comes from a stranger's
file, so it is one of these changes or it is refused, and it is made by the orchestrator, which is
the only one that writes while it conducts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from acp_core.model.errors import Refused
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import (
    AgentState,
    Blocker,
    Decision,
    Object,
    coordination_of,
    iteration_of,
    one_line,
    parse_part,
    stamp_of,
)
from acp_core.protocols.cycle.state import ACCEPTED
from acp_core.protocols.cycle.write.layout import note, record, section

KINDS = ("clarification", "bug_report", "requirement_update", "issue_fix")

LIMIT = 1_000  # iterations at most

REQUESTS = "requests"

TAKEN = "Accept it as it is"


def entries(state: Object, key: str) -> list[Object]:
    """The entries of a list of the coordination."""
    return schema.objects(section(state)[key])


def entry(state: Object, key: str, id: str) -> Object | None:
    """The entry of a list of the coordination that has this id."""
    return next((e for e in entries(state, key) if schema.text(e.get("id")) == id), None)


def append(state: Object, key: str, value: Object) -> None:
    """Add an entry to a list of the coordination."""
    held = section(state)[key]
    assert isinstance(held, list)
    held.append(value)


def grow(state: Object, key: str, value: object) -> None:
    """Add an entry to a list of the state; a list is made where there is none."""
    held = state.get(key)
    state[key] = [*(held if isinstance(held, list) else []), value]


def add_error(state: Object, now: datetime, phase: str, error: str) -> None:
    """Record why a run of an agent came to nothing."""
    grow(state, "phase_errors", {"phase": phase, "error": error, "timestamp": stamp_of(now)})


def new_id(state: Object, key: str, prefix: str) -> str:
    """An id that no entry of a list has."""
    taken = [schema.text(each.get("id")) for each in entries(state, key)]
    number = len(taken) + 1
    while f"{prefix}-{number:03}" in taken:
        number += 1
    return f"{prefix}-{number:03}"


def request(state: Object, now: datetime, action: str, detail: str) -> None:
    """Leave word of what a person asked for."""
    held = section(state)
    if not isinstance(held.get(REQUESTS), list):
        held[REQUESTS] = []
    made: Object = {"id": new_id(state, REQUESTS, "REQ"), "action": action}
    made |= {"detail": one_line(detail), "by": "user", "at": stamp_of(now)}
    append(state, REQUESTS, made)
    note(state, now, "user", f"{action}: {one_line(detail)}" if detail else action)


def unheard(state: Object) -> list[Object]:
    """The requests that no orchestrator has picked up."""
    return [each.raw for each in coordination_of(state).open_requests]


def open_decisions(state: Object) -> list[Object]:
    """The decisions that nobody has made."""
    return [each.raw for each in coordination_of(state).open_decisions]


def open_blockers(state: Object) -> list[Object]:
    """The blockers that are open."""
    return [each.raw for each in coordination_of(state).open_blockers]


def add_feedback(
    state: Object,
    now: datetime,
    source: str,
    target: str,
    content: str,
    kind: str,
    **more: object,
) -> Object:
    """Add feedback to an agent; it is told it at its next run."""
    made: Object = {
        "id": new_id(state, "feedback_log", "FB"),
        "timestamp": stamp_of(now),
        "source": source,
        "target": target,
        "content": content,
        "type": kind,
        "iteration": iteration_of(state),
        **more,
    }
    append(state, "feedback_log", made)
    note(state, now, source, f"feedback to {target.upper()}: {one_line(content)}")
    return made


def feedback(state: Object, now: datetime, target: str, content: str, kind: str) -> None:
    """A person tells an agent something."""
    _needs_agent(state, target)
    if not content.strip():
        raise Refused("give the feedback text")
    if kind not in KINDS:
        raise Refused(f"{kind!r} is not a kind of feedback (kinds: {', '.join(KINDS)})")
    _needs(state, "created", "running", "paused")
    add_feedback(state, now, "user", target, content.strip(), kind)
    request(state, now, "feedback", f"to {target}")


def decide(
    state: Object, now: datetime, id: str, choice: str, rationale: str = "", impact: str = ""
) -> None:
    """A person makes a decision: ``choice`` is the number of an option, or words."""
    decision = entry(state, "pending_decisions", id)
    waiting = coordination_of(state).open_decisions
    names = ", ".join(each.id for each in waiting) or "none"
    if decision is None:
        raise Refused(f"no decision {id!r} (pending: {names})")
    asked = parse_part(Decision, decision)
    if not asked.is_open:
        raise Refused(f"{id} is already decided: {asked.chosen_option or 'choice unknown'}")
    chosen, offered = choice.strip(), asked.options
    if not chosen:
        raise Refused("choose an option by its number, or give the decision in words")
    if chosen.isdecimal() and offered:
        if not 1 <= int(chosen[:6]) <= len(offered):
            raise Refused(f"{id} has the options 1 to {len(offered)}")
        chosen = offered[int(chosen[:6]) - 1]
    if asked.kind in ("limit", "gate", "agent", "unproven") and chosen not in offered:
        raise Refused(f"{id} needs one of its options, by number: 1 to {len(offered)}")
    decision |= {
        "status": "made",
        "made_by": "user",
        "chosen_option": chosen,
        "made_at": stamp_of(now),
    }
    if rationale.strip():
        decision["rationale"] = rationale.strip()
    if impact.strip():
        decision["impact"] = impact.strip()
    record(
        state, {"timestamp": stamp_of(now), "decision": id, "chosen_option": chosen, "by": "user"}
    )
    linked = entry(state, "blockers", asked.blocker)
    if linked is None and not asked.kind and len(waiting) == len(open_blockers(state)) == 1:
        linked = open_blockers(state)[0]  # another's escalation: its blocker and its decision
        decision["blocker"] = linked.get("id")
    if linked is not None and linked in open_blockers(state):
        linked |= {
            "status": "resolved",
            "resolution": f"{id}: {chosen}",
            "resolved_at": stamp_of(now),
        }
    if state.get("status") == "paused" and not open_decisions(state):
        state["status"] = "running"
    request(state, now, "decide", f"{id}: {chosen}")


def resolve(
    state: Object, now: datetime, id: str, resolution: str, workaround: bool = False
) -> None:
    """A person says how a blocker is gone."""
    blocker = entry(state, "blockers", id)
    if blocker is None or not parse_part(Blocker, blocker).is_open:
        names = ", ".join(each.id for each in coordination_of(state).open_blockers) or "none"
        raise Refused(f"no open blocker {id!r} (open: {names})")
    said = resolution.strip()
    if not said:
        raise Refused("give the resolution")
    word = "workaround" if workaround else "resolved"
    blocker |= {
        "status": word,
        "resolution": said,
        "resolved_by": "user",
        "resolved_at": stamp_of(now),
    }
    for each in open_decisions(state):
        if each.get("blocker") == id:
            made = {"status": "made", "made_by": "user", "chosen_option": said}
            each.update(made | {"made_at": stamp_of(now), "free": True})
            row: Object = {"timestamp": stamp_of(now), "decision": each.get("id"), "by": "user"}
            record(state, row | {"chosen_option": said})
    reporter = parse_part(Blocker, blocker).reported_by.lower()
    is_asked = any(each.get("blocker") == id for each in entries(state, "pending_decisions"))
    if reporter in schema.AGENTS and not is_asked and state.get("status") in ("running", "paused"):
        text = f"{id} is {word}: {said}"
        add_feedback(state, now, "user", reporter, text, "clarification", blocker=id)
    if state.get("status") == "paused" and not open_decisions(state):
        state["status"] = "running"
    request(state, now, "resolve", f"{id}: {said}")


def extend(state: Object, now: datetime, extension: str, limit: int | None = None) -> None:
    """A person asks for more: another iteration begins, in which every agent has its turn.

    ``limit`` allows so many iterations in all, where given.
    """
    if limit is not None:
        raise_limit(state, now, limit)
    said = extension.strip()
    if not said:
        raise Refused("give the task to add")
    _needs(state, "completed", "running", "paused", "failed")
    if open_decisions(state):
        raise Refused("a decision is pending: decide it first")
    number = iteration_of(state) + 1
    allowed = schema.count(state.get("max_iterations")) or number
    if number > allowed:
        raise Refused(
            f"iteration {number} is above the limit of {allowed}: raise the limit (--limit)"
        )
    if _at_work(state):
        raise Refused("an agent is working: pause first, or send feedback")
    description = schema.text(state.get("description"))
    state["description"] = f"{description}\n\n--- ITERATION {number} ---\n{said}"
    grow(state, "task_history", said)
    for name in schema.AGENTS:
        add_feedback(state, now, "user", name, said, "requirement_update")
    begin_iteration(state, now, schema.AGENTS, extension=said)
    state["status"] = "running"
    for key in ("completed_at", "failure_reason"):
        state.pop(key, None)
    request(state, now, "extend", said)


def begin_iteration(
    state: Object, now: datetime, agents: tuple[str, ...], extension: str = ""
) -> None:
    """Begin the next iteration, in which these agents have something to do."""
    number = iteration_of(state) + 1
    state["current_iteration"] = number
    made: Object = {"number": number, "started_at": stamp_of(now), "agent_results": {}}
    made |= {"extension": extension} if extension else {}
    grow(state, "iterations", made)
    for name in agents:
        agent = agent_of(state, name)
        agent |= {"status": "idle", "attempts": 0}
        agent.pop("error", None)
    first = next((name for name in schema.AGENTS if name in agents), "ra")
    state["current_phase"] = first
    if number > 1:
        state["raise_versions"] = True
    note(state, now, "orchestrator", f"iteration {number} begins, with {', '.join(agents)}")


def pause(state: Object, now: datetime) -> None:
    """A person asks it to wait; who is at work ends its run."""
    _needs(state, "running")
    state["status"] = "paused"
    request(state, now, "pause", "")


def resume(state: Object, now: datetime) -> None:
    """A person lets it go on."""
    _needs(state, "paused", "created", "failed")
    waiting = coordination_of(state).open_decisions
    if waiting:
        raise Refused(f"{waiting[0].id} is pending: decide it to resume the cycle")
    state["status"] = "running"
    for key in ("completed_at", "failure_reason"):
        state.pop(key, None)
    for name in schema.AGENTS:
        if _status(state, name) == "failed":
            agent_of(state, name).update(status="idle", attempts=0)
    request(state, now, "resume", "")


def accept(state: Object, now: datetime, reason: str = "") -> None:
    """A person takes it as it is, failing tests and all: what they showed is left as it stands."""
    _needs(state, "running", "paused", "completed")
    waiting = coordination_of(state).open_decisions
    if waiting:
        raise Refused(f"{waiting[0].id} is pending: decide it first")
    if _at_work(state):
        raise Refused("an agent is working: pause first")
    number = iteration_of(state)
    if not number:
        raise Refused("no finished work to accept yet")
    made = entries(state, "pending_decisions")
    if any(each.get("kind") == ACCEPTED and each.get("iteration") == number for each in made):
        raise Refused(f"iteration {number} is already accepted")
    id = new_id(state, "pending_decisions", "DEC")
    said = {"id": id, "description": f"Is iteration {number} good enough?", "options": [TAKEN],
            "status": "implemented", "kind": ACCEPTED, "asked_at": stamp_of(now), "made_by": "user",
            "chosen_option": TAKEN, "made_at": stamp_of(now), "iteration": number}  # fmt: skip
    append(state, "pending_decisions", said | ({"rationale": reason.strip()} if reason else {}))
    record(
        state, {"timestamp": stamp_of(now), "decision": id, "chosen_option": TAKEN, "by": "user"}
    )
    if state.get("status") != "completed":
        state |= {"status": "completed", "current_phase": "complete", "completed_at": stamp_of(now)}
        for each in schema.objects(state.get("iterations"))[-1:]:
            each |= {"completed_at": stamp_of(now), "resolved": False}
    request(state, now, "accept", f"{id}: iteration {number} as it is")
    unheard(state)[-1]["picked_up_at"] = stamp_of(now)  # it has its effect without an orchestrator


def stop(state: Object, now: datetime, reason: str = "") -> None:
    """A person ends it: failed, with the reason."""
    _needs(state, "created", "running", "paused")
    said = one_line(reason) or "Stopped by the user"
    state |= {"status": "failed", "failure_reason": said, "completed_at": stamp_of(now)}
    request(state, now, "stop", said)


def rerun(state: Object, now: datetime, target: str, reason: str = "") -> None:
    """A person has an agent do its work again, and those that depend on it after it."""
    _needs_agent(state, target)
    _needs(state, "running", "paused")
    if _status(state, target) == "running":
        raise Refused(f"{target} is working")
    below = schema.AGENTS[schema.AGENTS.index(target) :]
    busy = [name for name in below if _status(state, name) == "running"]
    if busy:
        raise Refused(f"{busy[0]} is working and depends on {target}")
    for name in below:
        agent_of(state, name).update(status="idle", attempts=0)
    state["current_phase"] = target
    if reason.strip():
        add_feedback(state, now, "user", target, reason.strip(), "issue_fix")
    request(state, now, "rerun", target)


def raise_limit(state: Object, now: datetime, limit: int) -> None:
    """A person allows more iterations."""
    current = iteration_of(state)
    if not max(1, current) <= limit <= LIMIT:
        raise Refused(f"the limit must be a number from {max(1, current)} to {LIMIT}")
    state["max_iterations"] = limit
    request(state, now, "limit", str(limit))
    if state.get("status") not in ("created", "running", "paused"):
        unheard(state)[-1]["picked_up_at"] = stamp_of(now)  # no orchestrator will


def agent_of(state: Object, name: str) -> Object:
    """An agent's part of the state, made where there is none."""
    agents = state.get("agents")
    if not isinstance(agents, dict):
        agents = state["agents"] = {}
    if not isinstance(agents.get(name), dict):
        agents[name] = {"status": "idle", "output_files": [], "iterations_completed": 0}
    made: Object = agents[name]
    return made


def agent_state(state: Object, name: str) -> AgentState:
    """What a state says of an agent: idle where it says nothing."""
    return parse_part(AgentState, agent_of(state, name))


def _status(state: Object, name: str) -> str:
    return agent_state(state, name).status.lower()


def _at_work(state: Object) -> bool:
    """Whether an agent is at work; in a cycle that is over none is, whatever it is said to do."""
    is_open = state.get("status") in schema.OPEN
    return is_open and any(_status(state, name) == "running" for name in schema.AGENTS)


def _needs(state: Object, *wanted: str) -> None:
    status = schema.text(state.get("status"))
    if status not in wanted:
        raise Refused(f"the cycle is {status or 'without a status'}, not {' or '.join(wanted)}")


def _needs_agent(state: Object, name: str) -> None:
    if name not in schema.AGENTS:
        raise Refused(f"{name!r} is not an agent (agents: {', '.join(schema.AGENTS)})")


_LONGEST_TEXT = 20_000  # characters of a text

_NUMBER_FIELDS = ("limit", "iterations")

_FLAG_FIELDS = ("workaround",)

Edit = Callable[[Object, datetime], None]

"""Changes a state in place, as of a moment; raises Refused where that is not possible."""

_CHANGES: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    schema.DECIDE_ACT: (decide, ("decision", "choice", "rationale", "impact")),
    schema.RESOLVE_ACT: (resolve, ("blocker", "resolution", "workaround")),
    schema.FEEDBACK_ACT: (feedback, ("agent", "text", "kind")),
    schema.EXTEND_ACT: (extend, ("text", "limit")),
    schema.PAUSE_ACT: (pause, ()),
    schema.RESUME_ACT: (resume, ()),
    schema.STOP_ACT: (stop, ("reason",)),
    schema.ACCEPT_ACT: (accept, ("reason",)),
    schema.RERUN_ACT: (rerun, ("agent", "reason")),
    schema.LIMIT_ACT: (raise_limit, ("iterations",)),
}

"""By the act's name: the function, and which of the act's fields it gets, in order."""


def requested_edit(act: str, values: Mapping[str, Any]) -> Edit:
    """The change that an act makes with what was given.

    Raises:
        Refused: there is no such act, or a value is not what it should be.
    """
    if act not in _CHANGES:
        raise Refused(f"{act!r} cannot be requested")
    function, fields = _CHANGES[act]
    given = [_checked_value(name, values.get(name)) for name in fields]
    return lambda state, now: function(state, now, *given)


def fields_of_act(act: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What an act is asked with: its own fields only."""
    return {name: values.get(name) for name in _CHANGES[act][1]}


def _checked_value(name: str, value: Any) -> Any:
    if name in _NUMBER_FIELDS:
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise Refused(f"{name} must be a whole number")
    if name in _FLAG_FIELDS:
        if value is None or isinstance(value, bool):
            return bool(value)
        raise Refused(f"{name} must be true or false")
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise Refused(f"{name} must be a text of at most {_LONGEST_TEXT} characters")
    return value
