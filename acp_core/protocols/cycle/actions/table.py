"""Every act and query of a development cycle: what a form offers, and the commands made of them."""

from __future__ import annotations

from acp_core.protocols.cycle.actions.table_conducting import (
    PHASE_RESULT,
    REBUILDING,
    RUNNING,
    SELECTION,
    STARTING,
    STATUS,
)
from acp_core.protocols.cycle.actions.table_steering import (
    ACCEPTANCE,
    DECISION,
    EXTENSION,
    LIMITING,
    MESSAGE,
    PAUSING,
    REPEAT,
    RESOLUTION,
    RESUMPTION,
    STOPPING,
)
from acp_core.protocols.kit.command import Commands

SCHEMA = "acp.cycle/1"
OFFERED = (
    DECISION,
    RESOLUTION,
    RUNNING,
    RESUMPTION,
    MESSAGE,
    EXTENSION,
    PAUSING,
    ACCEPTANCE,
    REPEAT,
    LIMITING,
    STOPPING,
    REBUILDING,
    SELECTION,
)
"""What a person can do to a cycle, most useful first."""
COMMANDS = Commands(
    "cycle",
    "Run development cycles of RA, EP, CD and VAS: start, steer, decide, and repair.",
    (
        STARTING,
        RUNNING,
        STATUS,
        MESSAGE,
        DECISION,
        RESOLUTION,
        EXTENSION,
        PAUSING,
        RESUMPTION,
        STOPPING,
        ACCEPTANCE,
        REPEAT,
        LIMITING,
        REBUILDING,
        SELECTION,
        PHASE_RESULT,
    ),
    SCHEMA,
)
