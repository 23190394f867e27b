"""Where a cycle stands, derived from its files: what the status claims is not yet a verdict.

Source: development cycle specification, "Agent Dependencies" and "Escalation".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import (
    AGENTS,
    DEPENDS,
    Cycle,
    Version,
    issues,
    plan_text,
)
from acp_core.protocols.cycle.schema.state_file import (
    Blocker,
    Decision,
    Feedback,
    Task,
    plan,
)
from acp_core.protocols.cycle.state.results import Tests as Tests

OK, FAILURES, UNDECIDED, BLOCKED = "ok", "failures", "undecided", "blocked"
UNPROVEN, STALLED, UNDER_WAY = "not proven", "stalled", "under way"
UNREADABLE = "unreadable"
ACCEPTED = "accept"  # the kind of a decision by which a person takes a cycle as it is
HOLDERS = {"ra": "requirements", "ep": "plan", "cd": "implementation", "vas": "test_results"}
"""The part of the state that an agent's work is told in."""
DOCUMENTS = {
    "requirements": "ra/requirements.md",
    "exploration": "ep/exploration.md",
    "plan": "ep/plan.json",
    "implementation": "cd/implementation.md",
    "test_results": "vas/test-results.json",
    "validation": "vas/validation.md",
}
"""The document in which a part of the state is told in full."""


def agent_status(cycle: Cycle, name: str) -> str:
    """An agent's status in the schema's words; "unknown" where it is none of them."""
    said = cycle.agent(name).status.lower()
    word = schema.ALIASES.get(said, said)
    return word if word in schema.AGENT_STATUSES else "unknown"


def ready(cycle: Cycle, name: str) -> bool:
    """Whether the agent that it depends on has completed."""
    return not DEPENDS[name] or agent_status(cycle, DEPENDS[name]) == "completed"


def can_start(cycle: Cycle, name: str) -> bool:
    """Whether an agent could begin now: its dependency is done, and it has nothing to do yet."""
    free = agent_status(cycle, name) in ("idle", "waiting")
    return cycle.status == "running" and free and ready(cycle, name)


def dependency(cycle: Cycle, name: str) -> str:
    """What an agent's dependency means for it now, in words."""
    before = DEPENDS[name]
    if not before:
        return "no dependency"
    return f"{before} is done" if ready(cycle, name) else f"waits for {before}"


def running(cycle: Cycle) -> list[str]:
    """The agents at work."""
    return [name for name in AGENTS if agent_status(cycle, name) == "running"]


def is_to_be_conducted(cycle: Cycle) -> bool:
    """Whether an orchestrator has something to do: it goes on, or an agent works in a pause."""
    return cycle.status == "running" or (cycle.status == "paused" and bool(running(cycle)))


def current(cycle: Cycle) -> str:
    """The agent whose phase it is: one at work, else the first that has not completed."""
    if cycle.status == "completed":
        return AGENTS[-1]
    at_work = running(cycle)
    if at_work:
        return at_work[0]
    undone = [name for name in AGENTS if agent_status(cycle, name) != "completed"]
    return undone[0] if undone else AGENTS[-1]


def decisions(cycle: Cycle) -> list[Decision]:
    """The decisions that nobody has made yet."""
    return cycle.state.open_decisions


def blockers(cycle: Cycle) -> list[Blocker]:
    """The blockers that are open."""
    return cycle.state.open_blockers


class Reported(NamedTuple):
    """Something that blocks an agent, told outside of the state."""

    text: str
    by: str
    name: str
    line: int


def reported_blockers(cycle: Cycle) -> list[Reported]:
    """What the discoveries and issues.md tell as blocking, whether the state knows it or not."""
    name = f"{cycle.progress}coordination/discoveries.ndjson"
    found = []
    for number, line in enumerate(cycle.texts.get(name, "").split("\n"), 1):
        try:
            row = schema.obj(json.loads(line))
        except (ValueError, RecursionError):
            continue
        what = schema.text(schema.obj(row.get("data")).get("issue"))
        if row.get("type") == "blocker" and what:
            found.append(Reported(what, schema.text(row.get("agent")), name, number))
    for item in issues.read(cycle.head("cd/issues.md")).blockers:
        if item.text:
            found.append(Reported(item.text, "cd", f"{cycle.progress}cd/issues.md", item.line))
    return found


def accepted(cycle: Cycle) -> bool:
    """Whether a person accepted the current iteration as it is."""
    return any(
        each.kind == ACCEPTED and each.iteration == cycle.iteration
        for each in cycle.state.decisions
    )


def for_a_person(cycle: Cycle) -> list[Blocker]:
    """The open blockers for which nobody else cares.

    Not those that an agent was asked about while the cycle goes on, nor those that a pending
    decision is about: that is the same need.
    """
    asked = {each.blocker for each in decisions(cycle)}
    return [
        each
        for each in blockers(cycle)
        if each.id not in asked - {""}
        and not (cycle.status == "running" and each.routed_to in AGENTS)
    ]


def unknown_blockers(cycle: Cycle) -> list[Reported]:
    """What blocks somebody and is not among the blockers of the state."""
    known = [each.description.lower() for each in cycle.state.blockers]
    return [
        each
        for each in reported_blockers(cycle)
        if not any(each.text.lower() in k or (k and k in each.text.lower()) for k in known)
    ]


def answered(cycle: Cycle, feedback: Feedback) -> bool | None:
    """Whether the agent that feedback was sent to has run since; None where that is not known."""
    target, sent = feedback.target.lower(), feedback.reached
    if target not in AGENTS or sent is None:
        return None
    if feedback.is_answered:
        return True
    agent, part = cycle.agent(target), cycle.part(HOLDERS[target])
    signs = (agent.started_at, agent.completed_at, part.last_updated, part.last_run)
    return any(at >= sent for at in signs if at)


def is_late(cycle: Cycle, feedback: Feedback) -> bool:
    """Whether feedback has not been answered for longer than an agent is waited for."""
    sent = feedback.reached
    late = sent is not None and cycle.now - sent >= schema.STALL
    return late and answered(cycle, feedback) is False


def tasks(cycle: Cycle) -> tuple[Task, ...]:
    """The plan's tasks: the state's, else those of plan.json, else those of plan.md."""
    return cycle.state.plan.tasks or planned(cycle)


def planned(cycle: Cycle) -> tuple[Task, ...]:
    """The tasks of EP's own file."""
    if cycle.plan_file and cycle.plan_file.value is not None:
        return cycle.own_plan.tasks
    return plan({"tasks": plan_text.tasks(cycle.head("ep/plan.md"))}).tasks


def undone(cycle: Cycle) -> list[Task]:
    """The plan's tasks that are told not to be completed."""
    return [each for each in tasks(cycle) if each.is_undone]


def disputed(cycle: Cycle) -> list[tuple[str, str, str]]:
    """The tasks that EP's file of the same version tells as done, the state not: id, ours, its.

    The other way round is usual: EP plans a task, and the state tells when CD has done it.
    """
    own = cycle.state.plan
    if len({own.version, cycle.own_plan.version} - {""}) > 1:
        return []
    theirs = {each.id: each.state for each in planned(cycle)}
    tasks = [(each.id, each.state, theirs.get(each.id, "")) for each in own.tasks]
    return [each for each in tasks if each[2] == "completed" and each[1] not in ("", each[2])]


def critical_path(cycle: Cycle) -> tuple[str, ...]:
    """The tasks on the critical path: the state's, else that of EP's own file."""
    plans = (cycle.state.plan, cycle.own_plan)
    paths = (path for each in plans for path in (each.critical_path, each.summary_path))
    return next(filter(None, paths), ())


def tests(cycle: Cycle) -> Tests:
    """The latest results: the state's, or VAS's own file's where more fail there; none else."""
    own = cycle.state.test_results
    kept = (cycle.tests_file.value if cycle.tests_file else None) or {}
    found, proof = Tests({**kept, **own} if own else kept), Tests(kept)
    if (proof.failed or 0) > (found.failed or 0):
        return proof
    if kept.get("executed") is False:
        found.executed = False
    return found


def is_witnessed(cycle: Cycle) -> bool:
    """Whether VAS's own file shows that tests ran, and not only the state claims it."""
    return cycle.tests_file is not None and Tests(cycle.tests_file.value or {}).proven


def versions(cycle: Cycle) -> dict[str, Version]:
    """The version of each part that the state tells."""
    stated = {part: cycle.part(part).version for part in DOCUMENTS}
    return {part: found for part, said in stated.items() if (found := schema.version(said))}


def document_versions(cycle: Cycle) -> dict[str, Version]:
    """The version that each of the agents' documents bears, by its name in the progress folder."""
    found = {
        name.removeprefix(cycle.progress): version
        for name, head in cycle.heads.items()
        if (version := schema.version_in(head))
    }
    for record in (cycle.plan_file, cycle.tests_file):
        version = schema.version((record.value or {}).get("version")) if record else None
        if record and version:
            found[record.file.name.removeprefix(cycle.progress)] = version
    return found


def circle(needs: Mapping[str, Iterable[str]]) -> set[str]:
    """Those that wait for one another in a circle, or for one that does; {} where none do."""
    left = {id: {each for each in before if each in needs} for id, before in needs.items()}
    while free := [id for id, before in left.items() if not before]:
        for id in free:
            del left[id]
        for before in left.values():
            before.difference_update(free)
    return set(left)


def stalled(cycle: Cycle) -> bool:
    """It is said to run, and nothing was written for longer than an agent is waited for."""
    return cycle.status == "running" and cycle.now - cycle.last_write >= schema.STALL


def verdict(cycle: Cycle) -> str:
    """What the files show, whatever the status claims."""
    if not cycle.value:
        return UNREADABLE
    found, ended = tests(cycle), cycle.status in ("completed", "failed")
    if decisions(cycle):
        return UNDECIDED
    if for_a_person(cycle) and (ended or not running(cycle)):
        return BLOCKED
    if stalled(cycle):
        return STALLED
    if not ended:
        return UNDER_WAY
    if cycle.status == "failed" or found.failed:
        return FAILURES
    if any(agent_status(cycle, name) == "failed" for name in AGENTS):
        return FAILURES
    if undone(cycle):
        return UNPROVEN
    return OK if found.proven and is_witnessed(cycle) else UNPROVEN


def unproven(cycle: Cycle) -> str:
    """Why what is completed is not proven, in words."""
    left = undone(cycle)
    if left:
        verb = "is" if len(left) == 1 else "are"
        other = ", although ep/plan.json says otherwise" if disputed(cycle) else ""
        return f"{len(left)} of {len(tasks(cycle))} tasks of the plan {verb} not done{other}"
    if tests(cycle).proven:
        return "only the state claims that tests ran; vas/test-results.json does not confirm it"
    return "no tests ran"


def recheck(cycle: Cycle) -> datetime | None:
    """When something is late unless somebody writes before: an agent, or an answer to feedback."""
    sent = [
        at
        for each in cycle.state.feedback
        if answered(cycle, each) is False and (at := each.reached)
    ]
    begun = [*sent, *([cycle.last_write] if cycle.status == "running" else [])]
    return min((at + schema.STALL for at in begun if at + schema.STALL > cycle.now), default=None)
