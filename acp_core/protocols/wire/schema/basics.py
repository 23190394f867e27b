"""What the whole protocol is written with (core specification, v0.8).

Types of frames, codes of errors with their HTTP status, states of tasks, names, ids and times,
bounds, base64url, and the names of acts.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import os
import re
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.model.errors import AcpError

if TYPE_CHECKING:
    pass

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
