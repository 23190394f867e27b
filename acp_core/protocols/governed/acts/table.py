"""Every act and query of runs and initiatives: what a form offers, and the commands made of them."""

from __future__ import annotations

from acp_core.protocols.governed.acts import table_deciding, table_initiative, table_turns
from acp_core.protocols.kit.command import Commands

SCHEMA = "acp.governed/1"

OF_RUN = (
    table_deciding.RECOVERY,
    table_deciding.SETTING_ASIDE,
    table_deciding.APPROVAL,
    table_deciding.GATE_REJECTION,
    table_turns.CORRECTION,
    table_turns.ACCEPTANCE,
    table_turns.REJECTION,
    table_turns.STOPPING,
    table_deciding.UNBLOCKING,
    table_turns.STEPPING,
    table_deciding.OBJECTION,
    table_deciding.TALKING,
    table_deciding.ESCALATION,
    table_deciding.BRINGING_BACK,
    table_deciding.TAKING_FILES,
    table_deciding.TRUSTING,
    table_deciding.MIGRATION,
)

"""What a human can do in a run, most useful first."""

OF_INITIATIVE = (
    table_initiative.STARTING,
    table_initiative.RESYNC,
    table_initiative.APPROVAL,
    table_initiative.REJECTION,
    table_initiative.MENDING_STATE,
    table_initiative.MENDING,
    table_initiative.COORDINATION,
    table_initiative.TRUST_HOOKS,
)

"""What a human can do in an initiative, most useful first."""

COORDINATOR = Commands(
    "governed coordinator",
    "Coordinate governed runs of several repositories: shared barriers, cross-repo gates, resync.",
    (
        table_initiative.STARTING,
        table_initiative.STATUS,
        table_initiative.COORDINATION,
        table_initiative.POLLING,
        table_initiative.APPROVAL,
        table_initiative.REJECTION,
        table_initiative.RESYNC,
        table_initiative.MENDING,
        table_initiative.MENDING_STATE,
        table_initiative.TRUST_HOOKS,
    ),
    SCHEMA,
)

COMMANDS = Commands(
    "governed",
    "Governed runs: phases, turns, and gates that only a human opens.",
    (
        table_turns.CREATION,
        table_turns.STEPPING,
        table_turns.STOPPING,
        table_turns.STATUS,
        table_turns.CHECK,
        table_turns.CORRECTION,
        table_turns.ACCEPTANCE,
        table_turns.REJECTION,
        table_deciding.APPROVAL,
        table_deciding.TRANSITION,
        table_deciding.COMPLETION,
        table_deciding.GATE_REJECTION,
        table_deciding.ESCALATION,
        table_deciding.UNBLOCKING,
        table_deciding.OBJECTION,
        table_deciding.TALKING,
        table_deciding.RECOVERY,
        table_deciding.BRINGING_BACK,
        table_deciding.TAKING_FILES,
        table_deciding.SETTING_ASIDE,
        table_deciding.TRUSTING,
        table_deciding.MIGRATION,
    ),
    SCHEMA,
    (COORDINATOR,),
)
