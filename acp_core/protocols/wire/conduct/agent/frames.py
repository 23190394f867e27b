"""Numbered frames in both directions, bounded: what both ends of a channel over HTTP share."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import NamedTuple

from acp_core.protocols.wire.conduct.agent.channel import ChannelClosed

WAITING = 1024  # frames that wait in one direction
BYTES = 4 << 20  # of the frames that wait in one direction
STUCK = 60.0  # seconds after which a side that takes nothing is given up


class Numbered(NamedTuple):
    """A frame for the other side, with its number in the order of sending, from 1."""

    number: int
    text: str


class Frames:
    """The part of a `Channel` over HTTP that knows nothing of HTTP.

    Attributes:
        why: why it has ended; "" while it goes on.
    """

    rewrites = False

    def __init__(self) -> None:
        self.why = ""
        self._waiting: deque[Numbered] = deque()  # ours, until the other side has them
        self._bytes = 0  # of them
        self._last = 0  # the number of the last of ours
        self._came: asyncio.Queue[str | None] = asyncio.Queue()
        self._place = 0  # the number of the last frame that came
        self._unread = 0  # bytes that have come and were not received here
        self._changed = asyncio.Event()

    async def send(self, text: str) -> None:
        """See `Channel.send`."""
        try:
            async with asyncio.timeout(STUCK):
                while not self.why and _full(len(self._waiting), self._bytes):
                    await self._change()
        except TimeoutError:
            raise ChannelClosed("no longer accepting frames") from None
        if self.why:
            raise ChannelClosed(self.why)
        self._last += 1
        self._waiting.append(Numbered(self._last, text))
        self._bytes += len(text)
        self._wake()

    async def receive(self) -> str:
        """See `Channel.receive`."""
        text = await self._came.get()
        if text is None:
            self._came.put_nowait(None)
            raise ChannelClosed(self.why)
        self._unread -= len(text)
        self._wake()
        return text

    async def flushed(self) -> None:
        """See `Channel.flushed`."""
        while self._waiting:
            if self.why:
                raise ChannelClosed(self.why)
            await self._change()

    def _had(self, number: int) -> None:
        """The other side has our frames up to this one."""
        while self._waiting and self._waiting[0].number <= number:
            self._bytes -= len(self._waiting.popleft().text)
        self._wake()

    async def _room(self) -> None:
        """Wait until a further frame may come, or it has ended."""
        while not self.why and _full(self._came.qsize(), self._unread):
            await self._change()

    def _put(self, text: str) -> None:
        """The next frame of the other side is here."""
        self._place += 1
        self._unread += len(text)
        self._came.put_nowait(text)
        self._wake()

    def _end(self, why: str) -> None:
        if not self.why:
            self.why = why
            self._came.put_nowait(None)
            self._wake()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _change(self) -> None:
        await self._changed.wait()


def _full(frames: int, size: int) -> bool:
    return frames >= WAITING or size >= BYTES
