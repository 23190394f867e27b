"""Binding C: HTTP relay (core specification, section 7): two agents meet in a room of a relay.

An agent opens a room where it is asked to (``--relay``) and is its host; others join by the
link ``acp+wss://relay/acp/token``. Frames go from the host to a member or back, each as the text
that it is. No relay is contacted that nobody named.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import httpx

from acp_core.files.decode import text
from acp_core.protocols.wire.conduct.agent import Agent
from acp_core.protocols.wire.conduct.session import guest
from acp_core.protocols.wire.network import trust
from acp_core.protocols.wire.network.channels import Channel, ChannelClosed
from acp_core.protocols.wire.network.links import RelayLink
from acp_core.protocols.wire.schema.basics import CARD, Json, WireError
from acp_core.protocols.wire.schema.untrusted_json import count, decode_object, encode, objects

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
            verify=trust.context(link.http),
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


if TYPE_CHECKING:
    pass

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
