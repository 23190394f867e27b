"""What stands, and whose move it is: the matters of a collaboration in one order.

Whoever tells how a collaboration stands, on a screen, in a command or over the network, reads these
and nothing else, so that all say the same. What refuses writes comes first, then what a person must
decide, other damage, what failed, what does not run, and remarks; of equals the oldest comes first.
A matter that cannot be ended before another one follows from it: it is told below it, and not counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from acp_core.loops.acts.names import LAUNCH, LAUNCH_ALL, NAMES, RELAUNCH
from acp_core.model import Matter, Snapshot
from acp_core.model.format import continued, names_in
from acp_core.model.matter import Kind
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.kinds import PLACES, kind_of, place

_STARTS = frozenset({LAUNCH, LAUNCH_ALL, RELAUNCH})
_CODE = re.compile(r"([A-Z]+)(\d*)")
_LAST = datetime.max.replace(tzinfo=UTC)
_RUNNING = (PLACES[Kind.FAILING], PLACES[Kind.STALLED])


def standing(snapshot: Snapshot, problems: Iterable[Matter]) -> tuple[Matter, ...]:
    """The matters of a collaboration, in their order; what follows from another one stands last.

    Args:
        snapshot: What its protocol read: its needs, obstacles, questions and notices.
        problems: Why it does not go on, as far as its protocol and the participants' loops say.
    """
    found = {each.key or f"{each.code}:{each.sentence}": each for each in problems}
    explained = {key for each in found.values() for key in each.explains}
    for obstacle in snapshot.obstacles:
        if obstacle.key in found:  # told in more detail, by what it is the reason of
            found[obstacle.key] = found[obstacle.key]._replace(refuses=obstacle.refuses)
    for each in (*snapshot.obstacles, *snapshot.needs, *snapshot.questions, *snapshot.notices):
        if each.key not in explained:
            found.setdefault(each.key, each)
    matters = [each._replace(kind=kind_of(snapshot.protocol, each)) for each in found.values()]
    matters.sort(key=_place)
    told = [each._replace(because=_reason(each, matters)) for each in matters]
    return tuple(
        _possible(snapshot, each) for each in sorted(told, key=lambda each: bool(each.because))
    )


def needs(matters: Iterable[Matter]) -> tuple[Matter, ...]:
    """What needs the person who runs the collaboration here: their moves that follow from no other."""
    return tuple(each for each in matters if each.wanted and not each.because)


def _place(matter: Matter) -> tuple[int, bool, datetime, tuple[str, int]]:
    match = _CODE.fullmatch(matter.code)
    code = (match[1], int(match[2] or 0)) if match else (matter.code, 0)
    return place(matter), not matter.wanted, matter.since or _LAST, code


def _reason(matter: Matter, matters: Sequence[Matter]) -> str:
    """The key of the first matter that must be over before this one can be ended; "" for none."""
    acts = {each.act for each in matter.verdicts if each.ends}
    for other in matters:
        if other.key == matter.key:
            continue
        if other.refuses is not None and acts and matter.refuses is None:
            if all(
                act not in other.refuses and (act not in NAMES or act in _STARTS) for act in acts
            ):
                return other.key
        elif other.root and not matter.root and _is_of(other, matter):
            return other.key
    return ""


def _is_of(root: Matter, matter: Matter) -> bool:
    """Whether a matter is what the reason for a participant's trouble looks like from outside."""
    same = root.about.participant is not None and root.about.participant == matter.about.participant
    return same and place(matter) in _RUNNING


def _possible(snapshot: Snapshot, matter: Matter) -> Matter:
    """The matter without the acts that an obstacle refuses: nobody is sent to do them."""
    obstacles = snapshot.obstacles
    left = tuple(
        each
        for each in matter.verdicts
        if each.act in NAMES or not guard.blocking(obstacles, each.act)
    )
    if left == matter.verdicts:
        return matter
    instruction = matter.instruction
    if instruction and matter.remedy and matter.verdicts[0] not in left:
        names = names_in(snapshot)
        first = continued(obstacles[0].instruction, names)
        instruction = f"first {first}; then {continued(instruction, names)}"
    return matter._replace(verdicts=left, instruction=instruction)
