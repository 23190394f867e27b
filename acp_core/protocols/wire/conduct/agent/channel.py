"""What a connection between two agents is, whatever carries it."""

from __future__ import annotations

from typing import Protocol

from acp_core.model.errors import NetworkError


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
