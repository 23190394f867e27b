"""What a program returned: the last that it said, taken out of what it printed."""

from __future__ import annotations

import os
import time
from pathlib import Path

from acp_core.agents import streams
from acp_core.agents.streams.progress import MAX_LINE
from acp_core.files.reading import Unreadable, open_regular
from acp_core.protocols.workspaces.schema import returns

LIMIT = 512 << 10  # bytes that are kept of what was said
_READ = 16 << 20  # bytes of the output that are read, from its end


def said(out: Path, stream: str) -> str:
    """What the program of a run said, as it is kept: all of a plain text, else its last messages.

    Args:
        out: the file into which it printed.
        stream: the form of what it printed, one of `streams.NAMES`.
    """
    data = _end_of(out)
    text = data.decode(errors="replace") if stream == "text" else _messages(data, stream)
    encoded = text.encode(errors="backslashreplace")
    return encoded[-LIMIT:].decode(errors="replace")


def _messages(data: bytes, stream: str) -> str:
    """The last message, and before it the last one with an object, where it has none itself."""
    parser = streams.parser(stream)
    messages: list[str] = []
    for line in data.split(b"\n"):
        if line:
            parser.feed(line[: MAX_LINE + 1], time.time())
        told = parser.progress.said
        if told and (not messages or messages[-1] != told):
            messages.append(told)
    if not messages:
        return ""
    for message in reversed(messages[-50:]):
        if returns.parse(message)[0] is not None:
            return message
    return messages[-1]


def _end_of(path: Path) -> bytes:
    try:
        descriptor, found = open_regular(path)
    except Unreadable:
        return b""
    try:
        start = max(0, found.st_size - _READ)
        return os.pread(descriptor, _READ, start)
    except OSError:
        return b""
    finally:
        os.close(descriptor)
