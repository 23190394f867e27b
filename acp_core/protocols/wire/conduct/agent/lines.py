"""Frames as lines of JSON over a byte stream: what the bindings B (stdio) and E (TCP) have in common."""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import socket
import termios

from acp_core.protocols.wire.conduct.agent.channel import ChannelClosed
from acp_core.protocols.wire.schema import Code, Refusal, invalid

SLACK = 65536  # bytes of a frame beyond the largest message
STUCK = 60.0  # seconds after which a side that takes nothing is given up
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
                raise Refusal(Code.TOO_LARGE, "the frame is too large")
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
