"""What a connection between two agents is, whatever carries it: frames, numbered, and their pace."""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import socket
import termios
import time
from collections import deque
from collections.abc import Coroutine
from typing import Any, NamedTuple, Protocol

from acp_core.model.errors import NetworkError
from acp_core.protocols.wire.schema.basics import Code, WireError, invalid


class ChannelClosed(NetworkError):
    """The connection is at its end; the message says why, in a few words."""


class Channel(Protocol):
    """Texts in both directions, in order, one JSON object each.

    Attributes:
        rewrites: whatever carries it may change what a frame says, so that a signature which
            does not fit means nothing.
    """

    rewrites: bool

    async def send(self, text: str) -> None:
        """Send a text; waits while too much is on its way.

        Raises:
            ChannelClosed: it cannot be sent.
        """

    async def receive(self) -> str:
        """The next text.

        Raises:
            ChannelClosed: none will come.
            Refusal: this one cannot be taken; the next one can.
        """

    async def flushed(self) -> None:
        """Wait until the other side has taken everything that was sent.

        Raises:
            ChannelClosed: it cannot be known any more.
        """

    async def close(self, reason: str) -> None:
        """End it; never raises."""


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


SLACK = 65536  # bytes of a frame beyond the largest message

_LOOK = 0.02  # seconds between two looks at what the other side has taken


class LineChannel:
    """One JSON object per line, UTF-8, as a `Channel`.

    A line that is too long or no text is refused alone: the next one is read as ever. A line
    that has no end when the stream ends was never sent whole, and counts for nothing.

    Args:
        reader: made with the limit that a line has, in bytes.
    """

    rewrites = False

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, text: str) -> None:
        """See `Channel.send`."""
        try:
            self._writer.write(text.encode() + b"\n")
            async with asyncio.timeout(STUCK):
                await self._writer.drain()
        except TimeoutError:
            raise ChannelClosed("no longer accepting frames") from None
        except (OSError, RuntimeError) as error:
            raise ChannelClosed(str(error) or "the connection broke") from None
        if self._writer.is_closing():
            raise ChannelClosed("the connection ended")

    async def receive(self) -> str:
        """See `Channel.receive`; empty lines are passed over."""
        while True:
            line = await self._line()
            if line.strip():
                try:
                    return line.decode()
                except UnicodeDecodeError:
                    raise invalid("the frame is not UTF-8 text") from None

    async def flushed(self) -> None:
        """See `Channel.flushed`: the system says what the other side has not taken yet."""
        while self._untaken():
            if self._writer.is_closing():
                raise ChannelClosed("the connection ended")
            await asyncio.sleep(_LOOK)

    async def close(self, reason: str) -> None:
        """See `Channel.close`."""
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(2):
                await self._writer.wait_closed()

    async def _line(self) -> bytes:
        too_long = False
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                too_long = True
                continue
            except asyncio.IncompleteReadError:
                raise ChannelClosed("the connection ended") from None
            except OSError as error:
                raise ChannelClosed(error.strerror or "the connection broke") from None
            if too_long:
                raise WireError(Code.TOO_LARGE, "the frame is too large")
            return line

    def _untaken(self) -> int:
        """Bytes that are on their way; those that only we know of included."""
        here = self._writer.transport.get_write_buffer_size()
        where = self._writer.get_extra_info("socket") or self._writer.get_extra_info("pipe")
        if where is None or where.fileno() < 0:
            return int(here)
        is_socket = isinstance(where, socket.socket) or hasattr(where, "getpeername")
        count = array.array("i", [0])
        with contextlib.suppress(OSError):
            fcntl.ioctl(where.fileno(), termios.TIOCOUTQ if is_socket else termios.FIONREAD, count)
        return int(here) + count[0]


class Pace:
    """So many turns a second, with a reserve of one second's."""

    def __init__(self, rate: int) -> None:
        self._rate = self._left = float(rate)
        self._at = time.monotonic()

    async def turn(self) -> None:
        """Wait until it is the next one's turn."""
        now = time.monotonic()
        self._left = min(self._rate, self._left + (now - self._at) * self._rate) - 1
        self._at = now
        if self._left < 0:
            await asyncio.sleep(-self._left / self._rate)


async def until_one_ends(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Run all until the first ends; cancel the others, and wait until they are gone.

    Raises:
        Exception: what the first that ended has raised.
    """
    work = [asyncio.create_task(each) for each in coroutines]
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in work:
            each.cancel()
        await asyncio.gather(*work, return_exceptions=True)
