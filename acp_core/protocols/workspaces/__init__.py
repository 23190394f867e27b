"""Agent workspaces: an orchestrator's sub-agents, each in its folder, and what it integrates."""

from __future__ import annotations

from acp_core.protocols.registry import Protocol, group

PROTOCOL = Protocol(
    name="workspaces",
    title="Agent workspaces",
    markers=("agent-workspaces", "workspaces"),
    manual="acp_core.protocols.workspaces.acts.table:COMMANDS.manual",
    tools="acp_core.protocols.workspaces.queries:TOOLS",
    detect="acp_core.protocols.workspaces.read.scan:detect",
    open="acp_core.protocols.workspaces.collaboration:open_workspaces",
    create="acp_core.protocols.workspaces.acts.dispatching:create",
    past="acp_core.protocols.workspaces.past:WorkspacesDerivation",
    commands=(
        group(
            "workspaces",
            "Prepare, dispatch, judge and integrate an orchestrator's sub-agents",
            "acp_core.protocols.workspaces.acts.table:COMMANDS",
            "Orchestrate",
        ),
    ),
)
