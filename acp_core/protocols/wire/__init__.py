"""ACP v0.8: agents that talk to each other over the network."""

from __future__ import annotations

from acp_core.protocols.registry import Protocol, group

_TABLE = "acp_core.protocols.wire.acts.table"

PROTOCOL = Protocol(
    name="wire",
    title="Network agent",
    markers=("wire.sqlite3", "wire-log.jsonl"),
    manual=f"{_TABLE}:MANUAL",
    tools="acp_core.protocols.wire.acts.offered:TOOLS",
    detect="acp_core.protocols.wire.collaboration:detect",
    open="acp_core.protocols.wire.collaboration:open_agent",
    schemes=("acp", "http", "https"),
    locate="acp_core.protocols.wire.network.agent_directory:locate",
    running="acp_core.protocols.wire.network.agent_directory:running_keys_and_folders",
    commands=(
        group("agent", "Run a network agent", f"{_TABLE}:RUN_AGENT"),
        group(
            "bridge",
            "Share the collaboration in a folder with other machines",
            f"{_TABLE}:RUN_BRIDGE",
        ),
        group(
            "relay", "Run a relay for agents that cannot connect directly", f"{_TABLE}:RUN_RELAY"
        ),
        group(
            "wire",
            "Ask agents on the network: send, stream, tasks, peers",
            f"{_TABLE}:COMMANDS",
        ),
    ),
)
