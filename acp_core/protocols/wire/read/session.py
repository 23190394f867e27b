"""One connection to an agent elsewhere: its card, its peers and tasks, and its log as it grows."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from acp_core.files.decode import text
from acp_core.protocols.wire.network.agent_directory import Way, ways_to
from acp_core.protocols.wire.network.channels import until_one_ends
from acp_core.protocols.wire.network.client import AgentError, Client, Event
from acp_core.protocols.wire.read import folder, known
from acp_core.protocols.wire.read.folder import EVENTS, TASKS, Reach
from acp_core.protocols.wire.read.known import Known
from acp_core.protocols.wire.schema.basics import Json
from acp_core.protocols.wire.schema.untrusted_json import count, encode

if TYPE_CHECKING:
    from acp_core.protocols.wire.read.following import Following

TIMEOUT = 10.0  # seconds for an answer

HEALTH = 10.0  # seconds between two looks at its peers, while nothing happens

QUEUE = 2.0  # the same while something waits for one of them: nothing tells that it arrived

GATHER = 0.1  # seconds in which changes of peers and tasks are gathered

LASTED = 5.0  # seconds after which a connection counts as good

RATE = 4_000  # entries a second at most: a flood is slowed down, not taken in

BURST = 3 * EVENTS

BATCH = 200  # entries that are taken down together

SETTLED = 0.5  # seconds without an entry, after which no more of the past is expected

ALL_PAST = 2.0  # seconds after which nothing is the past of one that does not say how much it has

OPENING = 0.3  # seconds within which another maker's agent has begun its stream

ALONE = 3.0  # seconds without an answer beside a stream: it answers one request at a time

ASKING = 5.0  # seconds between two questions to such an agent

TASKS_ASKED = 20  # tasks that are asked for one by one; more come as a list


class Session:
    """Follows an agent until the connection breaks. ``reached``: there was one."""

    def __init__(self, following: Following) -> None:
        self._following = following
        self._began = time.monotonic()
        self._taken = 0
        self._queue: asyncio.Queue[Event] = asyncio.Queue(BATCH)
        self._dirty: set[str] = set()
        self._stale = asyncio.Event()  # peers or tasks may be others than before
        self._reflected = asyncio.Event()  # the folder of a bridge is another than before
        self._counting: Counting | None = None  # of an agent of another make
        self.reached = False

    @property
    def lasted(self) -> bool:
        """Whether it was reached, and stayed so for a while."""
        return self.reached and time.monotonic() - self._began > LASTED

    async def run(self) -> None:
        """Follow it.

        Raises:
            WireError: it cannot be reached, or refuses; or the connection broke.
        """
        client, reach = await self._reach()
        try:
            self.reached = True
            self._began = time.monotonic()
            if not reach.owner:
                await self._from_outside(client, reach)
            else:
                await self._as_owner(client, reach)
        finally:
            await client.close()

    async def _reach(self) -> tuple[Client, Reach]:
        """The way in that gives most rights.

        Raises:
            WireError: there is none; says what the first that answered said.
        """
        found = await asyncio.to_thread(
            lambda: list(dict.fromkeys(ways_to(self._following.address)))
        )
        refusal: AgentError | None = None
        outside: Way | None = None
        for way in found:
            try:
                async with Client(way.url, way.token, TIMEOUT) as client:
                    await _status(client)
                return Client(way.url, way.token, TIMEOUT), Reach(way.url, way.token)
            except AgentError as error:
                refusal = refusal or error
                if error.status == 403 and way.token:
                    outside = outside or way
                if not error.status and not outside:
                    break  # nobody answers: another token changes nothing
        if outside:
            reach = Reach(outside.url, outside.token, owner=False)
            return Client(outside.url, outside.token, TIMEOUT), reach
        raise refusal or AgentError("not reachable")

    async def _from_outside(self, client: Client, reach: Reach) -> None:
        """With a peer's rights: the card is all that is told."""
        while True:
            self._card(await client.card())
            self._following.reached(reach)
            self._following.settled()
            await asyncio.sleep(HEALTH)

    async def _as_owner(self, client: Client, reach: Reach) -> None:
        status = await _status(client)
        card = await client.card()
        if not card.get("instance_id"):
            await self._another_make(client, reach, card)
            return
        last = count(status.get("server_seq")) or 0
        before = self._following.state
        other = before.card.get("instance_id") not in (None, card.get("instance_id"))
        if other or last < before.last:  # another agent, or its log began anew
            self._following.take([known.record(known.ANEW)])
        self._card(card)
        await self._following.reflect(client, card)
        await self._update(client, None)
        self._following.reached(reach)
        since = max(self._following.last, last - EVENTS)
        await until_one_ends(
            self._listen(client, since),
            self._take_down(last),
            self._keep(client),
            self._reflect(client, card),
        )
        raise AgentError("it ended the stream")

    async def _another_make(self, client: Client, reach: Reach, card: Json) -> None:
        """Follow an agent that has no durable log: what it says is counted here."""
        self._counting = Counting(self._following.state)
        self._card(card)
        await self._update(client, None)
        await self._heard(client)
        self._following.reached(reach)
        self._following.settled()
        if not self._following.alone:
            with contextlib.suppress(_Alone):
                await until_one_ends(
                    self._listen(client, 0),
                    self._take_down(0),
                    self._keep(client),
                    self._check_alone(client),
                )
                raise AgentError("it ended the stream")
        self._following.asked_every(ASKING)
        while True:
            await asyncio.sleep(ASKING)
            await self._update(client, None)
            await self._heard(client)

    async def _heard(self, client: Client) -> None:
        """Take down the messages that it still has."""
        found = [self._numbered("acp.message", each) for each in await client.heard()]
        news = [each for each in found if each]
        if news:
            self._following.take([known.entry(*each) for each in news])

    def _numbered(self, kind: str, body: Json, seq: int = 0) -> Event | None:
        if self._counting is None:
            return Event(seq, kind, body) if seq else None
        return self._counting.numbered(kind, body)

    async def _check_alone(self, client: Client) -> None:
        """See whether it answers anybody while it tells what happens.

        Raises:
            _Alone: it does not; the stream has to end.
        """
        await asyncio.sleep(OPENING)
        try:
            async with asyncio.timeout(ALONE):
                await _status(client)
        except TimeoutError:
            raise _Alone from None
        await asyncio.Event().wait()

    async def _listen(self, client: Client, since: int | None) -> None:
        """Read its log as it comes; no faster than it is taken down."""
        try:
            async for event in client.stream(since, again=False):
                if event.kind == "acp.snapshot":
                    self._reflected.set()
                if event.kind in _NO_ENTRIES:
                    continue
                if made := self._numbered(event.kind, event.data, event.seq):
                    await self._queue.put(made)
        except AgentError as error:
            if since is None or self._counting is None or error.status not in (400, 404):
                raise
            await self._listen(client, None)  # it knows no such question

    async def _take_down(self, last: int) -> None:
        """Take down what was read; says when all is here that was there at the beginning."""
        settled = self._following.last >= last
        if settled:
            self._following.settled()
        while True:
            try:
                event = await asyncio.wait_for(self._queue.get(), None if settled else SETTLED)
            except TimeoutError:  # it promised more than it has
                settled = True
                self._following.settled()
                continue
            batch = [event]
            live = settled and (last > 0 or time.monotonic() - self._began > ALL_PAST)
            while len(batch) < BATCH and not self._queue.empty():
                batch.append(self._queue.get_nowait())
            await self._take(batch, live)
            if not settled and batch[-1].seq >= last:
                settled = True
                self._following.settled()

    async def _take(self, batch: list[Event], live: bool) -> None:
        self._following.take([known.entry(*event, live=live) for event in batch])
        self._dirty.update(
            id
            for event in batch
            if event.kind != "acp.reply" and (id := text(event.data.get("task_id"))) is not None
        )
        self._stale.set()
        self._taken += len(batch)
        ahead = (self._taken - BURST) / RATE - (time.monotonic() - self._began)
        if ahead > 0:
            await asyncio.sleep(min(ahead, 5.0))

    async def _keep(self, client: Client) -> None:
        """Keep peers and tasks up to date."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stale.wait(), QUEUE if self._waits else HEALTH)
            await asyncio.sleep(GATHER)
            self._stale.clear()
            wanted, self._dirty = self._dirty, set()
            await self._update(client, None if self._counting else wanted)

    @property
    def _waits(self) -> bool:
        return any(peer.queued for peer in self._following.state.peers)

    async def _reflect(self, client: Client, card: Json) -> None:
        """Ask a bridge for the state of its folder whenever it has said that there is a new one."""
        while True:
            await self._reflected.wait()
            self._reflected.clear()
            await self._following.reflect(client, card)

    def _card(self, card: Json) -> None:
        plain = {name: value for name, value in card.items() if name not in _NOT_KEPT}
        if {**plain, "timestamp": ""} != {**self._following.state.card, "timestamp": ""}:
            self._following.take([known.record(known.CARD, card=plain)])

    async def _update(self, client: Client, wanted: set[str] | None) -> None:
        """Look at tasks (None: at the latest of all) and peers."""
        tasks = await _tasks(client, wanted)
        peers = known.peers(await _or_none(client.peers()))
        have = self._following.state
        same = peers == [peer.raw for peer in have.peers]
        news = [] if same else [known.record(known.PEERS, peers=peers)]
        plain = [{name: task[name] for name in task if name not in _TWICE} for task in tasks]
        news += [  # asked for first and told last: a task's peer is always known
            known.record(known.TASK, task=task)
            for task in reversed(plain)
            if task.get("id") and not have.holds(task)
        ]
        if news:
            self._following.take(news)


class _Alone(Exception):
    """It answers one request at a time, and a stream is one that does not end."""


async def _tasks(client: Client, wanted: set[str] | None) -> list[Json]:
    """The wanted tasks, or the latest of all."""
    if wanted is None or len(wanted) > TASKS_ASKED:
        query: dict[str, str | int] = {"sort": "-updated_at", "limit": TASKS}
        try:
            return (await _or_none(client.tasks(**query)))[:TASKS]
        except AgentError as error:
            if error.status != 400:
                raise
            return (await _or_none(client.tasks()))[:TASKS]  # it knows no such order
    found: list[Json] = []
    for id in wanted:
        with contextlib.suppress(AgentError):  # it was thrown away meanwhile
            found.append(await client.task(id))
    return found


async def _status(client: Client) -> Json:
    """The agent's figures, where it has such (the specification asks for none)."""
    try:
        return await client.status()
    except AgentError as error:
        if error.status != 404:
            raise
        return {}


async def _or_none(asking: Awaitable[list[Json]]) -> list[Json]:
    """A list, where the agent has such and shows it."""
    try:
        return await asking
    except AgentError as error:
        if error.status not in (403, 404):
            raise
        return []


_NO_ENTRIES = ("acp.ready", "acp.ping", "ready", "ping", "keepalive", "heartbeat")

_NOT_KEPT = ("self", "peer", "link")

_TWICE = ("ok", "task", "history")

_REMEMBERED = 4 * EVENTS


class Counting:
    """Gives what is new the numbers that follow those of the entries that are known."""

    def __init__(self, known: Known) -> None:
        self._last = known.last
        self._seen = dict.fromkeys(
            _identity(each.kind, folder.body_of(each)) for each in known.entries
        )

    def numbered(self, kind: str, body: Json) -> Event | None:
        """The event with its number; None where it is known already."""
        identity = _identity(kind, body)
        if identity in self._seen:
            return None
        self._seen[identity] = None
        if len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        self._last += 1
        return Event(self._last, kind, body)


def _identity(kind: str, body: Json) -> tuple[str, object]:
    """By what an event is known: a message by its id, all else by what it says, but for its number."""
    id = text(body.get("message_id"))
    if kind in ("acp.message", "acp.reply") and id is not None:
        return "message", id
    return kind, encode({name: value for name, value in body.items() if name != "seq"})
