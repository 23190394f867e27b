"""ACP v0.8: agents that talk to each other over the network."""

from __future__ import annotations

from acp_core.protocols.registry import Command, Protocol

_ASKING = "acp_core.protocols.wire.commands.ask"
_BRIDGE = "acp_core.protocols.wire.commands.bridge"
_RELAY = "acp_core.protocols.wire.commands.relay"
_AGENT = "acp_core.protocols.wire.commands.agent"

PROTOCOL = Protocol(
    name="wire",
    title="Network agent",
    markers=("wire.sqlite3", "wire-log.jsonl"),
    manual="acp_core.protocols.wire.manual:MANUAL",
    detect="acp_core.protocols.wire.read.collaboration:detect",
    open="acp_core.protocols.wire.read.collaboration:open_agent",
    schemes=("acp", "http", "https"),
    locate="acp_core.protocols.wire.read.remote.location:locate",
    running="acp_core.protocols.wire.read.remote.running:running",
    commands=(
        Command(
            "agent",
            "Run an agent that others reach over the network",
            f"{_AGENT}:agent",
            f"{_AGENT}:agent_parser",
        ),
        Command(
            "bridge",
            "Show the collaboration in a folder to another machine",
            f"{_BRIDGE}:bridge",
            f"{_BRIDGE}:bridge_parser",
        ),
        Command(
            "relay",
            "Let agents meet that cannot reach each other",
            f"{_RELAY}:relay",
            f"{_RELAY}:relay_parser",
        ),
        Command(
            "wire",
            "Ask agents on the network: send, stream, tasks, peers",
            f"{_ASKING}:wire",
            f"{_ASKING}:wire_parser",
        ),
    ),
)
