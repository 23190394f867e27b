"""One connection with a peer: the cards, then frames both ways until it ends.

What goes out comes from the store's queue and leaves it when the peer has acknowledged it; what
comes in is acknowledged when it is on the disk. So a connection may break at any moment.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.files.decode import text
from acp_core.model.errors import NetworkError
from acp_core.protocols.wire import write
from acp_core.protocols.wire.conduct import peers
from acp_core.protocols.wire.conduct.peers import Peer
from acp_core.protocols.wire.network import identity
from acp_core.protocols.wire.network.channels import Channel, ChannelClosed, Pace, until_one_ends
from acp_core.protocols.wire.read import store as read_store
from acp_core.protocols.wire.schema import bodies
from acp_core.protocols.wire.schema.basics import (
    ACK,
    CARD,
    ERROR,
    MESSAGE,
    PROOF,
    REPLY,
    TASK_UPDATED,
    Json,
    WireError,
    decode_object,
    encode,
    invalid,
    new_id,
    now_text,
)
from acp_core.protocols.wire.schema.bodies import PeerCard
from acp_core.protocols.wire.write import Tx

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent import Agent

logger = logging.getLogger("acp.wire")


WINDOW = 256  # frames that are on their way without having been acknowledged

LARGEST_CARD = 65536  # bytes

NOT_WELCOME = "not_welcome"  # the code of an error after which the connection ends

COMPLAINTS = 20  # about one connection that are written down

PATIENCE = 60.0  # seconds without any acknowledgement after which a connection is given up


class PeerRefused(NetworkError):
    """The other side, or we, do not want the connection; the message says why."""


class _Taken(NamedTuple):
    future: asyncio.Future[Any]
    frame_id: str | None


class Session:
    """A connection with a peer. ``dialled`` is whom we called; None where the peer called us.

    Attributes:
        card: what the peer says of itself.
        proven: it has proven that the card is its own.
    """

    def __init__(self, agent: Agent, channel: Channel, dialled: Peer | None = None) -> None:
        self.agent = agent
        self.dialled = dialled
        self.proven = False
        self.card: PeerCard = bodies.read_card(None)
        self._channel = channel
        self._peer: Peer | None = None
        self._unread = asyncio.Semaphore(agent.config.limits.unread)
        self._taken: asyncio.Queue[_Taken] = asyncio.Queue()
        self._unacknowledged: dict[str, list[int]] = {}
        self._room = asyncio.Event()
        self._pace = Pace(agent.config.limits.frames)
        self._early: list[Json] = []
        self._ended = ""
        self._complaints = 0

    async def run(self) -> None:
        """Exchange frames until the connection ends.

        Raises:
            PeerRefused: it was not wanted.
            ChannelClosed: it broke, or was closed.
        """
        try:
            try:
                stranger = self.dialled is None
                with self.agent.door.waiting(self._channel) if stranger else nullcontext():
                    self.card = await self._greeting()
                peer = self._peer = await self.agent.peers.adopt(self, self.card)
            except WireError as refusal:
                await self._complain(refusal, code=NOT_WELCOME)
                raise PeerRefused(refusal.message) from None
            try:
                await self._exchange(peer)
            finally:
                await self.agent.peers.left(peer, self)
        except sqlite3.Error as error:  # nothing was acknowledged: all comes again
            logger.warning("the store failed: %s", error)
            raise ChannelClosed(f"the store failed: {error}") from None
        finally:
            await self._channel.close(self._ended)

    async def end(self, reason: str) -> None:
        """Close it from our side."""
        self._ended = reason
        await self._channel.close(reason)

    async def _greeting(self) -> PeerCard:
        """Show our card, and take the other side's with the proof that it is its own.

        Who begins with a message and has no card is known by the name that it says.
        """
        nonce, own = identity.nonce(), self.agent.card()
        try:
            async with asyncio.timeout(self.agent.config.limits.hello_seconds):
                try:
                    await self._send(CARD, message_id=new_id("card"), card=own, nonce=nonce)
                except ChannelClosed:
                    await self._first()  # what came before the end says why
                    raise
                frame = await self._first(CARD, MESSAGE)
                if frame["type"] == MESSAGE:
                    self._early.append(frame)
                    return bodies.read_card({"name": frame.get("from")})
                if len(encode(frame)) > LARGEST_CARD:
                    raise PeerRefused("the card is too large")
                card = bodies.read_card(frame.get("card"))
                if identity.is_nonce(asked := frame.get("nonce")):
                    given = identity.signatures_for(
                        asked, own, card, self.agent.instance, self.agent.identity
                    )
                    await self._send(PROOF, message_id=new_id("proof"), **given)
                if identity.owes(card):
                    identity.check_proofs(await self._first(PROOF), nonce, own, card)
                    self.proven = True
                return card
        except TimeoutError:
            raise ChannelClosed("no card arrived, or no proof of identity") from None

    async def _first(self, *kinds: str) -> Json:
        """The next frame of these kinds; what cannot be read, and others, are passed over."""
        while True:
            try:
                frame = decode_object(await self._channel.receive())
            except WireError:
                continue
            if frame.get("type") == ERROR:
                raise PeerRefused(str(frame.get("error", frame.get("code")))[:200])
            if frame.get("type") in kinds:
                return frame

    async def _exchange(self, peer: Peer) -> None:
        await until_one_ends(self._read(peer), self._deliver(peer), self._acknowledge(peer))

    async def _read(self, peer: Peer) -> None:
        while peer.session is self:
            try:
                frame = self._early.pop() if self._early else await self._next()
            except WireError as refusal:
                await self._complain(refusal)
                continue
            await self._unread.acquire()
            if peer.session is not self:  # its frames come again over the newer connection
                return
            try:
                taken = self._take(peer, frame)
            except WireError as refusal:
                self._unread.release()
                await self._complain(refusal)
                continue
            if taken is None:
                self._unread.release()
            else:
                self._taken.put_nowait(taken)

    async def _next(self) -> Json:
        text = await self._channel.receive()
        await self._pace.turn()
        return decode_object(text)

    def _take(self, peer: Peer, frame: Json) -> _Taken | None:
        kind, named = frame.get("type"), frame.get("message_id")
        id = text(frame.get("id") if named is None else named)
        if kind == ACK:
            self._acknowledged(peer, frame)
        elif kind == CARD:
            self._renew(peer, bodies.read_card(frame.get("card")))
        elif kind == PROOF:  # it belongs to the beginning
            pass
        elif kind == ERROR:
            said = str(frame.get("error", frame.get("code")))[:200]
            if frame.get("code") == NOT_WELCOME:
                raise PeerRefused(said)
            logger.warning("%s says: %r", peer.name, said)
        elif kind == TASK_UPDATED:
            return _Taken(peers.update(self.agent, peer, frame), id)
        else:
            trusted = not self._channel.rewrites
            return _Taken(peers.take(self.agent, peer, frame, trusted), id)
        return None

    def _renew(self, peer: Peer, card: PeerCard) -> None:
        known = (self.card.identity, self.card.public_key)
        if self.card.identity and (card.identity, card.public_key) != known:
            raise invalid("a card cannot change to that of another agent")
        self.card = peer.card = card

    async def _acknowledge(self, peer: Peer) -> None:
        """Tell the peer what is on our disk, in the order in which it came."""
        while True:
            batch = [await self._taken.get()]
            while not self._taken.empty():
                batch.append(self._taken.get_nowait())
            ids: list[str] = []
            for taken in batch:
                try:
                    self._arrived(await taken.future)
                except WireError as refusal:  # sending it again would not make it better
                    await self._complain(refusal, taken.frame_id)
                self._unread.release()
                if taken.frame_id is not None:
                    ids.append(taken.frame_id)
            if ids and self.card.acks:
                await self._send(ACK, message_id=ids[-1], message_ids=ids)

    def _arrived(self, result: object) -> None:
        if not isinstance(result, peers.Taken):
            return
        if not result.new:
            self.agent.deduped += 1
        elif result.envelope.get("type") == REPLY:
            self.agent.replied(result.envelope)

    async def _deliver(self, peer: Peer) -> None:
        """Send what waits for the peer, oldest first, again where it was not acknowledged."""
        place, store = 0, self.agent.store
        while True:
            peer.wake.clear()
            room = WINDOW - sum(map(len, self._unacknowledged.values()))
            if room <= 0:
                await self._wait_for_room()
                continue
            after, limit = place, room
            rows = await store.read(lambda db: read_store.outgoing_after(db, peer.id, after, limit))  # noqa: B023
            if not rows:
                await peer.wake.wait()
                continue
            for row in rows:
                self._unacknowledged.setdefault(row.frame_id, []).append(row.id)
                await self._channel.send(row.frame)
                place = row.id
            if not self.card.acks:
                await self._channel.flushed()
                self._done(peer, list(self._unacknowledged))

    async def _wait_for_room(self) -> None:
        self._room.clear()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._room.wait()
        except TimeoutError:
            raise ChannelClosed("no acknowledgement for too long") from None

    def _acknowledged(self, peer: Peer, frame: Json) -> None:
        ids = frame.get("message_ids")
        if not isinstance(ids, list):
            ids = [frame.get("message_id")]
        self._done(peer, [id for id in ids if isinstance(id, str)])

    def _done(self, peer: Peer, frame_ids: list[str]) -> None:
        ids = [id for each in frame_ids for id in self._unacknowledged.pop(each, [])]
        if not ids:
            return
        self._room.set()
        peer.depth -= len(ids)

        def work(tx: Tx) -> None:
            write.acknowledge_frames(tx, peer.id, ids)

        self.agent.store.submit(work).add_done_callback(_noted)

    async def _complain(
        self, refusal: WireError, frame_id: str | None = None, code: str = ""
    ) -> None:
        self._complaints += 1
        if self._complaints <= COMPLAINTS:  # no stranger fills the log
            logger.warning("from %s: %s", self.card.name, refusal.message)
        envelope = refusal.envelope()
        if frame_id:
            envelope["failed_message_id"] = frame_id
        await self._send(ERROR, code=code or refusal.code.value, **envelope)

    async def _send(self, kind: str, **fields: object) -> None:
        frame = {"type": kind, "message_id": new_id("frame"), "ts": now_text(), **fields}
        await self._channel.send(encode(frame).decode())


async def guest(agent: Agent, channel: Channel) -> None:
    """Exchange frames with whoever came to us, until that ends."""
    try:
        await Session(agent, channel).run()
    except (PeerRefused, ChannelClosed) as error:
        logger.info("connection ended: %s", error)


def _noted(future: asyncio.Future[None]) -> None:
    """A queue that could not be shortened: what is in it is sent again, and arrives once."""
    if not future.cancelled() and future.exception():
        logger.warning("could not store what arrived: %s", future.exception())
