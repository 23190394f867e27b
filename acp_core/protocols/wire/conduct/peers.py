"""The peers that an agent knows, the one connection to each of them, and the messages from and to them.

Messages and other frames that arrive are stored before they are acknowledged; those that are sent
wait in the store's queue until a peer has them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from acp_core.files.decode import text
from acp_core.protocols.wire import write
from acp_core.protocols.wire.network import agent_directory, client, identity, links
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.read.folder import SUSPECT
from acp_core.protocols.wire.read.store import PeerRow, StoredMessage
from acp_core.protocols.wire.schema import basics, bodies
from acp_core.protocols.wire.schema.basics import (
    MAX_ID,
    MESSAGE,
    REPLY,
    Code,
    Json,
    WireError,
    decode_object,
    encode,
    invalid,
    new_id,
    now_text,
    outside,
)
from acp_core.protocols.wire.schema.bodies import UNNAMED, Draft, PeerCard, is_path_ident, text_part
from acp_core.protocols.wire.schema.observed import PERSON, UNKNOWN, called_as, folded
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
        self.card: PeerCard = bodies.read_card(row.card)
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

    async def _adopt(self, session: Session, card: PeerCard) -> tuple[Peer, Session | None]:
        """The peer that a connection is with, and the connection that it replaces."""
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
        return known, replaced

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
    verify = client.context(url, own.tls_cert if own else "")
    async with httpx.AsyncClient(
        timeout=SECONDS, trust_env=False, headers=headers, verify=verify
    ) as http:
        card = await _object(http, url + CARD)
        told = bodies.read_card(card)
        if told.name == bodies.UNNAMED:
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


_ASKS = ("sync", "timeout", "create_task", "peer_id", "text", "content")

"""Fields of a request that are none of an envelope."""


class Taken(NamedTuple):
    """A message that arrived. ``new`` is false where it had come before."""

    new: bool
    seq: int
    envelope: Json
    task: Json | None


def take(agent: Agent, peer: Peer, frame: Json, whole: bool = True) -> asyncio.Future[Taken]:
    """Take a message from a peer; it is on the disk when the future is done.

    Args:
        whole: it came as it was sent; else what carried it may have changed it.

    Raises:
        Refusal: an id in it is none.
    """
    envelope, flags = _envelope(agent, peer, frame)
    if not whole:
        flags = identity.unverifiable(flags)
    origin = peer.row.identity or peer.id

    def work(tx: Tx) -> Taken:
        id = envelope["message_id"]
        stored = write.add_message(tx, "in", origin, id, peer.id, lambda seq: (envelope, flags))
        if not stored.new:
            return Taken(False, stored.seq, stored.envelope, None)
        write.count_received(tx, peer.id)
        task = write.task_arrived(tx, peer.id, envelope)
        return Taken(True, stored.seq, envelope, task)

    return agent.store.submit(work)


def update(agent: Agent, peer: Peer, frame: Json) -> asyncio.Future[None]:
    """Take what a peer says of a task; the future raises `Refusal` where it may not say that."""
    origin = peer.row.identity or peer.id
    id = frame.get("message_id")

    def work(tx: Tx) -> None:
        if not isinstance(id, str) or write.is_first_arrival(tx, origin, id[:MAX_ID]):
            write.task_reported(tx, peer.id, frame)

    return agent.store.submit(work)


async def post(agent: Agent, body: Json, draft: Draft, sender: str, *, owner: bool = False) -> Sent:
    """Take a message that somebody posted, under a name that no channel proves.

    Args:
        owner: the owner of the agent did, who may say who writes.

    Raises:
        Refusal: it is too large.
    """
    envelope = {name: value for name, value in outside(body).items() if name not in _ASKS}
    id = draft.message_id or new_id("msg")
    flags = _posted_flags(agent, envelope, sender, owner=owner)
    envelope |= {"role": draft.role, "parts": draft.parts, "message_id": id, "from": sender}
    envelope.setdefault("type", MESSAGE)
    if not isinstance(envelope.get("ts"), str):
        envelope["ts"] = now_text()
    if draft.sync:
        envelope.setdefault("correlation_id", id)
    if draft.create_task and draft.task_id is None:
        envelope["task_id"] = new_id("task")
    check_size(agent, envelope)

    def work(tx: Tx) -> Taken:
        stored = write.add_message(
            tx, "in", f"http:{sender}", id, None, lambda seq: (envelope, flags)
        )
        task_id = stored.envelope.get("task_id")
        task = write.task_arrived(tx, None, stored.envelope) if stored.new else None
        if task is None and isinstance(task_id, str):
            task = store.find_task(tx.db, task_id)
        return Taken(stored.new, stored.seq, stored.envelope, task)

    taken = await agent.store.write(work)
    if not taken.new:
        agent.deduped += 1
    return Sent(id, taken.seq, False, taken.task, taken.envelope)


def _posted_flags(agent: Agent, envelope: Json, sender: str, *, owner: bool) -> Json:
    """What is to be said of a message without a channel: it is a peer's where that one's key signed it."""
    named = _of_name(agent, sender)
    pinned = [each for each in named if each.row.public_key]
    for each in pinned:
        flags = identity.check_signatures(envelope, agent.config.secret, each.row.public_key)
        if flags.get("_ed25519_verified"):
            flags["_proven"] = each.id
            return identity.aged(flags, envelope, datetime.now(UTC))
    key = pinned[0].row.public_key if pinned else None
    flags = identity.check_signatures(envelope, agent.config.secret, key)
    flags = identity.aged(flags, envelope, datetime.now(UTC))
    flags |= identity.missing_signature(envelope, pinned[0].name if pinned else "")
    reserved = map(folded, (agent.config.name, PERSON))
    if named or (not owner and folded(sender) in reserved):
        flags["_other_name"] = True  # somebody else's, as far as is known
    if named or not owner:
        flags["_sender"] = UNKNOWN
    return flags


def _channel_flags(agent: Agent, peer: Peer, envelope: Json) -> Json:
    """What the channel says of a message's sender, where its ``from`` says something else."""
    said, own = folded(envelope.get("from")), {folded(peer.name), folded(peer.card.name)}
    names = [each.name for each in agent.peers.every()]
    called = called_as(agent.config.name, names, peer.name, peer.id)
    of_name = [] if said in own else _of_name(agent, envelope.get("from"))
    taken = bool(of_name) or said in map(folded, (agent.config.name, PERSON))
    # A card may bear no name: then there is nothing else to go by, unless the name is another's.
    other = said not in own and (peer.card.name != UNNAMED or taken)
    flags: Json = {"_other_name": True} if other else {}
    if other or called != peer.name:
        flags["_sender"] = called
    signs = next((each for each in (peer, *of_name) if each.row.public_key), None)
    return flags | identity.missing_signature(envelope, signs.name if signs else "")


def _of_name(agent: Agent, name: object) -> list[Peer]:
    """The peers that are called so."""
    wanted = folded(name)
    return [
        each
        for each in agent.peers.every()
        if wanted in (folded(each.name), folded(each.card.name))
    ]


def _envelope(agent: Agent, peer: Peer, frame: Json) -> tuple[Json, Json]:
    """The envelope of a frame as it came, and what is to be said of it.

    What lacks parts (older agents send any object) becomes a text that a reader can see.
    """
    given = outside(frame)
    flags = identity.check_signatures(given, agent.config.secret, peer.row.public_key)
    flags = identity.aged(flags, given, datetime.now(UTC))
    named = given.get("message_id") is not None  # null says as little as nothing
    id = given["message_id"] if named else given.get("id")
    if id is None:
        id = new_id("msg")
    if not isinstance(id, str) or not 0 < len(id) <= MAX_ID:
        raise invalid("message_id: must be a text")
    task_id = given.get("task_id")
    if task_id is not None and not is_path_ident(task_id):
        raise invalid("task_id: must be an id without blanks and without / ? # : %")
    if isinstance(given.get("parts"), list):
        envelope = given if named else {**given, "message_id": id}
        if envelope.get("type") not in (MESSAGE, REPLY):
            flags["_legacy"] = True
    else:
        said = next((given[n] for n in ("text", "content") if isinstance(given.get(n), str)), None)
        text = encode(given).decode() if said is None else said
        envelope = {**given, "message_id": id, "parts": [text_part(text)]}
        envelope["type"] = REPLY if given.get("type") == REPLY else MESSAGE
        envelope.setdefault("role", "agent")
        envelope.setdefault("from", peer.name)
        envelope.setdefault("ts", now_text())
        flags |= {"_legacy": True, "_raw": frame}
    return envelope, flags | _channel_flags(agent, peer, envelope)


NOBODY = "nobody"  # the origin of what goes to no peer


class Sent(NamedTuple):
    """A message on its way. ``queued``: the peer is away and gets it when it returns."""

    message_id: str
    seq: int
    queued: bool
    task: Json | None
    envelope: Json


def envelope_of(agent: Agent, draft: Draft, seq: int, type: str = MESSAGE) -> Json:
    """The envelope of a draft, not yet signed (core specification, section 1)."""
    envelope: Json = {
        "type": type,
        "message_id": draft.message_id,
        "server_seq": seq,
        "ts": now_text(),
        "from": agent.config.name,
        "role": draft.role,
        "parts": draft.parts,
    }
    for name, value in (("task_id", draft.task_id), ("context_id", draft.context_id)):
        if value is not None:
            envelope[name] = value
    return {**envelope, **draft.carried}


def check_size(agent: Agent, envelope: Json, largest: int | None = None) -> None:
    """Refuse an envelope that is larger than a message may be.

    Raises:
        Refusal: it is.
    """
    limit = min(agent.config.limits.message, largest or agent.config.limits.message)
    size = len(encode(envelope))
    if size > limit:
        raise WireError(
            Code.TOO_LARGE,
            f"the message has {size} bytes; the limit is {limit}",
            failed=envelope.get("message_id"),
            max_bytes=limit,
        )


async def send(agent: Agent, draft: Draft, peer_id: str | None, type: str = MESSAGE) -> Sent:
    """Send a message to a peer; it is on the disk when this returns.

    Args:
        peer_id: to whom; None: to the only one there is.

    Raises:
        Refusal: too large, no such peer, never connected, too much waits for it already.
    """
    draft = _with_ids(draft)
    envelope = envelope_of(agent, draft, 2**53, type)
    check_size(agent, envelope)
    peer = agent.peers.choose(peer_id)
    check_size(agent, envelope, peer.card.max_message)
    room, new = peer.reserve(agent.config.limits.queue), False
    try:
        sent, new = await agent.store.write(lambda tx: _write(agent, tx, draft, peer, type, room))
    finally:
        peer.reserved(new)
    peer.wake.set()
    return sent


def _with_ids(draft: Draft) -> Draft:
    from dataclasses import replace

    id = draft.message_id or new_id("msg")
    carried = draft.carried
    if draft.sync and "correlation_id" not in carried:
        carried = {**carried, "correlation_id": id}
    task_id = draft.task_id or (new_id("task") if draft.create_task else None)
    return replace(draft, message_id=id, carried=carried, task_id=task_id)


def _write(
    agent: Agent, tx: Tx, draft: Draft, peer: Peer, type: str, room: bool
) -> tuple[Sent, bool]:
    id = draft.message_id or ""
    if not room and store.find_message(tx.db, "out", peer.id, id) is None:
        raise WireError(Code.BUSY, f"too many messages are waiting for {peer.name}")

    def make(seq: int) -> tuple[Json, Json]:
        envelope = envelope_of(agent, draft, seq, type)
        return identity.sign_message(envelope, agent.config.secret, agent.identity), {}

    stored = write.add_message(tx, "out", peer.id, id, peer.id, make)
    task: Json | None = None
    task_id = stored.envelope.get("task_id")
    if stored.new:
        write.queue_frame(tx, peer.id, id, encode(stored.envelope).decode(), counts=True)
        task = _task_of(tx, draft, peer)
    elif task_id:
        task = store.find_task(tx.db, task_id)
    queued = not peer.connected and store.is_unacknowledged(tx.db, peer.id, id)
    return Sent(id, stored.seq, queued, task, stored.envelope), stored.new


def _task_of(tx: Tx, draft: Draft, peer: Peer) -> Json | None:
    """The task that a message belongs to; a new one where one was asked for."""
    if draft.task_id is None:
        return None
    known = store.find_task(tx.db, draft.task_id)
    if known or not draft.create_task:
        return known
    return write.create_task(
        tx,
        write.DELEGATED,
        draft.parts,
        id=draft.task_id,
        peer_id=peer.id,
        message_id=draft.message_id,
        context_id=draft.context_id,
    )


async def reply(agent: Agent, correlation_id: str, draft: Draft) -> Sent:
    """Answer a message that waits for a reply.

    Raises:
        Refusal: no such message arrived.
    """
    from dataclasses import replace

    from acp_core.protocols.wire.schema.basics import REPLY

    asked = await agent.store.read(lambda db: store.find_asker(db, correlation_id))
    if asked is None:
        raise WireError(Code.NOT_FOUND, "no message with this correlation id arrived")
    peer_id, _ = asked
    draft = replace(draft, carried={**draft.carried, "correlation_id": correlation_id})
    return await answer(agent, draft, peer_id, REPLY)


async def answer(agent: Agent, draft: Draft, peer_id: str | None, type: str) -> Sent:
    """Send to a peer, or to who posted over HTTP: that one reads it where it asks for it.

    Raises:
        Refusal: as for `send`.
    """
    if peer_id is not None:
        return await send(agent, draft, peer_id, type)
    draft = _with_ids(draft)
    check_size(agent, envelope_of(agent, draft, 2**53, type))

    def work(tx: Tx) -> StoredMessage:
        def make(seq: int) -> tuple[Json, Json]:
            envelope = envelope_of(agent, draft, seq, type)
            return identity.sign_message(envelope, agent.config.secret, agent.identity), {}

        return write.add_message(tx, "out", NOBODY, draft.message_id or "", None, make)

    stored = await agent.store.write(work)
    agent.replied(stored.envelope)
    return Sent(draft.message_id or "", stored.seq, False, None, stored.envelope)
