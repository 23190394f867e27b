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

_STARTS = frozenset({LAUNCH, LAUNCH_ALL, RELAUNCH})
_CODE = re.compile(r"([A-Z]+)(\d*)")
_LAST = datetime.max.replace(tzinfo=UTC)

_DAMAGE = {f"A{number}": Kind.DAMAGE for number in range(10)}
_EVERYWHERE = {
    "B1": Kind.STALLED,
    "B2": Kind.FAILING,
    "B3": Kind.FAILING,
    "B4": Kind.FAILING,
    "B5": Kind.FAILING,
    "B6": Kind.STALLED,
    "B7": Kind.STALLED,
    "B8": Kind.STALLED,
    "B9": Kind.STALLED,
    "B10": Kind.STALLED,
    "B11": Kind.FAILING,
    "B12": Kind.STALLED,
    "B13": Kind.CONFLICT,
    "B14": Kind.STALLED,
    "B15": Kind.FAILING,
    "B16": Kind.FAILING,
    "B17": Kind.PERMISSION,
    "E8": Kind.DECISION,
    "E9": Kind.STALLED,
    "E20": Kind.DAMAGE,
    "E24": Kind.CONFLICT,
    "E25": Kind.REMARK,
}
KINDS = {
    "": _EVERYWHERE,
    "folder": {
        **_DAMAGE,
        "C1": Kind.FAILING,
        "C2": Kind.DAMAGE,
        "C3": Kind.DAMAGE,
        "C4": Kind.REMARK,
        "C5": Kind.DAMAGE,
        "C6": Kind.CONFLICT,
        "D1": Kind.TURN,
        "D2": Kind.QUESTION,
        "D3": Kind.QUESTION,
        "D4": Kind.QUESTION,
        "D5": Kind.DECISION,
        "D6": Kind.TURN,
        "D7": Kind.TURN,
        "D8": Kind.TURN,
        "D9": Kind.STALLED,
        "E1": Kind.DECISION,
        "E2": Kind.REMARK,
    },
    "workspaces": {
        **_DAMAGE,
        "E50": Kind.CONFLICT,
        "E51": Kind.CONFLICT,
        "E52": Kind.DECISION,
        "E53": Kind.DECISION,
        "E54": Kind.STALLED,
        "E55": Kind.STALLED,
        "E56": Kind.TURN,
        "E57": Kind.TURN,
        "E58": Kind.DECISION,
        "E59": Kind.DECISION,
    },
    "wire": {
        "wire-unreachable": Kind.STALLED,
        "wire-stopped": Kind.STALLED,
        "wire-queue": Kind.STALLED,
        "wire-peer-away": Kind.STALLED,
        "wire-peer-gone": Kind.STALLED,
        "wire-task-orphan": Kind.STALLED,
        "wire-task-still": Kind.STALLED,
        "wire-signature": Kind.CONFLICT,
        "wire-stranger": Kind.CONFLICT,
        "wire-store": Kind.DAMAGE,
        "wire-held": Kind.CONFLICT,
    },
    "governed": {
        **_DAMAGE,
        "B1": Kind.FAILING,
        "B2": Kind.FAILING,
        "B3": Kind.STALLED,
        "B4": Kind.TURN,
        "B5": Kind.STALLED,
        "C1": Kind.CONFLICT,
        "C2": Kind.DECISION,
        "C3": Kind.REMARK,
        "C4": Kind.DECISION,
        "D1": Kind.TURN,
        "D2": Kind.TURN,
        "D3": Kind.CONFLICT,
        "D4": Kind.STALLED,
        "D5": Kind.STALLED,
        "D6": Kind.STALLED,
        "D7": Kind.TURN,
        "D8": Kind.DAMAGE,
        "D9": Kind.DECISION,
        "D10": Kind.STALLED,
        "D11": Kind.FAILING,
        "D12": Kind.DECISION,
        "E1": Kind.DECISION,
        "E2": Kind.FAILING,
        "E21": Kind.DAMAGE,
        "E22": Kind.FAILING,
        "E23": Kind.DECISION,
        "STEP": Kind.TURN,
        "START": Kind.TURN,
    },
    "cycle": {
        **_DAMAGE,
        "B2": Kind.FAILING,
        "E1": Kind.PAUSE,
        "E7": Kind.DECISION,
        "failed": Kind.FAILING,
        "stalled": Kind.STALLED,
    },
}
"""Which kind of matter each code is, by protocol; "" for those of every protocol. A code that is
not listed is of the kind that its protocol says."""

_ORDER = (
    (Kind.DECISION, Kind.QUESTION, Kind.PERMISSION),
    (Kind.DAMAGE, Kind.CONFLICT),
    (Kind.FAILING,),
    (Kind.STALLED, Kind.TURN, Kind.PAUSE),
    (Kind.REMARK,),
)
_PLACES = {kind: place for place, kinds in enumerate(_ORDER, 1) for kind in kinds}


def standing(snapshot: Snapshot, problems: Iterable[Matter]) -> tuple[Matter, ...]:
    """The matters of a collaboration, in their order; what follows from another one stands last.

    Args:
        snapshot: What its protocol read: its needs, obstacles, questions and notices.
        problems: Why it does not go on, as far as its protocol and the participants' loops say.
    """
    found = {each.key or f"{each.code}:{each.sentence}": each for each in problems}
    explained = {key for each in found.values() for key in each.explains}
    for each in (*snapshot.obstacles, *snapshot.needs, *snapshot.questions, *snapshot.notices):
        if each.key not in explained:
            found.setdefault(each.key, each)
    matters = [each._replace(kind=kind_of(snapshot.protocol, each)) for each in found.values()]
    matters.sort(key=_place)
    told = [each._replace(because=_reason(each, matters)) for each in matters]
    return tuple(
        _possible(snapshot, each) for each in sorted(told, key=lambda each: bool(each.because))
    )


def kind_of(protocol: str, matter: Matter) -> Kind:
    """Which kind of matter it is: that of its code, else what its protocol says."""
    own = KINDS.get(protocol, {})
    return own.get(matter.code) or _EVERYWHERE.get(matter.code) or matter.kind


def needs(matters: Iterable[Matter]) -> tuple[Matter, ...]:
    """What needs the person who runs the collaboration here: their moves that follow from no other."""
    return tuple(each for each in matters if each.wanted and not each.because)


def place(matter: Matter) -> int:
    """How urgent a matter is; 0 for the most urgent."""
    return 0 if matter.refuses is not None else _PLACES[matter.kind]


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
    return same and place(matter) in (_PLACES[Kind.FAILING], _PLACES[Kind.STALLED])


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
