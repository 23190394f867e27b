"""The plan as a tree: what each task waits for, and the path that decides how long it takes.

Source: development cycle specification, "Dependency Resolution".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.schema import Cycle, Task

_HOURS = {"small": 1.0, "medium": 3.0, "large": 6.0}  # small below 1 h, medium 1 to 4, large above
_DEEPEST = 12


class Leaf(NamedTuple):
    """A task in the tree.

    ``waits`` says what blocks it, "" for nothing; ``path`` whether it lies on the critical path,
    and whether the plan says so or it was worked out.
    """

    task: Task
    depth: int
    waits: str
    path: str


def tree(cycle: Cycle) -> Iterator[Leaf]:
    """The tasks, each below the last one that it depends on; those without an id of their own come last."""
    known: dict[str, Task] = {}
    others = []
    for task in state.tasks(cycle):
        if task.id and task.id not in known:
            known[task.id] = task
        else:
            others.append(task)
    needs = {id: task.depends_on for id, task in known.items()}
    stuck = state.circle(needs)
    critical = set(state.critical_path(cycle))
    derived = set() if critical else set(longest(known, needs, stuck))
    below: dict[str, list[str]] = {}
    for id in known:
        inside = [each for each in needs[id] if each in known]
        below.setdefault("" if not inside or id in stuck else inside[-1], []).append(id)
    pending = [(id, 0) for id in reversed(below.get("", []))]
    while pending:
        id, depth = pending.pop()
        path = "critical" if id in critical else "critical, computed" * (id in derived)
        yield Leaf(known[id], min(depth, _DEEPEST), _waits(id, known, needs[id], stuck), path)
        pending += [(each, depth + 1) for each in reversed(below.get(id, []))]
    yield from (Leaf(task, 0, "", "") for task in others)


def _waits(id: str, known: dict[str, Task], needs: Sequence[str], stuck: set[str]) -> str:
    task, word = known[id], known[id].state
    if word == "completed":
        return ""
    reasons = []
    for each in needs:
        if each not in known:
            reasons.append(f"{each}, which is not a task")
        elif (before := known[each].state) != "completed":
            reasons.append(f"{each} ({before.replace('_', ' ')})" if before else each)
    waits = f"waits for {', '.join(reasons)}" if reasons else ""
    if waits and id in stuck and any(each in stuck for each in needs):
        waits += ", in a circle"
    if word == "blocked":
        own = task.blocked_reason or task.blocked_by or task.reason
        waits = "; ".join(filter(None, (own, waits))) or "blocked, no reason given"
    return waits


def longest(
    known: Mapping[str, Task], needs: Mapping[str, Sequence[str]], stuck: set[str]
) -> list[str]:
    """The chain of undone tasks that takes longest, by their effort; [] where nothing depends."""
    left = {
        id: [each for each in needs[id] if each in known and not _done(known[each])]
        for id, task in known.items()
        if id not in stuck and not _done(task)
    }
    hours: dict[str, float] = {}
    before: dict[str, str] = {}
    open = dict(left)
    while free := [id for id, needed in open.items() if all(each in hours for each in needed)]:
        for id in free:
            del open[id]
            last = max(left[id], key=lambda each: hours[each], default="")
            before[id] = last
            hours[id] = _hours(known[id]) + hours.get(last, 0.0)
    path: list[str] = []
    at = max(hours, key=lambda id: hours[id], default="")
    while at:
        path.insert(0, at)
        at = before[at]
    return path if len(path) > 1 else []


def _done(task: Task) -> bool:
    return task.state == "completed"


def _hours(task: Task) -> float:
    if task.estimated_hours and task.estimated_hours > 0:
        return task.estimated_hours
    return _HOURS.get(task.effort.lower(), 1.0)
