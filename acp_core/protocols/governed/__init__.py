"""Governed runs and coordinator initiatives (AgentXchain protocol v6): phases, gates, turns."""

from __future__ import annotations

from acp_core.protocols.registry import Protocol, group

PROTOCOL = Protocol(
    name="governed",
    title="Governed run",
    markers=("agentxchain.json", "agentxchain-multi.json"),
    manual="acp_core.protocols.governed.acts.table:COMMANDS.manual",
    tools="acp_core.protocols.governed.acts.turns:TOOLS",
    detect="acp_core.protocols.governed.read.run:detect",
    open="acp_core.protocols.governed.collaboration:open_folder",
    past="acp_core.protocols.governed.past:GovernedDerivation",
    create="acp_core.protocols.governed.acts.upkeep:create",
    commands=(
        group(
            "governed",
            "Governed runs: start, step, accept, approve, ...",
            "acp_core.protocols.governed.acts.table:COMMANDS",
            "Orchestrate",
        ),
    ),
)
