"""What the whole protocol is written with (core specification, v0.8), and strangers' JSON, bounded.

Types of frames, codes of errors with their HTTP status, states of tasks, names, ids and times,
bounds, base64url, and the names of acts. JSON from outside is taken apart or refused, whatever it
holds, and never fails.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import math
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from acp_core.files.decode import Decoder, integer
from acp_core.model.errors import AcpError
from acp_core.model.text import clean_line

SCHEME = "ed25519"


def to_base64(data: bytes) -> str:
    """base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def from_base64(text: object) -> bytes | None:
    """The bytes of base64url with or without padding, or None."""
    if not isinstance(text, str) or not text.isascii():
        return None
    plain = text.rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return None


SCHEMA = "acp.wire/1"

SEND, ANSWER, CANCEL, CONNECT, FORGET, MOVE = (
    "send", "answer", "cancel", "connect", "forget", "move",
)  # fmt: skip

ITSELF = "this agent"

"""The receiver that is the agent itself, and none of its peers."""

VERSION = "0.8"

MESSAGE = "acp.message"

REPLY = "acp.reply"

CARD = "acp.agent_card"

ACK = "acp.ack"

HELLO = "acp.hello"

PROOF = "acp.proof"

TASK_UPDATED = "task.updated"

ERROR = "error"

ROLES = ("user", "agent")

PART_TYPES = ("text", "file", "data")

MAX_MESSAGE = 1 << 20  # bytes of an envelope (core specification, section 4.2)

MAX_DEPTH = 64  # lists and objects inside each other in a body

MAX_PARTS = 1000

MAX_ID = 256  # characters of an id that somebody else chose

WS_PORT = 7801

HTTP_OFFSET = 100  # the local HTTP interface listens that much above the WebSocket port

Json = dict[str, Any]

"""A JSON object, as it came or as it will go."""

_NAME = re.compile(r"[^\s\x00-\x1f\x7f](?:[^\x00-\x1f\x7f]{0,62}[^\s\x00-\x1f\x7f])?")


class Code(str, Enum):
    """Codes of errors (core specification, section 5, and four of our own)."""

    NOT_CONNECTED = "ERR_NOT_CONNECTED"
    TOO_LARGE = "ERR_MSG_TOO_LARGE"
    NOT_FOUND = "ERR_NOT_FOUND"
    INVALID = "ERR_INVALID_REQUEST"
    TIMEOUT = "ERR_TIMEOUT"
    INTERNAL = "ERR_INTERNAL"
    AMBIGUOUS = "ERR_AMBIGUOUS_PEER"
    BUSY = "ERR_BUSY"
    UNAUTHORIZED = "ERR_UNAUTHORIZED"
    FORBIDDEN = "ERR_FORBIDDEN"


STATUS = {
    Code.NOT_CONNECTED: 503,
    Code.TOO_LARGE: 413,
    Code.NOT_FOUND: 404,
    Code.INVALID: 400,
    Code.TIMEOUT: 408,
    Code.INTERNAL: 500,
    Code.AMBIGUOUS: 400,
    Code.BUSY: 429,
    Code.UNAUTHORIZED: 401,
    Code.FORBIDDEN: 403,
}

_WITH_ID = (Code.TIMEOUT, Code.TOO_LARGE)


class WireError(AcpError):
    """A request that is not carried out; nothing was changed by it.

    Attributes:
        code: one of `Code`.
        message: one line for people.
        failed: the id of the message that it was about, where known.
        extra: further fields of the answer.
    """

    def __init__(
        self, code: Code, message: str, *, failed: str | None = None, **extra: object
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.failed = failed
        self.extra = extra

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return STATUS[self.code]

    def envelope(self) -> Json:
        """The error envelope (core specification, section 5).

        The text stands under ``message`` too: clients of both spellings exist.
        """
        content: Json = {
            "ok": False,
            "error_code": self.code.value,
            "error": self.message,
            "message": self.message,
            "ts": now_text(),
            **self.extra,
        }
        if self.code in _WITH_ID and self.failed:
            content["failed_message_id"] = self.failed
        return content


def invalid(message: str) -> WireError:
    """A request that is not what it should be."""
    return WireError(Code.INVALID, message)


def now_text() -> str:
    """The moment as ISO 8601 in UTC, in microseconds, with ``Z``."""
    return time_text(datetime.now(UTC))


def time_text(at: datetime) -> str:
    """A time as ISO 8601 in UTC with ``Z``."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def time_of(text: object) -> datetime | None:
    """The time that ``text`` names, in UTC, or None. A time without a zone is UTC."""
    if not isinstance(text, str) or len(text) > 64:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def new_id(kind: str) -> str:
    """A random id, such as ``msg_7a3f9c2b01d4e5f6`` (core specification, section 1.3)."""
    return f"{kind}_{os.urandom(8).hex()}"


def is_name(text: object) -> bool:
    """Whether ``text`` can name an agent: 1 to 64 printable characters."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def outside(fields: Json) -> Json:
    """``fields`` without those that begin with ``_``: such flags are set by the receiver alone."""
    if not any(name.startswith("_") for name in fields):
        return fields
    return {name: value for name, value in fields.items() if not name.startswith("_")}


class TaskState(str, Enum):
    """Where a task stands (core specification, section 3.2)."""

    SUBMITTED = "submitted"
    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    INPUT_REQUIRED = "input_required"
    CANCELED = "canceled"

    @property
    def terminal(self) -> bool:
        """Whether nothing can follow."""
        return self in TERMINAL


TERMINAL = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED})

_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.\-_]{0,251}[A-Za-z0-9])?")


def is_host(host: str) -> bool:
    """Whether ``host`` is a name or an address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return _HOST.fullmatch(host) is not None
    return True


HMAC_SCHEME = "hmac-sha256"


class LogEntry(NamedTuple):
    """One entry of the agent's log, which `/stream` tells: ``body`` is a JSON object in UTF-8.

    ``seq`` is the agent's own durable counter.
    """

    seq: int
    kind: str
    task_id: str | None
    body: bytes


_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def decode(data: bytes | str) -> Any:
    """The JSON value in ``data``.

    Raises:
        Refusal: it is no JSON, is nested too deeply, or holds what no JSON text may hold
            (a number that is not finite, half of a surrogate pair).
    """
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8 text") from None
    try:
        value = _decoder.decode(text)
    except RecursionError:
        raise invalid(f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        reason = str(error)
        raise invalid(f"not JSON: {reason[:200]}") from None
    if too_deep(value):
        raise invalid(f"nested deeper than {MAX_DEPTH} levels")
    if _SURROGATE.search(text):
        try:
            encode(value)
        except UnicodeEncodeError:
            raise invalid("a text contains half of a surrogate pair") from None
    return value


def decode_object(data: bytes | str, *, empty: bool = False) -> Json:
    """The JSON object in ``data``; with ``empty``, no data at all is an empty object.

    Raises:
        Refusal: it is anything else.
    """
    if empty and not data.strip():
        return {}
    value = decode(data)
    if not isinstance(value, dict):
        raise invalid("expected a JSON object")
    return value


def encode(value: object) -> bytes:
    """JSON in UTF-8, on one line, in the order of the fields."""
    return _encoder.encode(value).encode()


def too_deep(value: object, limit: int = MAX_DEPTH) -> bool:
    """Whether lists and objects stand in each other more than ``limit`` levels deep."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(limit):
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if isinstance(item, dict | list)
        ]
        if not level:
            return False
    return True


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is too large")
    return number


_decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

T = TypeVar("T")

Object = dict[str, object]

"""A JSON object in a field: its values are whatever stands there."""

_lenient_decoder = Decoder(most=100_000)


def read_as(kind: type[T], value: object) -> T:
    """A JSON value as a ``kind``; see `Decoder.decode`."""
    return _lenient_decoder.decode(kind, value)


def text_that(fits: Callable[[str], bool]) -> Callable[[object], str | None]:
    """A reader of a text of which something holds."""
    return lambda value: value if isinstance(value, str) and fits(value) else None


def fields_of(value: object) -> Json:
    """The fields of an object; none of what is no object."""
    return value if isinstance(value, dict) else {}


def objects(value: object) -> list[Json]:
    """The objects of a list; none of what is no list."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def inside(value: object, name: str, unless: str) -> Json:
    """The object in a field of an object that only wraps it; else the object itself.

    Args:
        value: the object; what is none is an empty one.
        name: the field.
        unless: a field that tells that it wraps nothing.
    """
    fields = fields_of(value)
    within = fields.get(name)
    return within if unless not in fields and isinstance(within, dict) else fields


def count(value: object) -> int | None:
    """A reader of a number that counts something, or of a place in a log."""
    number = integer(value)
    return number if number is not None and 0 <= number < 2**63 else None


def line_of(longest: int = 500) -> Callable[[object], str]:
    """A reader of a field that is shown in a line, whatever stands there."""
    return lambda value: clean_line(str(value), longest)
