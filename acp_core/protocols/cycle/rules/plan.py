"""Rules on the plan and on the iterations.

Source: development cycle specification, "Shared State".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from acp_core.findings import error, warning
from acp_core.model import Finding
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import Cycle

Findings = Iterator[Finding]


def _needs(cycle: Cycle) -> dict[str, list[str]]:
    return {
        schema.text(task.get("id")): schema.words(task.get("depends_on"))
        for task in state.tasks(cycle)
    }


def a42(cycle: Cycle) -> Findings:
    """Each iteration has its own number."""
    records = schema.objects(cycle.value.get("iterations"))
    numbers = Counter(schema.text(each.get("number", each.get("iteration"))) for each in records)
    for number, times in numbers.items():
        if number and times > 1:
            told = f"Iteration {number} is recorded {times} times"
            yield warning("A42", told, cycle.record.file)


def a50(cycle: Cycle) -> Findings:
    """Tasks depend on tasks that there are."""
    needs = _needs(cycle)
    if len(state.tasks(cycle)) >= schema.MANY:
        return  # not all of them were looked at
    for id, before in needs.items():
        for each in before:
            if each not in needs:
                told = f"{id} depends on {each}, which is no task"
                yield error("A50", told, cycle.record.file)


def a51(cycle: Cycle) -> Findings:
    """A task is completed after those that it depends on."""
    states = {schema.text(t.get("id")): state.task_status(t) for t in state.tasks(cycle)}
    for id, before in _needs(cycle).items():
        undone = [each for each in before if states.get(each) not in (None, "", "completed")]
        if states.get(id) == "completed" and undone:
            told = f"{id} is completed before {', '.join(undone)}"
            yield warning("A51", told, cycle.record.file)


def a52(cycle: Cycle) -> Findings:
    """No tasks wait for one another in a circle."""
    needs = _needs(cycle)
    left = {id: {each for each in before if each in needs} for id, before in needs.items()}
    while free := [id for id, before in left.items() if not before]:
        for id in free:
            del left[id]
        for before in left.values():
            before.difference_update(free)
    if left:
        told = f"Tasks wait for one another: {', '.join(sorted(left))}"
        yield error("A52", told, cycle.record.file)


def a53(cycle: Cycle) -> Findings:
    """The plan's file has as many tasks as it says."""
    value = (cycle.plan_file.value if cycle.plan_file else None) or {}
    total, tasks = schema.count(value.get("total_tasks")), value.get("tasks")
    if cycle.plan_file and total is not None and isinstance(tasks, list) and total != len(tasks):
        told = f"total_tasks is {total}, there are {len(tasks)}"
        yield warning("A53", told, cycle.plan_file.file)


RULES = (a42, a50, a51, a52, a53)
