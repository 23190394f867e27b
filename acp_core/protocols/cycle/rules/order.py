"""Rules on the order of the agents: who depends on whom, and who may run now.

Source: development cycle specification, "Dependency Resolution".
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import AGENTS, DEPENDS, Cycle
from acp_core.protocols.kit.findings import advice, error, warning

Findings = Iterator[Finding]
_PAIRS = tuple((before, name) for name, before in DEPENDS.items() if before)


def a19(cycle: Cycle) -> Findings:
    """Something is done about an agent that failed while the cycle goes on."""
    if cycle.status != "running" or cycle.state.phase_errors:
        return
    addressed = {each.target.lower() for each in cycle.state.feedback}
    for name in AGENTS:
        if state.agent_status(cycle, name) == "failed" and name not in addressed:
            sentence = f"{name} failed, but neither feedback nor phase_errors mention it"
            yield warning("A19", sentence, cycle.record.file)


def a20(cycle: Cycle) -> Findings:
    """In the first iteration an agent starts after the one that it depends on completed.

    That one may have been run again since: then its first end is not known.
    """
    if cycle.iteration > 1:
        return
    for before, name in _PAIRS:
        start, end = cycle.agent(name).started_at, cycle.agent(before).completed_at
        if start and end and start < end and not _ran_again(cycle, before):
            message = f"{name} started before {before} had completed"
            yield warning("A20", message, cycle.record.file)


def _ran_again(cycle: Cycle, name: str) -> bool:
    if (cycle.agent(name).iterations_completed or 0) > 1:
        return True
    asked = [each.target for each in cycle.state.feedback]
    asked += [each.target for each in cycle.state.blockers]
    if any(each.lower() in (name, "") for each in asked):
        return True
    version = schema.version(cycle.part(state.HOLDERS[name]).version)
    return (version or (1, 0, 0)) > (1, 0, 0)


def _declared(cycle: Cycle) -> dict[str, list[str]]:
    """What each agent is said to depend on, where it is told."""
    named = {name: cycle.agent(name).raw.get("depends_on") for name in AGENTS}
    return {name: schema.words(value) for name, value in named.items() if isinstance(value, list)}


def a21(cycle: Cycle) -> Findings:
    """Agents depend on one another as RA, EP, CD, VAS."""
    declared = _declared(cycle)
    for name, before in declared.items():
        for each in before:
            if each.lower() not in AGENTS:
                message = f"{name} depends on {each}, which is not an agent"
                yield error("A21", message, cycle.record.file)
        if {each.lower() for each in before} != ({DEPENDS[name]} if DEPENDS[name] else set()):
            said, due = ", ".join(before) or "no agent", DEPENDS[name] or "no agent"
            message = f"{name} depends on {said}, but the order requires {due}"
            yield warning("A21", message, cycle.record.file)
    chain = {name: declared.get(name, [before]) for name, before in DEPENDS.items()}
    if left := state.circle({n: [e.lower() for e in needs] for n, needs in chain.items()}):
        message = f"Agents wait for each other: {', '.join(sorted(left))}"
        yield error("A21", message, cycle.record.file)


def a22(cycle: Cycle) -> Findings:
    """``ready`` and ``can_start`` say what follows from the dependencies.

    They tell of a start: those of an agent that has begun are history.
    """
    for name in AGENTS:
        if state.agent_status(cycle, name) not in ("idle", "waiting"):
            continue
        due = state.ready(cycle, name)
        for key, may in (("ready", due), ("can_start", state.can_start(cycle, name))):
            said = cycle.agent(name).raw.get(key)
            if isinstance(said, bool) and said not in (due, may):
                message = (
                    f"{name}: {key} is {str(said).lower()}, but {state.dependency(cycle, name)}"
                )
                yield warning("A22", message, cycle.record.file)


def a23(cycle: Cycle) -> Findings:
    """No agent runs while the cycle does not."""
    for name in state.running(cycle):
        if cycle.status in ("completed", "failed"):
            yield error("A23", f"{name} runs, the cycle has {cycle.status}", cycle.record.file)
        elif cycle.status in ("paused", "created"):
            yield warning("A23", f"{name} runs, the cycle is {cycle.status}", cycle.record.file)


def a24(cycle: Cycle) -> Findings:
    """In the first iteration an agent does not run beside the one that it depends on.

    Of EP beside RA the specification says that it may.
    """
    at_work = state.running(cycle)
    for before, name in _PAIRS:
        if cycle.iteration > 1 or not {before, name} <= set(at_work):
            continue
        message = f"{name} runs while {before}, on which it depends, is still working"
        if name == "ep":
            yield advice("A24", message, cycle.record.file)
        else:
            yield warning("A24", message, cycle.record.file)


RULES = (a19, a20, a21, a22, a23, a24)
