"""The names of what can be done with agents on the network, and the schema of what is printed."""

from __future__ import annotations

SCHEMA = "acp.wire/1"
SEND, ANSWER, CANCEL, CONNECT, FORGET, MOVE = (
    "send", "answer", "cancel", "connect", "forget", "move",
)  # fmt: skip
ITSELF = "this agent"
"""The receiver that is the agent itself, and none of its peers."""
