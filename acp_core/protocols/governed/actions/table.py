"""Every act and query of runs and initiatives: what a form offers, and the commands made of them."""

from __future__ import annotations

from acp_core.protocols.governed.actions import table_deciding as deciding
from acp_core.protocols.governed.actions import table_initiative as initiative
from acp_core.protocols.governed.actions import table_turns as turns
from acp_core.protocols.kit.command import Commands

SCHEMA = "acp.governed/1"
OF_RUN = (
    deciding.RECOVERY,
    deciding.SETTING_ASIDE,
    deciding.APPROVAL,
    deciding.GATE_REJECTION,
    turns.CORRECTION,
    turns.ACCEPTANCE,
    turns.REJECTION,
    turns.STOPPING,
    deciding.UNBLOCKING,
    turns.STEPPING,
    deciding.OBJECTION,
    deciding.TALKING,
    deciding.ESCALATION,
    deciding.BRINGING_BACK,
    deciding.TAKING_FILES,
    deciding.TRUSTING,
    deciding.MIGRATION,
)
"""What a human can do in a run, most useful first."""
OF_INITIATIVE = (
    initiative.STARTING,
    initiative.RESYNC,
    initiative.APPROVAL,
    initiative.REJECTION,
    initiative.MENDING_STATE,
    initiative.MENDING,
    initiative.COORDINATION,
    initiative.TRUST_HOOKS,
)
"""What a human can do in an initiative, most useful first."""
COORDINATOR = Commands(
    "governed coordinator",
    "Coordinate governed runs of several repositories: shared barriers, cross-repo gates, resync.",
    (
        initiative.STARTING,
        initiative.STATUS,
        initiative.COORDINATION,
        initiative.POLLING,
        initiative.APPROVAL,
        initiative.REJECTION,
        initiative.RESYNC,
        initiative.MENDING,
        initiative.MENDING_STATE,
        initiative.TRUST_HOOKS,
    ),
    SCHEMA,
)
COMMANDS = Commands(
    "governed",
    "Governed runs: phases, turns, and gates that only a human opens.",
    (
        turns.CREATION,
        turns.STEPPING,
        turns.STOPPING,
        turns.STATUS,
        turns.CHECK,
        turns.CORRECTION,
        turns.ACCEPTANCE,
        turns.REJECTION,
        deciding.APPROVAL,
        deciding.TRANSITION,
        deciding.COMPLETION,
        deciding.GATE_REJECTION,
        deciding.ESCALATION,
        deciding.UNBLOCKING,
        deciding.OBJECTION,
        deciding.TALKING,
        deciding.RECOVERY,
        deciding.BRINGING_BACK,
        deciding.TAKING_FILES,
        deciding.SETTING_ASIDE,
        deciding.TRUSTING,
        deciding.MIGRATION,
    ),
    SCHEMA,
    (COORDINATOR,),
)
