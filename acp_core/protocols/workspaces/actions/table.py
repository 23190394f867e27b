"""Every act and query of a run of sub-agents: what a form offers, and the commands made of them."""

from __future__ import annotations

from acp_core.protocols.kit.command import Commands
from acp_core.protocols.workspaces.actions.table_agents import (
    ADDITION,
    CHECK_PROMPT,
    CREATION,
    DISPATCHING,
    PARSE_RETURN,
    RERUN,
    STATUS,
    STOPPING,
)
from acp_core.protocols.workspaces.actions.table_integration import (
    COMPARISON,
    CONFLICTS,
    DISMISSAL,
    DISPUTE,
    DRAFTING,
    EDITING,
    FINISHING,
    INTEGRATE,
    ORDERING,
    REPAIRING,
    RESOLUTION,
    SYNTHESIS,
    TRIAGING,
)

SCHEMA = "acp.workspaces/1"
OFFERED = (
    TRIAGING,
    DISPATCHING,
    RERUN,
    ADDITION,
    COMPARISON,
    RESOLUTION,
    DISMISSAL,
    SYNTHESIS,
    FINISHING,
    DISPUTE,
    ORDERING,
    STOPPING,
    REPAIRING,
)
"""What a person can do in a run, most useful first."""
COMMANDS = Commands(
    "workspaces",
    "Run an orchestrator's sub-agents: prepare workspaces, dispatch agents, decide on results, "
    "and integrate them.",
    (
        CREATION,
        ADDITION,
        DISPATCHING,
        RERUN,
        STOPPING,
        STATUS,
        CHECK_PROMPT,
        PARSE_RETURN,
        TRIAGING,
        CONFLICTS,
        COMPARISON,
        DISPUTE,
        RESOLUTION,
        DISMISSAL,
        INTEGRATE,
        ORDERING,
        DRAFTING,
        EDITING,
        SYNTHESIS,
        FINISHING,
        REPAIRING,
    ),
    SCHEMA,
)
