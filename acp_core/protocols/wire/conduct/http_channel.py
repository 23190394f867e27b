"""Binding D, where the agent is reached: HTTP/SSE (core specification, section 7).

The specification leaves open how two agents keep a connection over HTTP alone. Here whoever
connects opens a channel (``POST /channel``) with the token of the link. It posts its frames to it,
one per line, and follows the frames for it as server-sent events. Frames are numbered in each
direction and kept until the other side has them. So a request that broke is made again, and
nothing is lost, comes twice or comes in another order.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from acp_core.protocols.wire.network.channels import Frames, Numbered
from acp_core.protocols.wire.schema.basics import Code, WireError, invalid

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent import Agent

AWAY = 2.0  # seconds without anybody who follows the frames

SILENT = 45.0  # seconds without a request; the other side says something every 15

PATIENCE = 20.0  # seconds that a request with frames waits for room

LINGER = 5.0  # seconds in which it can still be asked why a channel has ended

GUESTS = 64  # channels beyond those of known peers


class HttpChannel(Frames):
    """The connection of an agent that reached us over HTTP, as a `Channel`.

    A frame of ours counts as there when the other side says that it has it.

    Attributes:
        id: by which its requests name it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.id = f"chn_{os.urandom(16).hex()}"
        self._follower = 0
        self._following = False
        self._left = self._heard = time.monotonic()

    async def close(self, reason: str) -> None:
        """See `Channel.close`. What waits is still told to who follows."""
        self._end(reason or "closed")

    async def take(self, lines: Sequence[str], first: int | None, seen: int | None) -> int:
        """Take frames from the other side; gives how many have come in all.

        Args:
            first: the number of the first of them, from 1; None: the next one's. Those that have
                come before are passed over.
            seen: the other side has all frames up to this number.

        Raises:
            Refusal: the numbers do not fit, no room came in time, or it has ended.
        """
        self._heard = time.monotonic()
        if seen is not None:
            self._seen(seen)
        number = self._place + 1 if first is None else first
        try:
            async with asyncio.timeout(PATIENCE):
                for line in lines:
                    await self._take(number, line)
                    number += 1
        except TimeoutError:
            raise WireError(Code.BUSY, "too many frames arrived", taken=self._place) from None
        return self._place

    async def after(self, place: int, follower: int, seconds: float) -> list[Numbered]:
        """The frames behind ``place``, waiting for one at most so long.

        Empty also where it has ended, or where somebody else follows by now.
        """
        try:
            async with asyncio.timeout(seconds):
                while self._last <= place and not self.why and self.followed_by(follower):
                    await self._change()
        except TimeoutError:
            return []
        if not self.followed_by(follower):
            return []
        return [each for each in self._waiting if each.number > place]

    def follow(self, place: int) -> int:
        """Begin to follow the frames behind ``place``; who followed before, follows no more.

        Returns:
            By what this follower is known.

        Raises:
            Refusal: there are no such frames, or they are not kept any more.
        """
        if place < self._last - len(self._waiting):
            raise invalid("since: later frames were acknowledged already")
        self._seen(place)
        self._follower += 1
        self._following = True
        self._wake()
        return self._follower

    def followed_by(self, follower: int) -> bool:
        """Whether nobody else follows by now."""
        return self._follower == follower

    def left(self, follower: int) -> None:
        """Note that nobody follows any more."""
        if self.followed_by(follower):
            self._following, self._left = False, time.monotonic()

    async def watch(self) -> None:
        """End it when the other side is gone."""
        while not self.why:
            await asyncio.sleep(0.5)
            now = time.monotonic()
            if not self._following and now - self._left > AWAY:
                await self.close("no peer reads it now")
            elif now - self._heard > SILENT:
                await self.close("no sign of life from the peer")

    def _seen(self, number: int) -> None:
        if number > self._last:
            raise invalid("there are fewer frames")
        self._had(number)

    async def _take(self, number: int, line: str) -> None:
        await self._room()
        if self.why:
            raise WireError(Code.NOT_FOUND, f"the channel has ended: {self.why}")
        if number > self._place + 1:
            raise invalid(f"seq: frame {self._place + 1} has not come yet")
        if number == self._place + 1:
            self._put(line)


Converse = Callable[["Agent", HttpChannel], Awaitable[None]]

"""Exchanges frames with whoever came, until that ends."""


class HttpChannels:
    """The channels of all who reached the agent over HTTP."""

    def __init__(self, agent: Agent, converse: Converse) -> None:
        """Have none yet; ``converse`` exchanges frames with a guest until that ends."""
        self._agent, self._converse = agent, converse
        self._most = agent.config.limits.peers + GUESTS
        self._open: dict[str, HttpChannel] = {}

    def begin(self) -> HttpChannel:
        """Have somebody as a guest.

        Raises:
            Refusal: there are too many.
        """
        if sum(not each.why for each in self._open.values()) >= self._most:
            raise WireError(Code.BUSY, "too many channels are open")
        visit = HttpChannel()
        self._open[visit.id] = visit
        self._agent.start(asyncio.create_task(self._run(visit)))
        return visit

    def get(self, id: str) -> HttpChannel:
        """The channel of this id.

        Raises:
            Refusal: there is none.
        """
        visit = self._open.get(id)
        if visit is None:
            raise WireError(Code.NOT_FOUND, "no such channel")
        return visit

    async def _run(self, visit: HttpChannel) -> None:
        watching = asyncio.create_task(visit.watch())
        try:
            await self._converse(self._agent, visit)
            if len(self._open) <= self._most:
                await asyncio.sleep(LINGER)
        finally:
            watching.cancel()
            self._open.pop(visit.id, None)
