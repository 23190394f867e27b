"""Connections of which nobody knows yet whose they are: few at a time.

Who only connects, and says nothing, keeps nobody out: the oldest of them makes room for the next.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from acp_core.protocols.wire.conduct.agent.channel import Channel


class Door:
    """Where strangers stand until they have said who they are. ``most``: how many."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._here: dict[Channel, None] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def waiting(self, channel: Channel) -> Iterator[None]:
        """Let a connection stand here meanwhile."""
        self._here[channel] = None
        if len(self._here) > self._most:
            oldest = next(iter(self._here))
            del self._here[oldest]
            closing = asyncio.create_task(oldest.close("too many strangers"))
            self._leaving.add(closing)
            closing.add_done_callback(self._leaving.discard)
        try:
            yield
        finally:
            self._here.pop(channel, None)
