"""What an orchestrator does next, who can answer what an agent does not know, and what a person is asked.

Pure functions of the state. One agent works at a time, in the order of their dependencies; EP beside
RA only where that was asked for. Unclear requirements go to RA, an incomplete plan to EP, and what no
agent can settle to a person, whose word comes back to the agents: an escalation is an open blocker or
none, a pending decision, and a paused cycle. Source: development cycle specification, "Dependency
Resolution", "Iteration Flow with Communication", "Conflict Resolution" and "Escalation Path".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import NamedTuple

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read.progress import SEEN_AT, time_of
from acp_core.protocols.cycle.schema import (
    AGENTS,
    DEPENDS,
    Blocker,
    Decision,
    Feedback,
    Object,
    Task,
    coordination_of,
    iteration_of,
    parse_part,
    plan_of,
    stamp_of,
)
from acp_core.protocols.cycle.state import independent_tasks
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write.changes import agent_of, agent_state, entry
from acp_core.protocols.cycle.write.layout import note

USER = "user"

_ADDRESSED = re.compile(
    r"^\W{0,3}(ra|ep|cd|vas|user|human|person)\b\W{0,3}\s*:\s*(.*)$", re.I | re.S
)

_PLAN = re.compile(r"\bplan(?:ned)?\b|\btasks?\b|\bTASK-\d", re.I)

_WANTED = re.compile(
    r"\bFR-\d|\bEC-\d|requirement|unclear|clarif|ambiguous|edge case|specification", re.I
)


class Route(NamedTuple):
    """Who is asked what; ``options`` are the choices that were offered."""

    owner: str
    question: str
    options: tuple[str, ...] = ()


def route(text: str, reporter: str) -> Route:
    """Whom a blocker concerns: as it says itself, else by its words; a person where nobody else.

    Only an agent that works before the reporter can answer it.
    """
    match = _ADDRESSED.match(text)
    owner = match[1].lower() if match else _guess(text)
    question, *options = [part.strip() for part in (match[2] if match else text).split("|")]
    before = AGENTS[: AGENTS.index(reporter)] if reporter in AGENTS else AGENTS
    if owner not in before:
        owner = USER
    return Route(owner, question or text, tuple(each for each in options if each))


def _guess(text: str) -> str:
    if _WANTED.search(text):
        return "ra"
    return "ep" if _PLAN.search(text) else USER


TASKS = "task_runs"  # the ids of the tasks that have runs of their own before this one

FINALIZE, FINALIZING = "finalize", "finalizing"  # an agent's next run, or this one, only sums up

_RUN = re.compile(r"\d{1,9}-(ra|ep|cd|vas)(?:-\d{1,9})?", re.ASCII)


class Kind(Enum):
    """What there is to do."""

    OVER = "over"
    WAIT = "wait"  # for a person
    PREPARE = "prepare"  # raise the versions for an iteration that begins
    WORK = "work"  # the agents named run
    EVALUATE = "evaluate"  # all have completed: is it good?
    STUCK = "stuck"  # nobody can go on: a person must know


class Todo(NamedTuple):
    """The next thing: which agents should run now (some may run already), and why it waits."""

    kind: Kind
    agents: tuple[str, ...] = ()
    note: str = ""


def status(state: Object, name: str) -> str:
    """An agent's status in the schema's words."""
    word = agent_state(state, name).status.lower()
    return schema.ALIASES.get(word, word)


def run_of(state: Object, name: str) -> str:
    """The name of an agent's last run; "" where it has none that could be ours.

    It becomes a part of files' names: anything else would lead elsewhere.
    """
    run = agent_state(state, name).run
    match = _RUN.fullmatch(run)
    return run if match and match[1] == name else ""


def unsent(state: Object, name: str) -> list[Object]:
    """The feedback to an agent that no run has taken up; what others recorded is history."""
    return [
        each.raw
        for each in coordination_of(state).feedback
        if each.target.lower() == name and each.waits
    ]


def sent_in(state: Object, run: str) -> list[Object]:
    """The feedback that a run has taken up."""
    return [each for each in changes.entries(state, "feedback_log") if each.get("run") == run]


def next_step(state: Object, overlap: bool = False) -> Todo:
    """What there is to do.

    Args:
        state: the cycle's state.
        overlap: let EP begin while RA is at work, in the first iteration.
    """
    claimed = schema.text(state.get("status"))
    at_work = tuple(name for name in AGENTS if status(state, name) == "running")
    if claimed in ("completed", "failed"):
        return Todo(Kind.OVER, (), claimed)
    if claimed != "running":
        return Todo(Kind.WAIT, at_work, _why_it_waits(state))
    if state.get("raise_versions") and not at_work:
        return Todo(Kind.PREPARE)
    wanted = [name for name in AGENTS if _wanted(state, name)]
    if overlap and iteration_of(state) == 1:
        both = [name for name in ("ra", "ep") if name in at_work or name in wanted]
        if "ra" in both and set(at_work) <= {"ra", "ep"}:
            return Todo(Kind.WORK, tuple(both))
    if at_work:
        return Todo(Kind.WORK, at_work)
    startable = [name for name in wanted if _ready(state, name)]
    if startable:
        return Todo(Kind.WORK, (startable[0],))
    if all(status(state, name) == "completed" for name in AGENTS):
        return Todo(Kind.EVALUATE)
    all_of_them = ", ".join(f"{name} {status(state, name) or 'unknown'}" for name in AGENTS)
    return Todo(Kind.STUCK, (), f"no agent can proceed: {all_of_them}")


def _why_it_waits(state: Object) -> str:
    waiting = coordination_of(state).open_decisions
    if waiting:
        return f"waiting for a decision: {waiting[0].id}"
    return f"is {schema.text(state.get('status')) or 'without a status'}"


def _wanted(state: Object, name: str) -> bool:
    word = status(state, name)
    if word == "idle":
        return True
    return word in ("waiting", "completed", "failed") and bool(unsent(state, name))


def _ready(state: Object, name: str) -> bool:
    return not DEPENDS[name] or status(state, DEPENDS[name]) == "completed"


def begin_cycle(state: Object, now: datetime) -> None:
    """Begin the first iteration, where none has begun."""
    if not iteration_of(state):
        state["version"] = schema.FIRST_VERSION
        changes.begin_iteration(state, now, AGENTS)


def adopt(state: Object, now: datetime) -> None:
    """Take over what another orchestrator left: agents at work, feedback, what bears no time.

    An agent that is said to be at work, in no run of ours, begins anew. Feedback to one that has
    not completed is told to it; the rest is history.
    """
    for name in AGENTS:
        agent = agent_of(state, name)
        if status(state, name) == "running" and not run_of(state, name):
            agent["status"] = "idle"
            note(state, now, "orchestrator", f"{name} was at work elsewhere: starting it again")
    for each in changes.entries(state, "feedback_log"):
        if each.get("id"):
            continue
        each["id"] = changes.new_id(state, "feedback_log", "FB")
        target = parse_part(Feedback, each).target.lower()
        if target not in AGENTS or status(state, target) == "completed":
            each["sent_at"] = each["answered_at"] = schema.text(each.get("timestamp"))
    for key in ("pending_decisions", "blockers"):
        for each in changes.entries(state, key):
            if not time_of(each):
                each[SEEN_AT] = stamp_of(now)


def begin_run(state: Object, now: datetime, name: str, jobs: int = 1) -> str:
    """Put an agent to work, with all feedback that waits for it; the name of the run.

    Args:
        state: the cycle's state.
        now: when.
        name: the agent.
        jobs: tasks that CD works on at the same time.
    """
    agent = agent_of(state, name)
    key, before = f"{iteration_of(state)}-{name}", run_of(state, name)
    if before == key or before.startswith(f"{key}-"):
        count = before.removeprefix(key).removeprefix("-")
        key = f"{key}-{int(count) + 1 if count else 2}"
    for each in unsent(state, name):
        each |= {"sent_at": stamp_of(now), "run": key}
    agent["target_version"] = target_version(state, name)
    late = agent.pop(FINALIZE, None) and agent_state(state, name).attempts
    agent[FINALIZING] = bool(late)  # not where a person has it run again meanwhile
    agent.pop(TASKS, None)
    if name == "cd" and jobs > 1 and not late:
        agent[TASKS] = [each.id for each in independent_tasks(plan_of(state.get("plan")).tasks)]
    agent |= {"status": "running", "run": key, "started_at": stamp_of(now)}
    agent.pop("completed_at", None)
    state["current_phase"] = name
    what = ", to write down what is done" if late else ""
    note(state, now, name, f"started, run {key}, for version {agent['target_version']}{what}")
    return key


def tasks_apart(state: Object) -> dict[int, Task]:
    """The tasks that have runs of their own before CD's own run, by the number of their run."""
    named = schema.words(agent_of(state, "cd").get(TASKS))
    known = {each.id: each for each in plan_of(state.get("plan")).tasks}
    return {number: known[id] for number, id in enumerate(named, 1) if id in known}


def target_version(state: Object, name: str) -> str:
    """The version of what an agent writes in the run that begins.

    An iteration raises all versions; RA or EP who clarify within one raise their own.
    """
    own, common = agent_state(state, name).version, schema.text(state.get("version"))
    if layout.parts(own) < layout.parts(common) or not own:
        return common or schema.FIRST_VERSION
    if name in ("ra", "ep") and status(state, name) == "completed":
        return layout.raised(own)
    return own


def next_version(state: Object) -> str:
    """The version that all documents get in an iteration that begins."""
    own = (agent_state(state, name).version for name in AGENTS)
    return layout.raised(schema.text(state.get("version")), *own)


def prepared(state: Object, now: datetime, version: str, stamped: tuple[str, ...]) -> None:
    """The versions were raised: ``stamped`` are the agents whose documents acp raised itself."""
    state["version"] = version
    state.pop("raise_versions", None)
    for name in stamped:
        agent_of(state, name)["version"] = version
        for key in HELD[name]:
            held = state.get(key)
            if isinstance(held, dict):
                held["version"] = version
    note(state, now, "orchestrator", f"all documents go on with version {version}")


HELD = {
    "ra": ("requirements",),
    "ep": ("exploration", "plan"),
    "cd": ("implementation",),
    "vas": ("test_results",),
}


def pick_up(state: Object, now: datetime) -> None:
    """Mark what people asked for as picked up."""
    for each in changes.unheard(state):
        each["picked_up_at"] = stamp_of(now)


AGAIN, STOP = "Run it again", "Stop the cycle"

MORE, ACCEPT = "Allow another iteration", changes.TAKEN

ON = "Continue anyway"

UNFINISHED = "unfinished"

"""What an agent did not finish: a key of its entry in the state, in our own manner."""

_EARLIER_ON = "Go on all the same"  # in decisions that earlier versions asked


def escalate(
    state: Object,
    now: datetime,
    kind: str,
    description: str,
    options: tuple[str, ...],
    agent: str = "",
    blocker: str = "",
) -> Object:
    """Ask a person, and wait.

    Args:
        state: the cycle's state.
        now: when.
        kind: what follows from the answer: ``blocker`` (its reporter is told), ``agent`` (run it
            again, or stop), ``partial`` (as ``agent``, or go on; words are told to the agent),
            ``limit``, ``gate`` and ``unproven`` (go on, accept, or stop).
        description: what is asked.
        options: what can be chosen; none where words are wanted.
        agent: whom it concerns.
        blocker: the blocker that the answer resolves.
    """
    made: Object = {
        "id": changes.new_id(state, "pending_decisions", "DEC"),
        "description": description,
        "options": list(options),
        "status": "pending",
        "kind": kind,
        "asked_at": stamp_of(now),
        "iteration": iteration_of(state),
    }
    made |= {"agent": agent} if agent else {}
    made |= {"blocker": blocker} if blocker else {}
    changes.append(state, "pending_decisions", made)
    state["status"] = "paused"
    note(state, now, "orchestrator", f"escalated to the user: {made['id']}: {description}")
    return made


def apply_decisions(state: Object, now: datetime) -> None:
    """Do what a person decided, once."""
    for each in coordination_of(state).decisions:
        if each.status.lower() != "made":
            continue
        each.raw.update(status="implemented", implemented_at=stamp_of(now))
        note(state, now, "orchestrator", f"applied {each.id}: {each.chosen_option}")
        _apply(state, now, each)


def _apply(state: Object, now: datetime, decision: Decision) -> None:
    kind, chosen = decision.kind, decision.chosen_option
    known = decision.agent if decision.agent in AGENTS else ""
    if kind not in ("agent", "partial", "limit", "gate", "unproven"):
        _tell(state, now, decision, known or _asker(state, decision))
    elif chosen == STOP:
        state |= {"status": "failed", "completed_at": stamp_of(now)}
        state["failure_reason"] = f"Stopped by the user ({decision.id})"
    elif kind == "partial":
        _go_on(state, now, decision, known)
    elif kind != "agent" and chosen == ACCEPT:
        complete(state, now, resolved=False)
    elif kind == "limit":
        current = iteration_of(state)
        limit = schema.count(state.get("max_iterations")) or current
        state["max_iterations"] = min(max(limit, current + 1), changes.LIMIT)
    elif known and chosen not in (ON, _EARLIER_ON):
        if chosen != AGAIN:  # words, by way of a blocker that was resolved
            _tell(state, now, decision, known)
        agent_of(state, known).update(status="idle", attempts=0)


def ask_unfinished(state: Object, now: datetime, names: Sequence[str]) -> bool:
    """Ask a person about the first of these agents that said that it is not finished; whether one did.

    Nothing is built on what is not finished, and no cycle completes with it, before a person has
    said so.
    """
    for name in names:
        agent = agent_of(state, name)
        said = schema.text(agent.get(UNFINISHED))
        if said:
            agent["status"] = "waiting"
            asked = f"{name.upper()} has not finished: {said}"
            escalate(state, now, "partial", asked, (AGAIN, ON, STOP), agent=name)
            return True
    return False


def _go_on(state: Object, now: datetime, decision: Decision, name: str) -> None:
    """What a person said about an agent that has not finished: take it as it is, or run it again."""
    if not name:
        return
    agent, chosen = agent_of(state, name), decision.chosen_option
    agent.pop(UNFINISHED, None)
    if chosen == ON:
        agent["status"] = "completed"
        return
    if chosen != AGAIN or decision.rationale:
        _tell(state, now, decision, name)
    agent.update(status="idle", attempts=0)
    for each in AGENTS[AGENTS.index(name) + 1 :]:
        if agent_of(state, each).get("status") == "completed":
            agent_of(state, each).update(status="idle", attempts=0)


def _tell(state: Object, now: datetime, decision: Decision, agent: str) -> None:
    text = f"{decision.description} Decided: {decision.chosen_option}"
    text += f". {decision.rationale}" if decision.rationale else ""
    id = decision.raw.get("id")
    changes.add_feedback(state, now, "user", agent, text, "clarification", decision=id)


def _asker(state: Object, decision: Decision) -> str:
    """Whom a decision that somebody else recorded concerns: who waits, else who comes first."""
    blocker = parse_part(Blocker, entry(state, "blockers", decision.blocker))
    reporter = blocker.reported_by.lower()
    if reporter in AGENTS:
        return reporter
    waiting = [n for n in AGENTS if agent_of(state, n).get("status") in ("waiting", "failed")]
    return waiting[0] if waiting else "ra"


def complete(state: Object, now: datetime, *, resolved: bool, reached: str = "") -> None:
    """End the cycle; ``resolved``: its tests say that it is good, ``reached``: by how much."""
    close_iteration(state, now, [], resolved=resolved)
    state |= {"status": "completed", "current_phase": "complete", "completed_at": stamp_of(now)}
    reached = reached or ("all tests pass" if resolved else "accepted by the user as it is")
    note(state, now, "orchestrator", f"cycle complete: {reached}")


def close_iteration(state: Object, now: datetime, issues: list[str], *, resolved: bool) -> None:
    """End the record of the current iteration; issues that stand in it already are kept."""
    records = schema.objects(state.get("iterations"))
    if records:
        last = records[-1]
        held = schema.words(last.get("issues_found"))
        last |= {
            "completed_at": stamp_of(now),
            "issues_found": issues or held,
            "resolved": resolved,
        }
