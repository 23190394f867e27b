"""Binding D: HTTP/SSE alone (core specification, section 7), from both sides.

The specification leaves open how two agents keep a connection over HTTP alone. Here whoever
connects opens a channel (``POST /channel``) with the token of the link. It posts its frames to it,
one per line, and follows the frames for it as server-sent events. Frames are numbered in each
direction and kept until the other side has them. So a request that broke is made again, at the
place that was reached, and nothing is lost, comes twice or comes in another order.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import httpx

from acp_core.files.decode import text
from acp_core.protocols.wire.network import client, trust
from acp_core.protocols.wire.network.channels import ChannelClosed, Frames, Numbered, until_one_ends
from acp_core.protocols.wire.network.links import HttpLink
from acp_core.protocols.wire.schema.basics import Code, WireError, invalid
from acp_core.protocols.wire.schema.untrusted_json import decode_object

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


OPENING = 10.0  # seconds for a channel to be there

SECONDS = 30.0  # for a request with frames

SILENCE = 40.0  # without anything on the stream; something comes every 15

LOST = 4.0  # of tries that fail, after which the connection counts as broken

PAUSE = 0.2  # between two tries

HEARTBEAT = 15.0  # between two requests while nothing is sent

TELL = 0.05  # after which the other side is told what has come

BATCH = 256 << 10  # bytes of frames in one request, but for one that is larger

SLACK = 65536  # bytes of a frame beyond the largest message

_AGAIN = (408, 429, 500, 502, 503, 504)


class VisitingChannel(Frames):
    """The connection to an agent that we reach over HTTP, as a `Channel`.

    A frame of ours counts as there when the request that brought it was answered.
    """

    def __init__(self, http: httpx.AsyncClient, path: str, limit: int) -> None:
        super().__init__()
        self._http = http
        self._limit = limit  # bytes of a frame
        self._path = path
        self._told = 0  # the last frame that the other side knows to have come
        self._working = asyncio.create_task(self._work())

    async def close(self, reason: str) -> None:
        """See `Channel.close`. What was sent before is delivered first, where that is possible."""
        if not self.why:
            with contextlib.suppress(ChannelClosed, TimeoutError):
                async with asyncio.timeout(2):
                    await self.flushed()
        first = not self.why
        self._end(reason or "closed")
        self._working.cancel()
        await asyncio.gather(self._working, return_exceptions=True)
        if first:
            with contextlib.suppress(httpx.HTTPError):
                await self._http.delete(self._path, timeout=2)
        await self._http.aclose()

    async def _work(self) -> None:
        try:
            await until_one_ends(self._post(), self._follow())
        except ChannelClosed as error:
            self._end(str(error))

    async def _post(self) -> None:
        while True:
            await self._something()
            frames = self._batch()
            first = frames[0].number if frames else self._last + 1
            query = {"seq": first, "seen": self._place}
            body = "\n".join(each.text for each in frames).encode()
            await self._again(partial(self._posted, query, body))
            self._told = max(self._told, query["seen"])
            self._had(first + len(frames) - 1)

    async def _posted(self, query: dict[str, int], body: bytes) -> None:
        path, post = self._path, self._http.stream
        async with post("POST", path, params=query, content=body, timeout=SECONDS) as answer:
            _check(answer.status_code, await client.read_body(answer, SECONDS))

    async def _again(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something, again where it broke."""
        failing = 0.0
        while True:
            place = self._place
            try:
                return await work()
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                raise ChannelClosed(trust.words(error)) from None
            except (httpx.HTTPError, _Broken) as error:
                now = time.monotonic()
                if not failing or self._place > place:
                    failing = now
                if now - failing > LOST:
                    raise ChannelClosed(trust.words(error)) from None
            await asyncio.sleep(PAUSE)

    async def _something(self) -> None:
        """Wait until there is something to say, or it is time to say that we are here."""
        began = time.monotonic()
        while not self._waiting:
            left = HEARTBEAT - (time.monotonic() - began)
            if left <= 0:
                return
            try:
                async with asyncio.timeout(TELL if self._place > self._told else left):
                    await self._change()
            except TimeoutError:
                if self._place > self._told:
                    return

    def _batch(self) -> list[Numbered]:
        frames: list[Numbered] = []
        size = 0
        for each in self._waiting:
            size += len(each.text.encode()) + 1
            if frames and size > BATCH:
                break
            frames.append(each)
        return frames

    async def _follow(self) -> None:
        await self._again(self._followed)

    async def _followed(self) -> None:
        """Take what comes, from the place that was reached, until that breaks."""
        timeout = httpx.Timeout(SECONDS, read=SILENCE)
        path, query = f"{self._path}/stream", {"since": self._place}
        async with self._http.stream("GET", path, params=query, timeout=timeout) as answer:
            if answer.status_code != 200:
                _check(answer.status_code, await client.read_body(answer, SECONDS))
            fields: dict[str, str] = {}
            async for line in client.read_lines(answer, self._limit):
                name, _, value = line.partition(":")
                if name in ("id", "event", "data"):
                    fields[name] = value.removeprefix(" ")
                elif not line:
                    await self._event(fields)
                    fields = {}
        raise _Broken("the stream of frames ended")

    async def _event(self, fields: dict[str, str]) -> None:
        number, data = fields.get("id", ""), fields.get("data")
        if data is None:
            return
        if fields.get("event") == "acp.end":
            raise ChannelClosed(
                _field(data.encode(), "reason") or "the other side closed the connection"
            )
        if number != str(self._place + 1):
            raise ChannelClosed("the frames arrive out of order")
        await self._room()
        self._put(data)


async def dial(agent: Agent, link: HttpLink) -> VisitingChannel:
    """Open a channel at the agent of an ``http://`` link.

    Raises:
        ChannelClosed: it cannot be reached, or does not want us.
    """
    http = httpx.AsyncClient(
        base_url=link.http,
        verify=trust.context(link.http),
        headers={"authorization": f"Bearer {link.token}", **client.PLAIN},
        trust_env=False,
        follow_redirects=False,
    )
    try:
        async with http.stream("POST", "/channel", timeout=OPENING) as answer:
            data = await client.read_body(answer, OPENING)
        _check(answer.status_code, data)
        id = _field(data, "channel")
        if not re.fullmatch(r"[A-Za-z0-9_]{1,128}", id):
            raise ChannelClosed("it does not answer like an agent")
    except BaseException as error:
        await http.aclose()
        if isinstance(error, httpx.HTTPError):
            raise ChannelClosed(trust.words(error)) from None
        raise
    return VisitingChannel(http, f"/channel/{id}", agent.config.limits.message + SLACK)


class _Broken(ChannelClosed):
    """A request failed, and may do better at the next try."""


def _check(status: int, data: bytes) -> None:
    if 200 <= status < 300:
        return
    said = _field(data, "error") or f"the answer was {status}"
    raise _Broken(said) if status in _AGAIN else ChannelClosed(said)


def _field(data: bytes, name: str) -> str:
    """A field of an answer; "" where it has no such text."""
    try:
        return (text(decode_object(data).get(name)) or "")[:200]
    except WireError:
        return ""
