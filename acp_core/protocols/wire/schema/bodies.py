"""What is sent: parts of messages, bodies of requests, and the AgentCard (core specification, section 4).

What is taken from a body has the right type; of another's card it is told what can be relied on.
"""

from __future__ import annotations

import difflib
import json
import math
import mimetypes
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from acp_core.files.decode import integer, key, whole
from acp_core.model.errors import Refused
from acp_core.protocols.wire.schema import basics
from acp_core.protocols.wire.schema.basics import (
    HMAC_SCHEME,
    MAX_ID,
    MAX_MESSAGE,
    MAX_PARTS,
    PART_TYPES,
    ROLES,
    SCHEME,
    VERSION,
    Json,
    Object,
    TaskState,
    fields_of,
    from_base64,
    invalid,
    is_host,
    is_name,
    now_text,
    text_that,
    time_of,
)

LONGEST_URL = 8192

_DATA = 200  # characters of data that are shown

_JSON = json.JSONEncoder(ensure_ascii=False)


def text_part(text: str) -> Json:
    """A text part."""
    return {"type": "text", "content": text}


def data_part(content: Any) -> Json:
    """A data part; ``content`` is any JSON value, null included."""
    return {"type": "data", "content": content}


def file_part(url: str, media_type: str = "", filename: str = "") -> Json:
    """A file part: a reference, never the bytes."""
    part: Json = {"type": "file", "url": url}
    if media_type:
        part["media_type"] = media_type
    if filename:
        part["filename"] = filename
    return part


def file_at(url: str) -> Json:
    """A file part with the name and the media type that its address lets expect."""
    name = unquote(urlsplit(url).path.rpartition("/")[2])
    kind = mimetypes.guess_type(name)[0] or ""
    return file_part(url, kind, name if name.isprintable() else "")


def check_parts(value: object) -> list[Json]:
    """``value`` as the parts of a message, unchanged.

    Raises:
        Refusal: it is no list of parts; says which part, and why.
    """
    if not isinstance(value, list):
        raise invalid("parts: must be a list")
    if not value:
        raise invalid("parts: must not be empty")
    if len(value) > MAX_PARTS:
        raise invalid(f"parts: more than {MAX_PARTS}")
    for place, part in enumerate(value):
        wrong = _wrong(part)
        if wrong:
            raise invalid(f"parts[{place}]: {wrong}")
    return value


def shown_text(parts: object) -> str:
    """What a reader sees of parts that anybody sent: texts, and what else there is, in words."""
    if not isinstance(parts, list):
        return ""
    return " ".join(filter(None, map(_part_text, parts)))


def spoken(parts: object) -> str:
    """The texts of parts in one line; where there is none, what else there is, in words."""
    listed = [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    texts = [each.get("content") for each in listed if each.get("type") == "text"]
    words = in_line(" ".join(each for each in texts if isinstance(each, str)))
    return words or in_line(shown_text(parts))


def in_line(text: str) -> str:
    """A text as one line: between its words stands one blank."""
    return " ".join(text.split())


def _part_text(part: object) -> str:
    if not isinstance(part, dict):
        return ""
    kind, content = part.get("type"), part.get("content")
    if kind == "text":
        return content if isinstance(content, str) else ""
    if kind == "file":
        return f"[file {part.get('filename') or part.get('url') or ''}]"
    if kind == "data":
        return f"[data {_begun(content)}]"
    return f"[{kind if isinstance(kind, str) else 'unknown part'}]"


def _begun(content: object) -> str:
    """The beginning of data as JSON; no more of it is written than is shown."""
    text = ""
    try:
        for piece in _JSON.iterencode(content):
            text += piece[: _DATA + 1]
            if len(text) > _DATA:
                return f"{text[:_DATA]}…"
    except (ValueError, TypeError, RecursionError):
        return "…"
    return text


def _wrong(part: object) -> str:
    if not isinstance(part, dict):
        return "must be an object"
    kind = part.get("type")
    if kind == "text":
        return "" if isinstance(part.get("content"), str) else "content: must be a text"
    if kind == "data":
        return "" if "content" in part else "content is missing"
    if kind == "file":
        return _wrong_file(part)
    return f"type: must be one of {', '.join(PART_TYPES)}"


def _wrong_file(part: Json) -> str:
    for name in ("media_type", "filename"):
        if part.get(name) is not None and not isinstance(part[name], str):
            return f"{name}: must be a text"
    return "" if is_web_address(part.get("url")) else "url: must be an http:// or https:// URL"


def is_web_address(url: object) -> bool:
    """Whether ``url`` is an absolute http or https URL with a host."""
    if not isinstance(url, str) or len(url) > LONGEST_URL:
        return False
    if any(sign.isspace() or not sign.isprintable() for sign in url):
        return False
    try:
        address = urlsplit(url)
        _ = address.port
    except ValueError:
        return False
    host = address.hostname or ""
    try:
        plain = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return False
    return address.scheme in ("http", "https") and is_host(plain)


def parts_of(fields: Json) -> list[Json] | None:
    """The parts that a body gives: ``parts``, or ``text`` (``content``) in short.

    None where it gives none of them.

    Raises:
        Refusal: they are not what they should be.
    """
    if fields.get("parts") is not None:
        return check_parts(fields["parts"])
    for name in ("text", "content"):
        if fields.get(name) is not None:
            if not isinstance(fields[name], str):
                raise invalid(f"{name}: must be a text")
            return [text_part(fields[name])]
    return None


LONGEST_WAIT = 300.0  # seconds that a request may wait for something

WAIT = 30.0

CARRIED = ("correlation_id", "to_peer", "reply_to")  # fields that go into the envelope


@dataclass(frozen=True, slots=True)
class Draft:
    """A message that somebody asks to be sent."""

    parts: list[Json]
    role: str
    message_id: str | None
    task_id: str | None
    context_id: str | None
    peer_id: str | None
    sender: str | None
    sync: bool
    timeout: float
    create_task: bool
    carried: dict[str, str]


def draft(body: Json) -> Draft:
    """The message that ``body`` describes.

    ``role`` is required beside ``parts``; the short form ``{"text": ..}`` needs none.

    Raises:
        Refusal: a field is missing or not of its kind.
    """
    parts = parts_of(body)
    if parts is None:
        raise invalid("parts (or text) is missing")
    role = body.get("role")
    if role is None and body.get("parts") is None:
        role = "user"
    if role not in ROLES or not isinstance(role, str):
        raise invalid('role: must be "user" or "agent"')
    take(body, "ts")  # checked alone: the envelope keeps it as it was written
    return Draft(
        parts=parts,
        role=role,
        message_id=take(body, "message_id"),
        task_id=take(body, "task_id"),
        context_id=take(body, "context_id"),
        peer_id=take(body, "peer_id"),
        sender=take(body, "from"),
        sync=take(body, "sync"),
        timeout=take(body, "timeout"),
        create_task=take(body, "create_task"),
        carried={name: value for name in CARRIED if (value := take(body, name)) is not None},
    )


def text(body: Json, name: str, longest: int = 1 << 16) -> str | None:
    """A text of at most ``longest`` characters, or None where it is absent or null."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest:
        raise invalid(f"{name}: must be a text of at most {longest} characters")
    return value


def ident(body: Json, name: str) -> str | None:
    """An id: 1 to `MAX_ID` characters, none of them a control character."""
    value = text(body, name, MAX_ID)
    if value is not None and (not value or any(ord(sign) < 32 or sign == "\x7f" for sign in value)):
        raise invalid(f"{name}: must be an id of plain characters")
    return value


def path_ident(body: Json, name: str) -> str | None:
    """An id that can stand in a path: no blanks, and none of ``/ ? # : %``."""
    value = ident(body, name)
    if value is not None and not is_path_ident(value):
        raise invalid(f"{name}: must be an id without blanks and without / ? # : %")
    return value


def is_path_ident(value: object) -> bool:
    """Whether ``value`` is such an id."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_ID or value in (".", ".."):
        return False
    return value.isprintable() and not any(sign in "/?#:% " or sign.isspace() for sign in value)


def flag(body: Json, name: str) -> bool:
    """True or false (false where it is absent or null)."""
    value = body.get(name)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise invalid(f"{name}: must be true or false")
    return value


def seconds(body: Json, name: str, default: float = WAIT) -> float:
    """A time to wait, at most `LONGEST_WAIT`."""
    return bounded_seconds(body.get(name), name, default)


def bounded_seconds(value: Any, name: str, default: float = WAIT) -> float:
    """``value`` (a number, or a query's text) as a time to wait."""
    if value is None:
        return default
    if isinstance(value, bool):
        raise invalid(f"{name}: must be a number of seconds")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise invalid(f"{name}: must be a number of seconds") from None
    if not math.isfinite(number) or number < 0:
        raise invalid(f"{name}: must be a number of seconds that is not negative")
    return min(number, LONGEST_WAIT)


def time(body: Json, name: str) -> str | None:
    """A time as it was written (a signature covers it so), or None where it is absent or null.

    Source: core specification, section 1.1.
    """
    value: str | None = body.get(name)
    if value is not None and time_of(value) is None:
        raise invalid(f"{name}: must be a time, such as 2026-03-21T07:00:00Z")
    return value


def agent_name(body: Json, name: str = "name") -> str | None:
    """The name of an agent, or None where it is absent."""
    value = text(body, name, MAX_ID)
    if value is not None and not is_name(value):
        raise invalid(f"{name}: must be 1 to 64 printable characters")
    return value


def whole_number(body: Json, name: str) -> int | None:
    """A whole number that is not negative, or None where it is absent or null."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise invalid(f"{name}: must be a whole number")
    return value


class Field(NamedTuple):
    """A field of bodies: how it is checked, and the JSON schema that says the same."""

    check: Callable[[Json, str], Any]
    schema: Json


def take(body: Json, name: str) -> Any:
    """A field of a body, checked.

    Raises:
        Refusal: it is not what it should be.
    """
    return FIELDS[name].check(body, name)


def _raw(body: Json, name: str) -> Any:
    """Checked where it is used: what it may be depends on other fields."""
    return body.get(name)


def _text(longest: int) -> Field:
    schema = {"type": ["string", "null"], "maxLength": longest}
    return Field(lambda body, name: text(body, name, longest), schema)


_ID: Json = {"type": ["string", "null"], "minLength": 1, "maxLength": MAX_ID}

_IDENT = Field(ident, {**_ID, "pattern": r"^[^\x00-\x1f\x7f]+$"})

_PATH_IDENT = Field(path_ident, {**_ID, "pattern": r"^[A-Za-z0-9_\-]+$"})

_TIME = Field(time, {"type": ["string", "null"], "format": "date-time"})

_FLAG = Field(flag, {"type": ["boolean", "null"]})

_PARTS: Json = {
    "type": ["array", "null"],
    "minItems": 1,
    "maxItems": MAX_PARTS,
    "items": {
        "oneOf": [
            {
                "type": "object",
                "required": ["type", "content"],
                "properties": {"type": {"const": "text"}, "content": {"type": "string"}},
            },
            {
                "type": "object",
                "required": ["type", "url"],
                "properties": {
                    "type": {"const": "file"},
                    "url": {"type": "string", "pattern": "^https?://[a-z0-9]{1,40}/[a-z]*$"},
                    "media_type": {"type": ["string", "null"]},
                    "filename": {"type": ["string", "null"]},
                },
            },
            {"type": "object", "required": ["type", "content"], "properties": {"type": {"const": "data"}}},
        ]
    },
}  # fmt: skip

_STATES: Json = {"enum": [*(each.value for each in TaskState)]}

FIELDS = {
    "parts": Field(_raw, _PARTS),
    "text": Field(_raw, {"type": ["string", "null"]}),
    "content": Field(_raw, {"type": ["string", "null"]}),
    "role": Field(_raw, {"enum": list(ROLES)}),
    "input": Field(_raw, {}),
    "payload": Field(_raw, {}),
    "artifact": Field(_raw, {}),
    "output": Field(_raw, {}),
    "constraints": Field(_raw, {}),
    "status": Field(_raw, _STATES),
    "state": Field(_raw, _STATES),
    "message_id": _IDENT,
    "ts": _TIME,
    "peer_id": _IDENT,
    "correlation_id": _IDENT,
    "to_peer": _IDENT,
    "to": _IDENT,
    "reply_to": _IDENT,
    "task_id": _PATH_IDENT,
    "context_id": _PATH_IDENT,
    "from": _text(MAX_ID),
    "sync": _FLAG,
    "create_task": _FLAG,
    "delegate": _FLAG,
    "timeout": Field(seconds, {"type": ["number", "null"], "minimum": 0}),
    "limit": Field(whole_number, {"type": ["integer", "null"], "minimum": 0}),
    "link": _text(512),
    "action": _text(64),
    "inputs": Field(_raw, {"type": "object"}),
    "url": _text(LONGEST_URL),
    "error": _text(1 << 16),
    "query": _text(1 << 16),
    "skill_id": _text(1 << 16),
    "capability": _text(1 << 16),
    "name": Field(agent_name, {"type": ["string", "null"], "minLength": 1, "maxLength": 64}),
}

SENDING = (
    "parts", "text", "content", "role", "message_id", "ts", "task_id", "context_id", "peer_id", "from",
    "sync", "timeout", "create_task", *CARRIED,
)  # fmt: skip

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
    return basics.read_as(PeerCard, basics.inside(card, "self", unless="name"))


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
