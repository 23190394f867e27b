"""Which tasks of a plan can be worked on at the same time: pure functions.

Source: development cycle specification, "Parallel Opportunities": tasks of CD run in parallel where
none depends on another one. Decided besides: two tasks that name the same file are not worked on at
the same time, whatever the plan says of their order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations

from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.schema.state_file import Task

_MOST = 200  # tasks that are looked at


def apart(tasks: Sequence[Task]) -> tuple[Task, ...]:
    """The undone tasks that can be given out one by one, in the order of the plan.

    None of them waits for something that is no task, or in a circle.

    Args:
        tasks: of the plan.

    Returns:
        The tasks; () where no two of them could ever be at work at the same time.
    """
    known: dict[str, Task] = {}
    for each in tasks[:_MOST]:
        if each.id:
            known.setdefault(each.id, each)
    stuck = state.circle({id: each.depends_on for id, each in known.items()})
    left = {id for id, each in known.items() if id not in stuck and each.state != "completed"}
    done = {id for id, each in known.items() if each.state == "completed"}
    while lost := {id for id in left if not left | done >= set(known[id].depends_on)}:
        left -= lost
    found = tuple(each for id, each in known.items() if id in left)
    before = {each.id: _all_before(each.id, known) for each in found}
    for one, other in combinations(found, 2):
        in_order = one.id in before[other.id] or other.id in before[one.id]
        if not in_order and not share_a_file(one, other):
            return found
    return ()


def startable(
    waiting: Sequence[Task], done: Collection[str], at_work: Collection[Task]
) -> list[Task]:
    """The tasks that can begin now, beside those at work and beside each other, in their order.

    Args:
        waiting: that nobody works on.
        done: the ids of those that are done.
        at_work: that somebody works on.
    """
    beside = list(at_work)
    found = []
    for each in waiting:
        if set(each.depends_on) <= set(done) and not any(share_a_file(each, b) for b in beside):
            found.append(each)
            beside.append(each)
    return found


def share_a_file(one: Task, other: Task) -> bool:
    """Whether two tasks name the same file, or one names a folder in which the other's file is."""
    mine, theirs = (list(map(_path, each.files)) for each in (one, other))
    return any(_overlap(a, b) for a in mine for b in theirs)


def _overlap(one: list[str], other: list[str]) -> bool:
    common = min(len(one), len(other))
    return bool(common) and one[:common] == other[:common]


def _path(name: str) -> list[str]:
    parts = name.replace("\\", "/").split("/")
    return [each for each in parts if each not in ("", ".")]


def _all_before(id: str, known: dict[str, Task]) -> set[str]:
    """The ids of all tasks that one depends on, directly or through others."""
    found: set[str] = set()
    pending = list(known[id].depends_on)
    while pending:
        each = pending.pop()
        if each not in found and each in known:
            found.add(each)
            pending += known[each].depends_on
    return found
