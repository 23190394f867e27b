"""Peers, as who looks at an agent sees them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from acp_core.files.decode import key, whole
from acp_core.model.text import unseen
from acp_core.protocols.wire.schema.basics import Json, time_of
from acp_core.protocols.wire.schema.untrusted_json import Object, count, text_that


@dataclass(frozen=True, slots=True)
class PeerSeen:
    """A peer as one sees it. ``met``: its card came once, so that something can be sent to it."""

    id: str = ""
    name: str = key(read=text_that(bool), default="?")
    connected: bool = False
    connected_at: str | None = key(read=text_that(bool), default=None)
    disconnected_at: str | None = key(read=text_that(bool), default=None)
    sent: int = key("messages_sent", read=count, default=0)
    received: int = key("messages_received", read=count, default=0)
    signs: bool = False
    met: bool = False
    trouble: str = key("error", default="")


def _timestamp(value: object) -> float | None:
    at = time_of(value)
    return at.timestamp() if at else None


@dataclass(frozen=True, slots=True)
class PeerReport(PeerSeen):
    """A peer as an agent reports it; ``queued_since`` is in seconds since 1970."""

    queued: int = key(read=count, default=0)
    queued_since: float | None = key(read=_timestamp, default=None)
    raw: Object = whole()


UNKNOWN = "unknown sender"

"""Who sent what came over no peer's channel, and what no pinned key signed: its name is only claimed."""

PERSON = "human"

"""Who sends where the agent's owner writes to the agent itself."""

CLAIMED, NOTE = "_claimed_from", "_problem"

"""Fields of a message as programs get it: the name that it bears, and what is missing to prove it."""


class People(NamedTuple):
    """Who is known to an agent.

    Attributes:
        own: the agent's name.
        called: what each peer is called, by its id: with the id where others are called the same.
        names: all their names, folded (see `folded`).
    """

    own: str = ""
    called: tuple[tuple[str, str], ...] = ()
    names: frozenset[str] = frozenset()

    def of(self, id: object) -> str:
        """What a peer is called; "" where it is not known."""
        return next((name for each, name in self.called if each == id), "")


class Sender(NamedTuple):
    """Who sent a message.

    Attributes:
        name: the peer's, or `UNKNOWN`.
        claimed: another name that the message bears; "" where it bears none.
        unowned: nobody else is known to be called so.
    """

    name: str
    claimed: str = ""
    unowned: bool = False

    @property
    def words(self) -> str:
        """The name, with the claimed one beside it."""
        return f"{self.name} (says it is {self.claimed})" if self.claimed else self.name


def folded(name: object) -> str:
    """A name as people read it: names that look the same fold to the same (Unicode, NFKC)."""
    text = str(name or "")
    if not text.isascii():
        hidden = set(unseen(text))
        text = unicodedata.normalize("NFKC", "".join(each for each in text if each not in hidden))
    return " ".join(text.casefold().split())


def people(own: str, names: Mapping[str, str]) -> People:
    """Who is known, of the agent's name and its peers' names by their ids."""
    called = tuple((id, called_as(own, names.values(), name, id)) for id, name in names.items())
    return People(own, called, frozenset(map(folded, (own, *names.values()))))


def called_as(own: str, names: Iterable[str], name: str, id: str) -> str:
    """What a peer is called: its name, with its id where another one is called so, or the agent itself."""
    plain = folded(name)
    alone = plain != folded(own) and sum(folded(each) == plain for each in names) < 2
    return name if alone else f"{name} ({id})"


def sender(body: Json, known: People) -> Sender:
    """Who sent a message.

    Args:
        body: the envelope, with the receiver's flags.
        known: who is known now.
    """
    said = str(body.get("from") or "")
    if body.get("_direction") == "out":
        return Sender(said or known.own)
    noted = body.get("_sender")
    id = body.get("_peer_id") or body.get("_proven")
    if isinstance(id, str):
        called = known.of(id) or (noted if isinstance(noted, str) else "")
        if body.get("_other_name"):
            return Sender(called or UNKNOWN, said)
        return Sender(called if called and (noted or called.startswith(f"{said} (")) else said)
    if body.get("_other_name"):
        return Sender(noted if isinstance(noted, str) else UNKNOWN, said)
    if noted == UNKNOWN:
        return Sender(UNKNOWN, said, unowned=True)
    if "_peer_id" in body and not body.get("_bridge") and folded(said) in known.names:
        return Sender(UNKNOWN, said)
    return Sender(said)


def handed_on(envelope: Json, flags: Json, known: People) -> Json:
    """A message as programs get it: its ``from`` is who sent it; what it claims stands beside it."""
    found = sender({**envelope, **flags}, known)
    made = {**envelope, "from": found.name} if "from" in envelope or found.claimed else {**envelope}
    if found.claimed:
        made[CLAIMED] = found.claimed
    if missing := unsigned(flags):
        made[NOTE] = missing
    return made


def unsigned(flags: Json) -> str:
    """That a message bears no signature although its sender signs; "" where nothing is missing."""
    who = flags.get("_ed25519_missing")
    return f"not signed, though {who} signs" if isinstance(who, str) else ""
