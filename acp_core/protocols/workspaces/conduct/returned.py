"""What a program returned: the last that it said, taken out of what it printed."""

from __future__ import annotations

import json
from pathlib import Path

from acp_core.agents import output
from acp_core.protocols.workspaces import schema

LIMIT = 512 << 10  # bytes that are kept of what was said


def read_return(out: Path, stream: str) -> str:
    """What the program of a run said, as it is kept: all of a plain text, else its last messages.

    Args:
        out: the file into which it printed.
        stream: the form of what it printed, one of `streams.NAMES`.
    """
    data = output.read_end(out)
    text = data.decode(errors="replace") if stream == "text" else _messages(data, stream)
    encoded = text.encode(errors="backslashreplace")
    return encoded[-LIMIT:].decode(errors="replace")


def is_object(text: str) -> bool:
    """Whether a text is one object of JSON, and nothing else."""
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _messages(data: bytes, stream: str) -> str:
    """The last message, and before it the last one with an object, where it has none itself."""
    messages = output.parse(data, stream).messages
    for message in reversed(messages[-50:]):
        if schema.parse_return(message)[0] is not None:
            return message
    return messages[-1] if messages else ""
