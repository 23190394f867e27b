"""The parallel development cycle: RA, EP, CD and VAS around one state file."""

from __future__ import annotations

from acp_core.protocols import Command, Protocol

PROTOCOL = Protocol(
    name="cycle",
    title="Development cycle",
    markers=(".workflow",),
    manual="acp_core.protocols.cycle.manual:MANUAL",
    detect="acp_core.protocols.cycle.read:detect",
    open="acp_core.protocols.cycle.read:open_cycles",
    past="acp_core.protocols.cycle.past.deriving:CycleDerivation",
    create="acp_core.protocols.cycle.founding_action:create",
    commands=(
        Command(
            "cycle",
            "Development cycles: begin, conduct, steer, mend",
            "acp_core.protocols.cycle.commands:cycle",
            "acp_core.protocols.cycle.commands:cycle_parser",
            "Orchestrate",
        ),
    ),
)
