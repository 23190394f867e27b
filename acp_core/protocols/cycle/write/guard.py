"""What stands in the way of writes to a cycle: its state is lost or damaged, or its disk is closed.

Source: development cycle specification, "Shared State File". The writes ask under their lock
(`of_state`), and the Snapshot carries the same (`of_cycle`), so that what is refused, what is
offered and what `acp why` tells agree.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.schema import AGENTS, REBUILD_ACT, SELECT_ACT, START_ACT, Cycle
from acp_core.protocols.cycle.write import kept, layout
from acp_core.protocols.cycle.write.found import read_state_file
from acp_core.protocols.kit import guard

STATE = "A5"  # the code of a state that is lost or damaged
_ELSEWHERE = frozenset({SELECT_ACT, START_ACT})  # acts that leave this cycle's state alone
_UNWRITTEN = frozenset({SELECT_ACT})  # acts that write nothing into the project


def of_cycle(root: Path, cycle: Cycle) -> tuple[Obstacle, ...]:
    """What stands in the way of writes to a cycle, as it was read.

    A file that is just being written is granted its moment.
    """
    problem = "" if scan.young(cycle.record, cycle.now) else state.state_problem(cycle)
    return of_problem(root, cycle.id, problem)


def of_state(root: Path, id: str) -> tuple[Obstacle, ...]:
    """What stands in the way of writes to a cycle, as it stands now."""
    return of_problem(root, id, read_state_file(_file(root, id)).problem)


def of_problem(root: Path, id: str, problem: str) -> tuple[Obstacle, ...]:
    """What stands in the way where this is wrong with the state file; "" for nothing."""
    return (*_of_state(root, id, problem), *of_disk(root))


def of_disk(root: Path) -> tuple[Obstacle, ...]:
    """Whether nothing can be written into a project's cycles; before there are any, into it."""
    home = scan.home(root)
    found = guard.disk(home or root)
    return (replace(found, allowed=_UNWRITTEN),) if found else ()


def _file(root: Path, id: str) -> Path:
    return root.joinpath(*schema.HOME, f"{id}.json")


def _of_state(root: Path, id: str, problem: str) -> Iterator[Obstacle]:
    if not problem:
        return
    name = clean_line(f"{id}.json")
    if _file(root, id).is_symlink():
        cure, remedy = f"replace {name} with the file itself", ""
    elif _is_left(root, id):
        words = ("acp", "cycle", "rebuild", "--folder", str(root), "--cycle", id)
        cure, remedy = clean_line(" ".join(map(shlex.quote, words)), 8192), REBUILD_ACT
    else:
        cure, remedy = f"restore {name} from your own copy, or remove what is left of the cycle", ""
    yield Obstacle(
        STATE,
        clean_line(f"the state file {name} {problem}"),
        cure,
        allowed=_ELSEWHERE | ({REBUILD_ACT} if remedy else frozenset()),
        remedy=remedy,
        given=(("cycle", id),) if remedy else (),
        evidence=(clean_line(f"{'/'.join(schema.HOME)}/{name}"),),
        key=clean_line(f"{STATE}:{id}:{problem}"),
    )


def can_rebuild(root: Path, cycle: Cycle) -> bool:
    """Whether a cycle's state is lost or damaged, and can be made anew."""
    return any(each.remedy == REBUILD_ACT for each in of_cycle(root, cycle))


def _is_left(root: Path, id: str) -> bool:
    """Whether anything is left of which a state can be made anew."""
    file = _file(root, id)
    if kept.whole(root, id) is not None or read_state_file(file).state:
        return True
    return any(layout.documents(file.with_suffix(".progress"), name) for name in AGENTS)
