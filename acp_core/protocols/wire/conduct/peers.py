"""The peers that an agent knows, where each is reached, and the one connection to each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from acp_core.files.decode import text
from acp_core.protocols.wire import write
from acp_core.protocols.wire.network import agent_directory, links, trust
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read.folder import SUSPECT
from acp_core.protocols.wire.read.store import PeerRow
from acp_core.protocols.wire.schema import agent_card as cards
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.agent_card import PeerCard
from acp_core.protocols.wire.schema.basics import Code, Json, WireError, invalid, now_text
from acp_core.protocols.wire.schema.untrusted_json import decode_object
from acp_core.protocols.wire.write import Tx

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent import Agent
    from acp_core.protocols.wire.conduct.session import Session


class Peer:
    """A peer: what is kept of it, its connection, and how much waits for it.

    Attributes:
        wake: set when something waits for it.
        trouble: why it cannot be reached; "" while nothing is known against it.
    """

    def __init__(self, row: PeerRow) -> None:
        self.row = row
        self.card: PeerCard = cards.read_card(row.card)
        self.session: Session | None = None
        self.depth = 0
        self.wake = asyncio.Event()
        self.alone = asyncio.Event()
        self.alone.set()
        self.trouble = ""

    @property
    def id(self) -> str:
        """The id under which the HTTP interface knows it."""
        return self.row.id

    @property
    def name(self) -> str:
        """What it is called."""
        return self.row.name

    @property
    def connected(self) -> bool:
        """Whether there is a connection over which its card came."""
        return self.session is not None

    def reserve(self, limit: int) -> bool:
        """Make room for a frame in its queue; False where too much waits for it already."""
        self.depth += 1
        return self.depth <= limit

    def reserved(self, used: bool) -> None:
        """Give the room back where it was not used."""
        if not used:
            self.depth -= 1


Dial = Callable[["Agent", Peer], Coroutine[Any, Any, None]]
"""Keeps a connection to a peer by its link, as long as that is wanted."""


class _Adopted(NamedTuple):
    peer: Peer
    replaced: Session | None


class Peers:
    """All known peers of an agent."""

    def __init__(self, agent: Agent, dial: Dial) -> None:
        """Know none yet; ``dial`` keeps the connections to those that the agent calls."""
        self._agent, self._keep_connected = agent, dial
        self._known: dict[str, Peer] = {}
        self._aliases: dict[str, str] = {}
        self._adopting = asyncio.Lock()
        self._dialers: dict[str, asyncio.Task[None]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def load(self) -> None:
        """Read what is kept; whoever was connected when the agent was killed is not any more."""
        rows = await self._agent.store.write(lambda tx: write.mark_all_disconnected(tx, now_text()))
        depths = await self._agent.store.read(store.queue_depths)
        for row in rows:
            peer = self._known[row.id] = Peer(row)
            peer.depth = depths.get(row.id, (0, 0.0))[0]

    def every(self) -> list[Peer]:
        """All of them, in the order in which they became known."""
        return list(self._known.values())

    def get(self, id: str) -> Peer:
        """The peer of this id.

        Raises:
            Refusal: there is none.
        """
        peer = self._known.get(self._aliases.get(id, id))
        if peer is None:
            raise WireError(Code.NOT_FOUND, "no such peer")
        return peer

    def choose(self, id: str | None) -> Peer:
        """The peer to whom a message goes: that of the id, else the only one there is.

        Raises:
            Refusal: no such peer, none that ever was connected, or more than one.
        """
        if id is not None:
            peer = self.get(id)
            if peer.row.identity is None:
                said = f"{peer.name} has never been connected"
                raise WireError(
                    Code.NOT_CONNECTED, f"{said}: {peer.trouble}" if peer.trouble else said
                )
            return peer
        met = [peer for peer in self.every() if peer.row.identity is not None]
        here = [peer for peer in met if peer.connected]
        fitting = here or met
        if not fitting:
            raise WireError(Code.NOT_CONNECTED, "No P2P connection")
        if len(fitting) > 1:
            raise WireError(
                Code.AMBIGUOUS,
                "more than one peer: name one as peer_id",
                connected_peers=[{"peer_id": peer.id, "name": peer.name} for peer in fitting],
            )
        return fitting[0]

    def queued(self, peer_id: str | None) -> None:
        """Note that a frame that needed no reservation was put into a peer's queue."""
        peer = self._known.get(peer_id or "")
        if peer:
            peer.depth += 1
            peer.wake.set()

    async def connect(self, text: str, name: str | None) -> tuple[Peer, bool]:
        """Keep a connection to the agent behind a link; says whether it was known already.

        Raises:
            Refusal: no link, our own one, or too many peers.
        """
        link = await resolve_link(text)
        if str(link) in self._agent.links.values():
            raise invalid("this is the agent's own link")
        async with self._adopting:
            known = self._behind(str(link))
            if known is None:
                await self._make_room()
                row = await self._agent.store.write(
                    lambda tx: write.add_peer(
                        tx, None, name or links.authority(link.host, link.port), str(link), True
                    )
                )
                peer = self._known[row.id] = Peer(row)
            else:
                peer = known
                if not (peer.row.dials and peer.row.link == str(link)):
                    await self._save(peer, peer.row._replace(link=str(link), dials=True))
        self._dial(peer)
        return peer, known is not None

    def start(self) -> None:
        """Begin to connect to all peers to which a connection is kept."""
        for peer in self.every():
            self._dial(peer)

    def dialled_by(self, task: asyncio.Task[None] | None, peer: Peer) -> Peer | None:
        """The peer to which this task has to keep a connection now; None: it has to end."""
        now = self._known.get(self._aliases.get(peer.id, peer.id))
        return now if now and self._dialers.get(now.id) is task else None

    async def rename(self, peer: Peer, name: str) -> str:
        """Call a peer something else here; returns what it was called."""
        before = peer.name
        await self._save(peer, peer.row._replace(name=name))
        return before

    async def forget(self, peer: Peer) -> None:
        """Drop a peer, its connection and what waits for it."""
        dialer = self._dialers.pop(peer.id, None)
        if dialer:
            dialer.cancel()
        if peer.session:
            await peer.session.end("forgotten")
        self._known.pop(peer.id, None)
        await self._agent.store.write(lambda tx: write.remove_peer(tx, peer.row))

    async def move(self, old: Peer, new: Peer) -> int:
        """Let another peer get what waits for one that is away; says how many frames that are.

        Who decides that both are the same agent is the owner: nothing proves it here.

        Raises:
            Refusal: it is no other peer, one that was never connected, or ``old`` is connected.
        """
        if old is new:
            raise invalid("to: must be another peer")
        if old.connected:
            raise invalid(f"{old.name} is connected and gets its waiting messages")
        if new.row.identity is None:
            raise invalid(f"{new.name} has never been connected")
        async with self._adopting:
            number = await self._agent.store.write(
                lambda tx: write.move_outgoing(tx, old.id, new.id)
            )
            new.depth, old.depth = new.depth + old.depth, 0
            new.wake.set()
        return number

    async def adopt(self, session: Session, card: PeerCard) -> Peer:
        """The peer whose card came over a new connection, which becomes its only one.

        Raises:
            Refusal: the connection is not wanted (our own agent, or a second one to the peer).
        """
        if card.identity == f"instance:{self._agent.instance_id}":
            raise invalid("this agent itself")
        async with self._adopting:
            peer, replaced = await self._adopt(session, card)
        if replaced:
            await replaced.end("replaced by a newer connection")
        return peer

    async def left(self, peer: Peer, session: Session) -> None:
        """Note that a connection has ended."""
        if peer.session is not session:
            return
        peer.session = None
        peer.alone.set()
        if peer.id in self._known:
            await self._save(peer, peer.row._replace(disconnected_at=now_text()), "disconnected")

    async def as_json(self, wanted: list[Peer]) -> list[Json]:
        """Peers as the HTTP interface tells them (core specification, section 8.2)."""
        counters = await self._agent.store.read(store.count_traffic)
        return [_peer_json(peer, *counters.get(peer.id, (0, 0))) for peer in wanted]

    async def close(self) -> None:
        """End all connections."""
        for dialer in self._running:
            dialer.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)
        sessions = [peer.session for peer in self.every() if peer.session]
        await asyncio.gather(*(session.end("the agent ends") for session in sessions))

    async def _adopt(self, session: Session, card: PeerCard) -> _Adopted:
        asked = session.dialled
        if asked and asked.id not in self._known:  # forgotten, or found to be another meanwhile
            asked = self._known.get(self._aliases.get(asked.id, ""))
        identity = card.identity or self._guest(session, card, asked)
        known = next((p for p in self.every() if p.row.identity == identity), None)
        if known:
            await check_same_agent(self._agent, known, card)
        if asked and asked is not known and asked.row.identity is not None:
            await moved(self._agent, asked, card)
        if known and known.session and not self._better(session, known.session, card):
            if asked and asked is not known:
                await self._merge(asked, known)
            raise invalid("there is a connection already")
        if known is None and asked and asked.row.identity is None:
            known = asked
        elif known and asked and asked is not known and asked.row.identity is None:
            await self._merge(asked, known)
        if known is None:
            await self._make_room()
            row = await self._agent.store.write(
                lambda tx: write.add_peer(tx, identity, card.name, card.link, False)
            )
            known = self._known[row.id] = Peer(row)
        replaced, known.session, known.card, known.trouble = known.session, session, card, ""
        known.alone.clear()
        row = known.row
        await self._save(
            known,
            row._replace(
                identity=identity,
                name=card.name,
                link=row.link if row.dials or card.link is None else card.link,
                card=card.card,
                public_key=row.public_key or card.public_key,
                connected_at=now_text(),
            ),
            "connected",
        )
        return _Adopted(known, replaced)

    def _guest(self, session: Session, card: PeerCard, asked: Peer | None) -> str:
        """By what a peer is known that tells no identity: its link, else its name."""
        if asked and asked.row.link:
            return f"link:{asked.row.link}"
        taken = {peer.row.identity for peer in self.every() if peer.connected}
        name, number = f"name:{card.name}", 1
        while name in taken:
            number += 1
            name = f"name:{card.name}#{number}"
        return name

    def _better(self, new: Session, old: Session, card: PeerCard) -> bool:
        """Which of two connections to one peer stays; both ends decide alike.

        A newer one is better when the peer was restarted, or when the same side made both.
        Where both dialled at once, that of the agent with the lesser id stays.
        """
        if card.session_id != old.card.session_id:
            return True
        ours, others = bool(new.dialled), bool(old.dialled)
        if ours == others:
            return True
        we_are_less = f"instance:{self._agent.instance_id}" < card.identity
        return ours == we_are_less

    async def _merge(self, asked: Peer, known: Peer) -> None:
        """Two entries turn out to be one peer: the link that was asked for leads to ``known``."""
        link = asked.row.link
        self._aliases[asked.id] = known.id
        self._known.pop(asked.id, None)
        dialer = self._dialers.pop(asked.id, None)
        if dialer and self._idle(known):
            self._dialers[known.id] = dialer  # it goes on for the other entry
        await self._agent.store.write(lambda tx: write.remove_peer(tx, asked.row))
        await self._save(known, known.row._replace(link=link, dials=True))
        self._dial(known)

    def _behind(self, link: str) -> Peer | None:
        for peer in self.every():
            if link in (peer.row.link, peer.card.link):
                return peer
        return None

    async def _make_room(self) -> None:
        """Forget who came by once, where too many are known; whom we call, and for whom
        something waits, are kept.
        """
        if len(self._known) < self._agent.config.limits.peers:
            return
        idle = [p for p in self.every() if not (p.row.dials or p.connected or p.depth)]
        if not idle:
            raise WireError(Code.BUSY, "too many peers are known: forget one (DELETE /peer/{id})")
        await self.forget(min(idle, key=lambda p: p.row.disconnected_at or ""))

    def _dial(self, peer: Peer) -> None:
        if peer.row.dials and peer.row.link and self._idle(peer):
            task = self._dialers[peer.id] = asyncio.create_task(
                self._keep_connected(self._agent, peer)
            )
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    def _idle(self, peer: Peer) -> bool:
        running = self._dialers.get(peer.id)
        return running is None or running.done()

    async def _save(self, peer: Peer, row: PeerRow, event: str = "") -> None:
        peer.row = row
        count = sum(each.connected for each in self.every())

        def work(tx: Tx) -> None:
            write.save_peer(tx, row)
            if event:
                body = {"type": "acp.peer", "ts": now_text(), "event": event, "peer_id": peer.id,
                        "name": peer.name, "peer_count": count}  # fmt: skip
                write.add_log_entry(tx, "acp.peer", body)

        await self._agent.store.write(work)


def _peer_json(peer: Peer, sent: int, received: int) -> Json:
    row = peer.row
    return {
        "id": peer.id,
        "peer_id": peer.id,
        "name": peer.name,
        "link": row.link,
        "connected": peer.connected,
        "proven": peer.session.proven if peer.session else None,
        "ws_ready": peer.connected,
        "connected_at": row.connected_at,
        "disconnected_at": row.disconnected_at,
        "messages_sent": sent,
        "messages_received": received,
        "queued": peer.depth,
        "error": peer.trouble or None,
        "agent_card": row.card,
    }


REFUSED, MOVED = SUSPECT
"""Events ``acp.peer``: another key was shown for a peer; another agent answers at the link."""

TOLD = 1000  # of them are remembered, so that no stranger fills the log


async def check_same_agent(agent: Agent, known: Peer, card: PeerCard) -> None:
    """Hold the key for messages against the one that the peer showed first.

    Raises:
        Refusal: it is another one.
    """
    pinned = known.row.public_key
    if pinned is None or card.public_key is None or card.public_key == pinned:
        return
    why = f"a different key than {known.name} had before"
    await _tell(agent, known, REFUSED, f"{why}: {card.public_key}")
    raise WireError(Code.FORBIDDEN, f"{why}; who refuses it can forget that one (DELETE /peer/ID)")


async def moved(agent: Agent, asked: Peer, card: PeerCard) -> None:
    """Note that behind a peer's link there is somebody else; what waits for it stays."""
    asked.trouble = "another agent answers at the link"
    await _tell(agent, asked, MOVED, f"{asked.trouble}: {card.name}")


async def _tell(agent: Agent, peer: Peer, event: str, reason: str) -> None:
    if (peer.id, event, reason) in agent.told or len(agent.told) >= TOLD:
        return
    agent.told.add((peer.id, event, reason))
    body = {"type": "acp.peer", "ts": now_text(), "event": event, "peer_id": peer.id,
            "name": peer.name, "reason": reason}  # fmt: skip

    def work(tx: Tx) -> None:
        write.add_log_entry(tx, "acp.peer", body)

    await agent.store.write(work)


SECONDS = 10.0

LARGEST = 1 << 20  # bytes of an answer

CARD, LINK = "/.well-known/acp.json", "/link"

_NOBODY = "no agent shows a card at this address: join by the acp:// link"

_NO_LINK = "the agent at this address shows no link: ask its owner for the acp:// link"


async def resolve_link(text: str) -> links.AnyLink:
    """The link that ``text`` spells, or that the agent at an HTTP address shows.

    An HTTP address with a token is a link itself, for a connection over HTTP alone. The port and
    the token are taken from the card, or from ``/link`` where the card has none, as with older
    agents; the host stays the one that was asked for. An agent of this user is shown its owner's
    token. What else is at an address is not told: nobody shall learn that by asking for it here.

    Raises:
        Refusal: it is no link, or nobody there shows one.
    """
    try:
        if links.has_token(text) or not text.startswith(("http://", "https://")):
            return links.parse_any(text)
        link = links.parse_any(await _link_at(text.rstrip("/")))
    except links.LinkError as error:
        raise invalid(str(error)) from None
    if isinstance(link, links.RelayLink):
        return link
    return link._replace(host=urlsplit(text).hostname or link.host)


async def _link_at(address: str) -> str:
    _check(address)
    own = await asyncio.to_thread(agent_directory.running_at, address)
    url = own.http_url if own else address
    headers = {"authorization": f"Bearer {own.owner_token}"} if own else {}
    verify = trust.context(url, own.tls_cert if own else "")
    async with httpx.AsyncClient(
        timeout=SECONDS, trust_env=False, headers=headers, verify=verify
    ) as http:
        card = await _object(http, url + CARD)
        told = cards.read_card(card)
        if told.name == cards.UNNAMED:
            raise links.LinkError(_NOBODY)
        link = told.link or text((await _object(http, url + LINK)).get("link"))
    if not link:
        raise links.LinkError(_NO_LINK)
    return link


def _check(address: str) -> None:
    try:
        parts = urlsplit(address)
        fine = parts.username is None and not parts.query and basics.is_host(parts.hostname or "")
        _ = parts.port
    except ValueError:
        fine = False
    if not fine:
        raise links.LinkError("an agent's address is http://HOST:PORT")


async def _object(http: httpx.AsyncClient, url: str) -> Json:
    """The JSON object at an address; an empty one where there is none."""
    data = bytearray()
    try:
        async with http.stream("GET", url) as answer:
            async for chunk in answer.aiter_bytes():
                data += chunk
                if len(data) > LARGEST:
                    return {}
        return decode_object(bytes(data)) if answer.status_code == 200 else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, WireError):
        return {}
