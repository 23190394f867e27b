"""What a program said, read from what it printed, once it has ended.

While it runs, `acp_core.agents.output` reads the same files as they grow.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import streams
from acp_core.agents.streams import Progress
from acp_core.agents.streams.progress import MAX_LINE
from acp_core.files.reading import Unreadable, open_regular

_READ = 16 << 20  # bytes that are read, the last ones


class Transcript(NamedTuple):
    """What a program said: every message but repeated ones, and how far it was at the end."""

    messages: tuple[str, ...]
    progress: Progress


def read_end(path: Path, limit: int = _READ) -> bytes:
    """The last ``limit`` bytes of a plain file; none where there is no such file."""
    try:
        descriptor, found = open_regular(path)
    except Unreadable:
        return b""
    try:
        return os.pread(descriptor, limit, max(0, found.st_size - limit))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def parse(data: bytes, stream: str) -> Transcript:
    """Take apart what a program printed.

    Args:
        data: what it printed on its standard output.
        stream: the form of it, one of `streams.NAMES`.

    Raises:
        KeyError: there is no such form.
    """
    parser = streams.parser(stream)
    messages: list[str] = []
    for line in data.split(b"\n"):
        if line:
            parser.feed(line[: MAX_LINE + 1], time.time())
        text = parser.progress.said
        if text and (not messages or messages[-1] != text):
            messages.append(text)
    parser.end()
    return Transcript(tuple(messages), parser.progress)
