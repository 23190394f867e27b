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
    Object,
    Version,
    issues,
    plan_text,
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
    said = schema.text(cycle.agent(name).get("status")).lower()
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
        return "needs nobody"
    return f"{before} is done" if ready(cycle, name) else f"waits for {before}"


def running(cycle: Cycle) -> list[str]:
    """The agents at work."""
    return [name for name in AGENTS if agent_status(cycle, name) == "running"]


def current(cycle: Cycle) -> str:
    """The agent whose phase it is: one at work, else the first that has not completed."""
    if cycle.status == "completed":
        return AGENTS[-1]
    at_work = running(cycle)
    if at_work:
        return at_work[0]
    undone = [name for name in AGENTS if agent_status(cycle, name) != "completed"]
    return undone[0] if undone else AGENTS[-1]


def decisions(cycle: Cycle) -> list[Object]:
    """The decisions that nobody has made yet."""
    return [
        each
        for each in cycle.coordination("pending_decisions")
        if schema.text(each.get("status")).lower() in ("", "pending") and not each.get("made_by")
    ]


def blockers(cycle: Cycle) -> list[Object]:
    """The blockers that are open."""
    return [
        each
        for each in cycle.coordination("blockers")
        if schema.text(each.get("status")).lower() in ("", "open")
    ]


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
        each.get("kind") == ACCEPTED and each.get("iteration") == cycle.iteration
        for each in cycle.coordination("pending_decisions")
    )


def for_a_person(cycle: Cycle) -> list[Object]:
    """The open blockers for which nobody else cares.

    Not those that an agent was asked about while the cycle goes on, nor those that a pending
    decision is about: that is the same need.
    """
    asked = {schema.text(each.get("blocker")) for each in decisions(cycle)}
    return [
        each
        for each in blockers(cycle)
        if schema.text(each.get("id")) not in asked - {""}
        and not (cycle.status == "running" and each.get("routed_to") in AGENTS)
    ]


def unknown_blockers(cycle: Cycle) -> list[Reported]:
    """What blocks somebody and is not among the blockers of the state."""
    known = [
        schema.text(each.get("description")).lower() for each in cycle.coordination("blockers")
    ]
    return [
        each
        for each in reported_blockers(cycle)
        if not any(each.text.lower() in k or (k and k in each.text.lower()) for k in known)
    ]


def sent_at(cycle: Cycle, feedback: Object) -> datetime | None:
    """When feedback was sent; None while our orchestrator, which names each, has not sent it."""
    if feedback.get("id"):
        return cycle.at(feedback.get("sent_at"))
    return cycle.at(feedback.get("timestamp"))


def answered(cycle: Cycle, feedback: Object) -> bool | None:
    """Whether the agent that feedback was sent to has run since; None where that is not known."""
    target, sent = schema.text(feedback.get("target")).lower(), sent_at(cycle, feedback)
    if target not in AGENTS or sent is None:
        return None
    if feedback.get("answered_at"):
        return True
    agent = cycle.agent(target)
    held = schema.obj(cycle.value.get(HOLDERS[target]))
    signs = [agent.get("started_at"), agent.get("completed_at")]
    signs += [held.get("last_updated"), held.get("last_run")]
    return any(at >= sent for sign in signs if (at := cycle.at(sign)))


def is_late(cycle: Cycle, feedback: Object) -> bool:
    """Whether feedback has not been answered for longer than an agent is waited for."""
    sent = sent_at(cycle, feedback)
    late = sent is not None and cycle.now - sent >= schema.STALL
    return late and answered(cycle, feedback) is False


def tasks(cycle: Cycle) -> list[Object]:
    """The plan's tasks: the state's, else those of plan.json, else those of plan.md."""
    own = schema.objects(schema.obj(cycle.value.get("plan")).get("tasks"))
    return own or planned(cycle)


def planned(cycle: Cycle) -> list[Object]:
    """The tasks of EP's own file."""
    kept = cycle.plan_file.value if cycle.plan_file else None
    if kept is not None:
        return schema.objects(kept.get("tasks"))
    return plan_text.tasks(cycle.head("ep/plan.md"))


def disputed(cycle: Cycle) -> list[tuple[str, str, str]]:
    """The tasks that EP's file of the same version tells as done, the state not: id, ours, its.

    The other way round is usual: EP plans a task, and the state tells when CD has done it.
    """
    own = schema.obj(cycle.value.get("plan"))
    versions = {schema.text(each.get("version")) for each in (own, _plan_file(cycle))} - {""}
    theirs = {schema.text(each.get("id")): task_status(each) for each in planned(cycle)}
    if len(versions) > 1:
        return []
    found = [(schema.text(e.get("id")), task_status(e)) for e in schema.objects(own.get("tasks"))]
    told = [(id, said, theirs.get(id, "")) for id, said in found]
    return [each for each in told if each[2] == "completed" and each[1] not in ("", each[2])]


def _plan_file(cycle: Cycle) -> Object:
    return (cycle.plan_file.value if cycle.plan_file else None) or {}


def critical_path(cycle: Cycle) -> list[str]:
    """The tasks on the critical path: the state's, else that of EP's own file."""
    for plan in (cycle.value.get("plan"), _plan_file(cycle)):
        path = schema.words(schema.obj(plan).get("critical_path"))
        path = path or schema.words(
            schema.obj(schema.obj(plan).get("summary")).get("critical_path")
        )
        if path:
            return path
    return []


def task_status(task: Object) -> str:
    """A task's status in the schema's words; "" where none is told."""
    said = schema.text(task.get("status")).lower()
    return "completed" if said == "done" else "pending" if said == "todo" else said


def tests(cycle: Cycle) -> Tests:
    """The latest results: the state's, or VAS's own file's where more fail there; none else."""
    own = schema.obj(cycle.value.get("test_results"))
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
    told = {part: schema.obj(cycle.value.get(part)).get("version") for part in DOCUMENTS}
    return {part: found for part, said in told.items() if (found := schema.version(said))}


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
    if any(task_status(each) not in ("", "completed") for each in tasks(cycle)):
        return UNPROVEN
    return OK if found.proven and is_witnessed(cycle) else UNPROVEN


def unproven(cycle: Cycle) -> str:
    """Why what is completed is not proven, in words."""
    undone = [each for each in tasks(cycle) if task_status(each) not in ("", "completed")]
    if undone:
        verb = "is" if len(undone) == 1 else "are"
        other = ", though ep/plan.json tells otherwise" if disputed(cycle) else ""
        return f"{len(undone)} of {len(tasks(cycle))} tasks of the plan {verb} not done{other}"
    if tests(cycle).proven:
        return "only the state says that tests ran: vas/test-results.json does not show it"
    return "no tests ran"


def recheck(cycle: Cycle) -> datetime | None:
    """When something is late unless somebody writes before: an agent, or an answer to feedback."""
    sent = [
        at
        for each in cycle.coordination("feedback_log")
        if answered(cycle, each) is False and (at := sent_at(cycle, each))
    ]
    begun = [*sent, *([cycle.last_write] if cycle.status == "running" else [])]
    return min((at + schema.STALL for at in begun if at + schema.STALL > cycle.now), default=None)
