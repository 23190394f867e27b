"""Agent workspaces: an orchestrator's sub-agents, each in its folder, and what it integrates."""

from __future__ import annotations

from acp_core.protocols.registry import Command, Protocol

PROTOCOL = Protocol(
    name="workspaces",
    title="Agent workspaces",
    markers=("agent-workspaces", "workspaces"),
    manual="acp_core.protocols.workspaces.manual:MANUAL",
    detect="acp_core.protocols.workspaces.read.collaboration:detect",
    open="acp_core.protocols.workspaces.read.collaboration:open_workspaces",
    create="acp_core.protocols.workspaces.actions.offered:create",
    past="acp_core.protocols.workspaces.past.derive:WorkspacesDerivation",
    commands=(
        Command(
            "workspaces",
            "Prepare, dispatch, judge and integrate an orchestrator's sub-agents",
            "acp_core.protocols.workspaces.commands:main",
            "acp_core.protocols.workspaces.commands:parser",
            "Orchestrate",
        ),
    ),
)
