"""The parallel development cycle: RA, EP, CD and VAS around one state file."""

from __future__ import annotations

from acp_core.protocols.registry import Protocol, group

PROTOCOL = Protocol(
    name="cycle",
    title="Development cycle",
    markers=(".workflow",),
    manual="acp_core.protocols.cycle.acts.table:COMMANDS.manual",
    tools="acp_core.protocols.cycle.queries:TOOLS",
    detect="acp_core.protocols.cycle.collaboration:detect",
    open="acp_core.protocols.cycle.collaboration:open_cycles",
    past="acp_core.protocols.cycle.past:CycleDerivation",
    create="acp_core.protocols.cycle.acts.conducting:create",
    commands=(
        group(
            "cycle",
            "Development cycles: start, run, steer, repair",
            "acp_core.protocols.cycle.acts.table:COMMANDS",
            "Orchestrate",
        ),
    ),
)
