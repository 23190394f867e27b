"""Which kind of matter each code is, and how urgent a matter is by its kind.

What refuses writes is the most urgent; then come what a person must decide, other damage, what failed,
what does not run, and remarks.
"""

from __future__ import annotations

from acp_core.model.matter import Kind, Matter


def _by_kind(**codes: str) -> dict[str, Kind]:
    """The kind of each code, from the codes of each kind with blanks between them."""
    return {code: Kind(kind) for kind, named in codes.items() for code in named.split()}


KINDS = {
    "": _by_kind(
        stalled="B1 B6 B7 B8 B9 B10 B12 B14 E9",
        failing="B2 B3 B4 B5 B11 B15 B16",
        conflict="B13 E24",
        permission="B17",
        decision="E8",
        damage="E20",
        remark="E25",
    ),
    "folder": _by_kind(
        damage="A0 A1 A2 A3 A4 A5 A6 A7 A8 A9 C2 C3 C5",
        failing="C1",
        remark="C4 E2",
        conflict="C6",
        turn="D1 D6 D7 D8",
        question="D2 D3 D4",
        decision="D5 E1",
        stalled="D9",
    ),
    "workspaces": _by_kind(
        damage="A0 A1 A2 A3 A4 A5 A6 A7 A8 A9",
        decision="E50 E51 E52 E53 E58 E59",
        stalled="E54 E55",
        turn="E56 E57",
    ),
    "wire": _by_kind(
        stalled="wire-unreachable wire-stopped wire-queue wire-peer-away wire-peer-gone wire-task-orphan wire-task-still",
        conflict="wire-signature wire-stranger wire-held",
        damage="wire-store",
    ),
    "governed": _by_kind(
        damage="A0 A1 A2 A3 A4 A5 A6 A7 A8 A9 D8 E21",
        failing="B1 B2 D11 E2 E22",
        stalled="B3 B5 D4 D5 D6 D10",
        turn="B4 D1 D2 D7 STEP START",
        conflict="C1 D3",
        decision="C2 C4 D9 D12 E1 E23",
        remark="C3",
    ),
    "cycle": _by_kind(
        damage="A0 A1 A2 A3 A4 A5 A6 A7 A8 A9",
        failing="B2 failed",
        pause="E1",
        decision="E7",
        stalled="stalled",
    ),
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
PLACES = {kind: place for place, kinds in enumerate(_ORDER, 1) for kind in kinds}
"""How urgent each kind is; 1 for the most urgent one."""


def kind_of(protocol: str, matter: Matter) -> Kind:
    """Which kind of matter it is: that of its code, else what its protocol says.

    A failure that passes by itself is a pause for as long as it does.
    """
    if matter.kind is Kind.PAUSE:
        return matter.kind
    return KINDS.get(protocol, {}).get(matter.code) or KINDS[""].get(matter.code) or matter.kind


def place(matter: Matter) -> int:
    """How urgent a matter is; 0 for the most urgent."""
    return 0 if matter.refuses is not None else PLACES[matter.kind]
