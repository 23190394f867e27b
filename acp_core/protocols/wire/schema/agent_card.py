"""The AgentCard (core specification, section 4): ours, and what can be relied on in another's."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from acp_core.files.decode import integer, key, whole
from acp_core.model.errors import Refused
from acp_core.protocols.wire.schema import untrusted_json
from acp_core.protocols.wire.schema.basics import (
    HMAC_SCHEME,
    MAX_MESSAGE,
    PART_TYPES,
    SCHEME,
    VERSION,
    Json,
    from_base64,
    is_name,
    now_text,
)
from acp_core.protocols.wire.schema.untrusted_json import Object, fields_of, text_that

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


def make_card(about: About) -> Json:
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


def read_card(card: object) -> PeerCard:
    """Read a peer's card: flat, or inside ``self`` as older agents wrap it."""
    return untrusted_json.read_as(PeerCard, untrusted_json.inside(card, "self", unless="name"))


_WORD = re.compile(r"\w+")

_TEXTS, _LISTS = (
    ("id", "name", "description", "version"),
    ("tags", "examples", "input_modes", "output_modes"),
)

ENOUGH = 0.5  # the least score of a match


def skill_from_option(text: str) -> list[Json]:
    """Skills from ``summarize,translate``."""
    ids = [each.strip() for each in text.split(",")]
    return [{"id": each, "name": each} for each in dict.fromkeys(ids) if each]


def skills_from_file(given: object, where: str) -> list[Json]:
    """Skills from a list in a configuration file: ids, or tables with what is known of each.

    Args:
        given: what stands in the file.
        where: the file and the option, for the message.

    Raises:
        Refused: it is no such list.
    """
    if isinstance(given, str):
        return skill_from_option(given)
    if not isinstance(given, list):
        raise Refused(f"{where}: must be a text, or a list of tables")
    made = [_from_table(each, f"{where}[{place}]") for place, each in enumerate(given)]
    return list({each["id"]: each for each in made}.values())


def _from_table(given: object, where: str) -> Json:
    table = {"id": given} if isinstance(given, str) else given
    if not isinstance(table, dict):
        raise Refused(f"{where}: must be a text, or a table with an id")
    for name, value in table.items():
        texts = value if name in _LISTS and isinstance(value, list) else [value]
        if name not in (*_TEXTS, *_LISTS):
            raise Refused(f"{where}: {name}: unknown (known: {', '.join((*_TEXTS, *_LISTS))})")
        if (name in _LISTS) is not isinstance(value, list) or not all(
            isinstance(each, str) and each.strip() for each in texts
        ):
            needed = "a list of texts" if name in _LISTS else "a text"
            raise Refused(f"{where}: {name}: must be {needed}")
    if "id" not in table:
        raise Refused(f"{where}: id is missing")
    return {"id": table["id"], "name": table["id"], **table}


def find_skills(skills: Sequence[Json], query: str, limit: int) -> list[Json]:
    """The skills that fit ``query``, best first, each with its ``match_score`` from 0 to 1."""
    scored = [(score(skill, query), skill) for skill in skills]
    fitting = [pair for pair in scored if pair[0] >= ENOUGH]
    fitting.sort(key=lambda pair: -pair[0])
    return [{**skill, "match_score": value} for value, skill in fitting[:limit]]


def score(skill: Json, query: str) -> float:
    """How well a skill fits, from 0 to 1. Everything fits an empty query."""
    wanted = query.strip().casefold()
    if not wanted:
        return 1.0
    names = [str(skill.get("id", "")).casefold(), str(skill.get("name", "")).casefold()]
    if wanted in names:
        return 1.0
    tags = [str(tag).casefold() for tag in _list(skill.get("tags"))]
    if wanted in tags:
        return 0.9
    text = " ".join([*names, *tags, str(skill.get("description", "")).casefold()])
    words, asked = set(_WORD.findall(text)), set(_WORD.findall(wanted))
    found = len(words & asked) / len(asked) if asked else 0.0
    near = max(difflib.SequenceMatcher(None, wanted[:100], name[:100]).ratio() for name in names)
    return round(max(0.85 * found, 0.95 * near), 3)


def support(skills: Sequence[Json], wanted: str, agent: str, body: Json, largest: int) -> Json:
    """Whether one skill is supported: the older form of the question, with its constraints."""
    known = [str(skill.get("id")) for skill in skills]
    level = "supported" if wanted in known else "unsupported"
    reason = "" if level == "supported" else f"no skill with that id among {len(known)}"
    applied: Json = {}
    size = integer(fields_of(body.get("constraints")).get("file_size_bytes"))
    if size is not None:
        applied["file_size_bytes"] = size
        if level == "supported" and size > largest:
            level, reason = "partial", f"messages have at most {largest} bytes"
    return {
        "skill_id": wanted,
        "support_level": level,
        "reason": reason,
        "constraints_applied": applied,
        "known_skills": known,
        "agent": agent,
    }


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
