from __future__ import annotations

from acp_core.protocols.governed.schema import Object
from acp_core.protocols.governed.schema.act_names import ACCEPT, APPROVE_GATE, STEP
from acp_core.protocols.governed.schema.config import Hook, Programs
from acp_core.protocols.governed.schema.fields import decode

HOOK_AUDIT = ".agentxchain/hook-audit.jsonl"

HOOK_PHASES = ("after_dispatch", "after_acceptance", "before_gate", "on_escalation")

MOST_HOOKS = 8  # hooks of one phase


ASKED_BEFORE = {
    "before_assignment": STEP,
    "before_validation": ACCEPT,
    "after_validation": ACCEPT,
    "before_acceptance": ACCEPT,
    "before_gate": APPROVE_GATE,
}

BLOCKING = "blocking"


def is_asked(phase: str, hook: Hook) -> bool:
    """Whether a hook is one that is asked before an act, and may stop it."""
    return phase in ASKED_BEFORE and hook.mode == BLOCKING


def asked_before(config: Object, act: str) -> list[tuple[str, Hook]]:
    """The hooks that are asked before an act, each with its phase, in the order in which they are."""
    hooks = decode(Programs, config).hooks
    return [
        (phase, hook)
        for phase, before in ASKED_BEFORE.items()
        if before == act
        for hook in hooks.get(phase, ())[:MOST_HOOKS]
        if is_asked(phase, hook)
    ]
