"""The AgentCard (core specification, section 4): ours, and what can be relied on in another's."""

from __future__ import annotations

from dataclasses import dataclass, field

from acp_core.files.decode import integer, key, whole
from acp_core.protocols.wire.schema import (
    MAX_MESSAGE,
    PART_TYPES,
    VERSION,
    Json,
    is_name,
    lenient,
    now_text,
)
from acp_core.protocols.wire.schema.keys import SCHEME, from_base64
from acp_core.protocols.wire.schema.lenient import Object, text_that
from acp_core.protocols.wire.schema.signatures import HMAC_SCHEME

ENDPOINTS = {
    "send": "/message:send",
    "stream": "/stream",
    "tasks": "/tasks",
    "agent_card": "/.well-known/acp.json",
    "skills_query": "/skills/query",
    "peers": "/peers",
    "peer_send": "/peer/{id}/send",
    "peers_connect": "/peers/connect",
    "discover": "/discover",
}
SMALLEST_MESSAGE = 65536  # bytes, of a peer whose card does not say
BINDINGS = ("ws-p2p", "http-sse")
UNNAMED = "unnamed"  # whose card says no name


@dataclass(frozen=True, slots=True)
class About:
    """What an agent says of itself."""

    name: str
    description: str = ""
    skills: list[Json] = field(default_factory=list)
    instance_id: str = ""
    session_id: str = ""
    public_key: str | None = None
    hmac: bool = False
    lan_discovery: bool = False
    bindings: tuple[str, ...] = BINDINGS
    token_needed: bool = False
    max_message: int = MAX_MESSAGE
    link: str | None = None
    http_port: int | None = None
    bridge: Json | None = None


def make(about: About) -> Json:
    """The card, flat, with everything that the specification names."""
    from acp_core import __version__

    identity = {"scheme": SCHEME, "public_key": about.public_key} if about.public_key else None
    return {
        "name": about.name,
        "acp_version": VERSION,
        "protocol": "acp",
        "version": __version__,
        "description": about.description,
        "timestamp": now_text(),
        "instance_id": about.instance_id,
        "session_id": about.session_id,
        "link": about.link,
        "http_port": about.http_port,
        "skills": about.skills,
        "capabilities": {
            "streaming": True,
            "push_notifications": True,
            "input_required": True,
            "part_types": list(PART_TYPES),
            "max_msg_bytes": about.max_message,
            "query_skill": True,
            "server_seq": True,
            "multi_session": True,
            "error_codes": True,
            "hmac_signing": about.hmac,
            "lan_discovery": about.lan_discovery,
            "context_id": True,
            "identity": SCHEME if about.public_key else "none",
            "acks": True,
            "proof": True,
            "bindings": list(about.bindings),
        },
        "identity": identity,
        "trust": {"scheme": HMAC_SCHEME if about.hmac else "none", "enabled": about.hmac},
        "auth": {"schemes": ["bearer"] if about.token_needed else ["none"]},
        "endpoints": dict(ENDPOINTS),
        **({"bridge": about.bridge} if about.bridge else {}),
    }


def _is_short(text: str) -> bool:
    return 0 < len(text) <= 256 and text.isprintable()


def _is_public_key(text: str) -> bool:
    return len(from_base64(text) or b"") == 32


def _size(value: object) -> int | None:
    size = integer(value)
    return size if size and size > 0 else None


@dataclass(frozen=True, slots=True)
class PeerCard:
    """What can be relied on in a card that somebody sent; what is odd in it counts as absent.

    Attributes:
        card: all that it says.
        proves: it proves its keys when it connects.
    """

    card: Object = whole()
    name: str = key(read=text_that(is_name), default=UNNAMED)
    instance_id: str = key(read=text_that(_is_short), default="")
    session_id: str = key(read=text_that(_is_short), default="")
    public_key: str | None = key(
        "identity.public_key", read=text_that(_is_public_key), default=None
    )
    acks: bool = key("capabilities.acks", default=False)
    proves: bool = key("capabilities.proof", default=False)
    max_message: int = key("capabilities.max_msg_bytes", read=_size, default=SMALLEST_MESSAGE)
    link: str | None = key(read=text_that(lambda link: len(link) <= 512), default=None)

    @property
    def identity(self) -> str:
        """What the peer is known by: its instance id, else its public key, else ""."""
        if self.instance_id:
            return f"instance:{self.instance_id}"
        return f"key:{self.public_key}" if self.public_key else ""


def read(card: object) -> PeerCard:
    """Read a peer's card: flat, or inside ``self`` as older agents wrap it."""
    return lenient.read(PeerCard, lenient.inside(card, "self", unless="name"))
