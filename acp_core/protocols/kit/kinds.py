"""Which kind of matter each code is, and how urgent a matter is by its kind.

What refuses writes is the most urgent; then come what a person must decide, other damage, what failed,
what does not run, and remarks.
"""

from __future__ import annotations

from acp_core.model.matter import Kind, Matter

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
PLACES = {kind: place for place, kinds in enumerate(_ORDER, 1) for kind in kinds}
"""How urgent each kind is; 1 for the most urgent one."""


def kind_of(protocol: str, matter: Matter) -> Kind:
    """Which kind of matter it is: that of its code, else what its protocol says."""
    own = KINDS.get(protocol, {})
    return own.get(matter.code) or _EVERYWHERE.get(matter.code) or matter.kind


def place(matter: Matter) -> int:
    """How urgent a matter is; 0 for the most urgent."""
    return 0 if matter.refuses is not None else PLACES[matter.kind]
