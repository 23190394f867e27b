"""The AgentCard (core specification, section 4): ours, and what can be relied on in another's."""

from __future__ import annotations

from dataclasses import dataclass, field

from acp_core.protocols.wire.schema import (
    MAX_MESSAGE,
    PART_TYPES,
    VERSION,
    Json,
    is_name,
    now_text,
)
from acp_core.protocols.wire.schema.keys import SCHEME, from_base64
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


@dataclass(frozen=True, slots=True)
class PeerCard:
    """What can be relied on in a card that somebody sent; what is odd in it counts as absent.

    ``identity`` is what the peer is known by: its instance id, else its public key, else "".
    ``proves``: it proves its keys when it connects.
    """

    card: Json
    name: str
    identity: str
    session_id: str
    public_key: str | None
    acks: bool
    proves: bool
    max_message: int
    link: str | None


def read(card: object) -> PeerCard:
    """Read a peer's card: flat, or inside ``self`` as older agents wrap it."""
    fields = card if isinstance(card, dict) else {}
    if "name" not in fields and isinstance(fields.get("self"), dict):
        fields = fields["self"]
    capabilities = fields.get("capabilities")
    capabilities = capabilities if isinstance(capabilities, dict) else {}
    block = fields.get("identity")
    key = block.get("public_key") if isinstance(block, dict) else None
    key = key if isinstance(key, str) and len(from_base64(key) or b"") == 32 else None
    instance, name = fields.get("instance_id"), fields.get("name")
    largest = capabilities.get("max_msg_bytes")
    counts = isinstance(largest, int) and not isinstance(largest, bool) and largest > 0
    link, session = fields.get("link"), fields.get("session_id")
    return PeerCard(
        card=fields,
        name=name if isinstance(name, str) and is_name(name) else UNNAMED,
        identity=f"instance:{instance}" if _short(instance) else (f"key:{key}" if key else ""),
        session_id=session if isinstance(session, str) and _short(session) else "",
        public_key=key,
        acks=capabilities.get("acks") is True,
        proves=capabilities.get("proof") is True,
        max_message=largest if counts and isinstance(largest, int) else SMALLEST_MESSAGE,
        link=link if isinstance(link, str) and len(link) <= 512 else None,
    )


def _short(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= 256 and text.isprintable()
