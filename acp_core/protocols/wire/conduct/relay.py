"""Bindings C (a relay) and D (HTTP/SSE alone), from both sides (core specification, section 7).

An agent opens a room of a relay where it is asked to (``--relay``) and is its host; others join by
the link ``acp+wss://relay/acp/token``. Frames go from the host to a member or back, each as the text
that it is. No relay is contacted that nobody named.

The specification leaves open how two agents keep a connection over HTTP alone. Here whoever
connects opens a channel (``POST /channel``) with the token of the link. It posts its frames to it,
one per line, and follows the frames for it as server-sent events. Frames are numbered in each
direction and kept until the other side has them. So a request that broke is made again, at the
place that was reached, and nothing is lost, comes twice or comes in another order.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx

from acp_core.files.decode import text
from acp_core.protocols.wire.conduct.session import guest
from acp_core.protocols.wire.network import client
from acp_core.protocols.wire.network.channels import (
    Channel,
    ChannelClosed,
    Frames,
    Numbered,
    until_one_ends,
)
from acp_core.protocols.wire.network.links import HttpLink, RelayLink
from acp_core.protocols.wire.schema.basics import (
    CARD,
    Code,
    Json,
    WireError,
    count,
    decode_object,
    encode,
    invalid,
    objects,
)

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent import Agent

logger = logging.getLogger("acp.wire")

WAIT = 20.0  # seconds that one question waits for frames

LOST = 30.0  # seconds without an answer after which a relay counts as lost

STUCK = 60.0  # seconds after which a receiver that takes nothing is given up

WAITING = 1024  # frames of one member that its session has not taken; more means it is ended

ANSWER = 8 << 20  # bytes of an answer

FIRST, LONGEST = 0.5, 30.0  # seconds between two tries to open a room


class RelayRoom:
    """A place in a room of a relay, and the channels to its other members.

    Args:
        came: called with the id of a member that joined after us.

    Attributes:
        host: the member who opened the room, while it is there.
        plain: the relay is of another make, and knows no places (see `plain_relay`).
    """

    def __init__(self, agent: Agent, link: RelayLink, came: Callable[[str], None]) -> None:
        self.link = link
        self.host: str | None = None
        self.plain = False
        self._agent = agent
        self._came = came
        self._channels: dict[str, RelayChannel] = {}
        self._session = ""
        self._listening: asyncio.Task[None] | None = None
        self._http = httpx.AsyncClient(
            base_url=link.http,
            verify=client.context(link.http),
            timeout=WAIT + 10,
            trust_env=False,
            follow_redirects=False,
        )

    async def join(self, key: str | None = None, relay_key: str | None = None) -> None:
        """Join the room; with ``key`` as its host, and opening it.

        Raises:
            ChannelClosed: that cannot be done.
        """
        body: Json = {"name": self._agent.config.name}
        if key is not None:
            body["key"] = key
            shown = {"authorization": f"Bearer {relay_key}"} if relay_key else {}
            query = {"token": self.link.token}
            await self.ask("POST", "/acp/new", json={"key": key}, params=query, headers=shown)
        told = await self.ask("POST", "join", json=body)
        session, member = text(told.get("session_id")), text(told.get("member"))
        self.plain = session is None or member is None
        if not self.plain:
            self._session, self.host = session or "", text(told.get("host"))

    async def listen(self) -> None:
        """Hand out what comes, until the place is lost.

        Raises:
            ChannelClosed: always, at the end.
        """
        after, failing = 0, 0.0
        loop = asyncio.get_running_loop()
        while True:
            query = {"session": self._session, "after": after, "wait": int(WAIT)}
            try:
                told = await self.ask("GET", "poll", params=query)
            except _Unanswered as error:
                failing = failing or loop.time()
                if loop.time() - failing > LOST:
                    raise ChannelClosed(str(error)) from None
                await asyncio.sleep(0.5)
                continue
            failing = 0.0
            for entry in objects(told.get("messages")):
                self._hand(entry)
            after = max(after, count(told.get("last")) or 0)

    def channel(self, member: str) -> RelayChannel:
        """The channel to a member."""
        made = self._channels[member] = RelayChannel(self, member)
        return made

    async def post(self, text: str, member: str | None = None) -> None:
        """Let a frame wait for a member, or for all; waits while too much does.

        Raises:
            ChannelClosed: it cannot be sent.
        """
        pause = 0.02
        query = {"session": self._session, "to": member} if member else {}
        try:
            async with asyncio.timeout(STUCK):
                while True:
                    with contextlib.suppress(_Unanswered):
                        await self.ask("POST", "send", params=query, content=text.encode())
                        return
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, 2.0)
        except TimeoutError:
            raise ChannelClosed("no longer accepting frames") from None

    async def waiting(self, member: str) -> int:
        """How many of our frames a member has not taken."""
        query = {"session": self._session, "to": member}
        told = await self.ask("GET", "status", params=query)
        return count(told.get("waiting")) or 0

    def follow(self) -> None:
        """Listen until the place is left."""

        async def work() -> None:
            try:
                await self.listen()
            except ChannelClosed as error:
                for channel in self._channels.values():
                    channel.end(str(error))

        self._listening = asyncio.create_task(work())

    async def part(self, member: str) -> None:
        """End the channel to a member: a host sends it away, another one leaves."""
        if self._channels.pop(member, None) is None:
            return
        if self._listening:
            await self.close()
            return
        with contextlib.suppress(ChannelClosed, TimeoutError):
            async with asyncio.timeout(2):
                query = {"session": self._session, "member": member}
                await self.ask("POST", "leave", params=query)

    async def close(self) -> None:
        """Leave the room."""
        if self._listening:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        for channel in list(self._channels.values()):
            channel.end("left the relay")
        if self._session:
            with contextlib.suppress(ChannelClosed, TimeoutError):
                async with asyncio.timeout(2):
                    await self.ask("POST", "leave", params={"session": self._session})
        await self._http.aclose()

    def _hand(self, entry: Json) -> None:
        member, frame = text(entry.get("from")), text(entry.get("text"))
        event = entry.get("event")
        if member is None:
            return
        channel = self._channels.get(member)
        if event == "joined":
            self._came(member)
        elif event == "left" and channel:
            channel.end("it left the relay")
        elif frame is not None and not entry.get("shared") and channel:
            channel.put(frame)

    async def ask(self, verb: str, action: str, **options: Any) -> Json:
        """Ask the relay for something in the room; its answer.

        Raises:
            ChannelClosed: it refuses, or does not answer.
        """
        path = action if action.startswith("/") else f"/acp/{self.link.token}/{action}"
        try:
            async with self._http.stream(verb, path, **options) as response:
                data = bytearray()
                async for chunk in response.aiter_bytes():
                    data += chunk
                    if len(data) > ANSWER:
                        raise ChannelClosed("the relay's answer is too large")
        except httpx.HTTPError as error:
            raise _Unanswered(
                f"the relay does not answer: {error or type(error).__name__}"
            ) from None
        try:
            told = decode_object(bytes(data))
        except WireError:
            told = {}
        if response.is_success:
            return told
        said = str(told.get("error") or f"status {response.status_code}")[:200]
        if response.status_code in (408, 429, 500, 502, 503, 504):
            raise _Unanswered(f"the relay says: {said}")
        raise ChannelClosed(f"the relay says: {said}")


class _Unanswered(ChannelClosed):
    """It may go better at the next try."""


class RelayChannel:
    """The way to one member of a room as a `Channel`."""

    rewrites = False

    def __init__(self, place: RelayRoom, member: str) -> None:
        self._place = place
        self._member = member
        self._came: asyncio.Queue[str | None] = asyncio.Queue()
        self._sending = asyncio.Lock()
        self._why = ""

    async def send(self, text: str) -> None:
        """See `Channel.send`. One after the other, so that they arrive in order."""
        async with self._sending:
            if self._why:
                raise ChannelClosed(self._why)
            await self._place.post(text, self._member)

    async def receive(self) -> str:
        """See `Channel.receive`."""
        text = await self._came.get()
        if text is None:
            self._came.put_nowait(None)
            raise ChannelClosed(self._why)
        return text

    async def flushed(self) -> None:
        """See `Channel.flushed`: the relay says what the other side has not taken yet."""
        while True:
            if not await self._place.waiting(self._member):
                return
            await asyncio.sleep(0.1)

    async def close(self, reason: str) -> None:
        """See `Channel.close`."""
        self.end(reason or "closed")
        await self._place.part(self._member)

    def put(self, text: str) -> None:
        """Take a frame that came."""
        if self._came.qsize() >= WAITING:
            self.end("it sends too many frames")
        elif not self._why:
            self._came.put_nowait(text)

    def end(self, why: str) -> None:
        """Nothing comes any more, and nothing goes."""
        if not self._why:
            self._why = why or "it ended"
            self._came.put_nowait(None)


async def dial_relay(agent: Agent, link: RelayLink) -> Channel:
    """Join the room of a link, and reach its host.

    Raises:
        ChannelClosed: that cannot be done, or the host is not there.
    """
    place = RelayRoom(agent, link, lambda member: None)
    try:
        await place.join()
        if place.plain:
            all_others = LeavingChannel(place)
            await all_others.skip()
            return all_others
        if place.host is None:
            raise ChannelClosed("the other agent is not connected to the relay")
    except BaseException:
        await place.close()
        raise
    channel = place.channel(place.host)
    place.follow()
    return channel


async def host_room(agent: Agent, link: RelayLink, key: str, relay_key: str | None) -> None:
    """Keep a room open, and have everybody who joins it as a peer."""
    pause = FIRST
    while True:
        began = time.monotonic()
        try:
            await _host_once(agent, link, key, relay_key)
        except ChannelClosed as error:
            logger.warning("relay %s: %s", link.http, error)
        if time.monotonic() - began > STUCK:
            pause = FIRST
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
        pause = min(2 * pause, LONGEST)


async def _host_once(agent: Agent, link: RelayLink, key: str, relay_key: str | None) -> None:
    working: set[asyncio.Task[None]] = set()

    def came(member: str) -> None:
        work = asyncio.create_task(guest(agent, place.channel(member)))
        working.add(work)
        work.add_done_callback(working.discard)

    place = RelayRoom(agent, link, came)
    try:
        await place.join(key, relay_key)
        if place.plain:
            await _host_plainly(agent, PlainChannel(place))
        await place.listen()
    finally:
        for work in working:
            work.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        await place.close()


async def _host_plainly(agent: Agent, channel: PlainChannel) -> None:
    """Have whoever speaks in the room as a peer, one session after the other."""
    await channel.skip()
    while True:
        await channel.heard()
        channel.begin()
        await guest(agent, channel)


EVERY = 1.0  # seconds between two questions while nothing comes

REMEMBERED = 4096  # frames of our own, which come back too

PAGE = 200

_JOINED = "acp.agent_joined"


class PlainChannel:
    """All others in a room as one `Channel`."""

    rewrites = True

    def __init__(self, place: RelayRoom) -> None:
        self._place = place
        self._last = ""
        self._came: list[Json] = []
        self._own: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._greeted = False
        self._closed = ""

    async def skip(self) -> None:
        """Pass over what was said before we came.

        Raises:
            ChannelClosed: the relay is lost.
        """
        while await self._ask():
            pass
        self._came.clear()

    async def heard(self) -> None:
        """Wait until somebody says something.

        Raises:
            ChannelClosed: the relay is lost.
        """
        while not self._came:
            if not await self._ask():
                await asyncio.sleep(EVERY)

    def begin(self) -> None:
        """Be there for a new session; what has come belongs to it."""
        self._greeted, self._closed = False, ""

    async def send(self, text: str) -> None:
        """See `Channel.send`."""
        if self._closed:
            raise ChannelClosed(self._closed)
        self._own[_key(decode_object(text))] = None
        while len(self._own) > REMEMBERED:
            self._own.popitem(last=False)
        await self._place.post(text)

    async def receive(self) -> str:
        """See `Channel.receive`. A second card is the beginning of another session."""
        while True:
            if self._closed:
                raise ChannelClosed(self._closed)
            if self._came:
                is_card = self._came[0].get("type") == CARD
                if is_card and self._greeted:
                    self._closed = "the peer joined again"
                    continue
                self._greeted = self._greeted or is_card
                return encode(self._came.pop(0)).decode()
            if not await self._ask():
                await asyncio.sleep(EVERY)

    async def flushed(self) -> None:
        """See `Channel.flushed`: such a relay does not say; it has taken everything."""

    async def close(self, reason: str) -> None:
        """See `Channel.close`."""
        self._closed = self._closed or reason or "closed"

    async def _ask(self) -> int:
        """Ask once; how much there was."""
        query = {"since": "0", "limit": str(PAGE)}
        if self._last:
            query["after_id"] = self._last
        told = await self._place.ask("GET", "poll", params=query)
        found, last = objects(told.get("messages")), text(told.get("last_id"))
        if not found or last is None or last == self._last:
            return 0
        self._last = last
        self._came += [
            each for each in found if each.get("type") != _JOINED and _key(each) not in self._own
        ]
        return len(found)


class LeavingChannel(PlainChannel):
    """The same for who joined: the room is left with the session."""

    async def close(self, reason: str) -> None:
        """See `Channel.close`."""
        await super().close(reason)
        await self._place.close()


def _key(frame: Json) -> tuple[str, str]:
    return str(frame.get("type")), str(frame.get("message_id"))


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

FAILING = 4.0  # of tries that fail, after which the connection counts as broken

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
                raise ChannelClosed(client.words(error)) from None
            except (httpx.HTTPError, _Broken) as error:
                now = time.monotonic()
                if not failing or self._place > place:
                    failing = now
                if now - failing > FAILING:
                    raise ChannelClosed(client.words(error)) from None
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
        verify=client.context(link.http),
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
            raise ChannelClosed(client.words(error)) from None
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
