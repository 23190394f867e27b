"""Rules on the plan.

Source: development cycle specification, "Dependency Resolution" and "Conflict Resolution".
"""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import Cycle
from acp_core.protocols.kit.findings import advice, error, warning

Findings = Iterator[Finding]


def _needs(cycle: Cycle) -> dict[str, tuple[str, ...]]:
    return {task.id: task.depends_on for task in state.tasks(cycle)}


def a50(cycle: Cycle) -> Findings:
    """Tasks depend on tasks that there are."""
    needs = _needs(cycle)
    if len(state.tasks(cycle)) >= schema.MANY:
        return  # not all of them were looked at
    for id, before in needs.items():
        for each in before:
            if each not in needs:
                message = f"{id} depends on {each}, which is not a task"
                yield error("A50", message, cycle.record.file)


def a51(cycle: Cycle) -> Findings:
    """A task is completed after those that it depends on."""
    states = {task.id: task.state for task in state.tasks(cycle)}
    for id, before in _needs(cycle).items():
        undone = [each for each in before if states.get(each) not in (None, "", "completed")]
        if states.get(id) == "completed" and undone:
            message = f"{id} is completed before {', '.join(undone)}"
            yield warning("A51", message, cycle.record.file)


def a52(cycle: Cycle) -> Findings:
    """No tasks wait for one another in a circle."""
    left = state.circle(_needs(cycle))
    if left:
        message = f"Tasks wait for each other: {', '.join(sorted(left))}"
        yield error("A52", message, cycle.record.file)


def a53(cycle: Cycle) -> Findings:
    """The plan's file has as many tasks as it says."""
    value = (cycle.plan_file.value if cycle.plan_file else None) or {}
    total, tasks = schema.count(value.get("total_tasks")), value.get("tasks")
    if cycle.plan_file and total is not None and isinstance(tasks, list) and total != len(tasks):
        message = f"total_tasks is {total}, there are {len(tasks)}"
        yield warning("A53", message, cycle.plan_file.file)


def a54(cycle: Cycle) -> Findings:
    """The critical path leads over tasks that there are."""
    ids = {task.id for task in (*state.tasks(cycle), *state.planned(cycle))}
    unknown = [each for each in state.critical_path(cycle) if each not in ids]
    if unknown and len(ids) < schema.MANY:
        message = f"The critical path contains unknown tasks: {', '.join(unknown[:5])}"
        yield warning("A54", message, cycle.record.file)


def a55(cycle: Cycle) -> Findings:
    """The state and the plan's file have the same tasks."""
    stated = {task.id for task in cycle.state.plan.tasks}
    held = {task.id for task in state.planned(cycle)}
    if stated and held and stated != held:
        parts = []
        if stated - held:
            parts.append(f"only in the state: {', '.join(sorted(stated - held)[:5])}")
        if held - stated:
            parts.append(f"only in the plan's file: {', '.join(sorted(held - stated)[:5])}")
        yield advice("A55", f"Tasks differ, {'; '.join(parts)}", cycle.record.file)
    differ = state.disputed(cycle)
    if differ:
        named = ", ".join(f"{id} ({said} and {other})" for id, said, other in differ[:5])
        sentence = f"State and ep/plan.json differ on tasks: {named}"
        yield warning("A55", sentence, cycle.record.file)


def a56(cycle: Cycle) -> Findings:
    """Efforts and states of tasks are known words."""
    odd = []
    for task in state.tasks(cycle):
        if task.effort and task.effort.lower() not in schema.EFFORTS:
            odd.append(f"effort {task.effort!r}")
        if task.state and task.state not in schema.TASK_STATUSES:
            odd.append(f"status {task.state!r}")
    if odd:
        message = f"Unknown words in the plan: {', '.join(list(dict.fromkeys(odd))[:5])}"
        yield advice("A56", message, cycle.record.file)


RULES = (a50, a51, a52, a53, a54, a55, a56)
