"""What an agent answers, as values: receipts, events, refusals. It may be anybody, of any make."""

from __future__ import annotations

from typing import Any, NamedTuple

import httpx

from acp_core.model.errors import NetworkError
from acp_core.protocols.wire.schema import Json, Refusal, shapes
from acp_core.protocols.wire.schema.decode import decode
from acp_core.protocols.wire.schema.lenient import count, fields_of, objects

_SAID = 2_000  # characters of what an agent says went wrong


class WireError(NetworkError):
    """An agent refused, or could not be asked; the message is one line.

    Attributes:
        code: the error's code (core specification, section 5); "" where none was answered.
        status: the HTTP status; 0 where there was no answer.
        unsure: whether the agent may have done what it was asked for all the same.
        untrusted: somebody answered, whose certificate is not believed.
    """

    def __init__(
        self,
        message: str,
        code: str = "",
        status: int = 0,
        *,
        unsure: bool = False,
        untrusted: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.unsure = unsure
        self.untrusted = untrusted


class Receipt(NamedTuple):
    """What became of a message. ``queued``: its receiver is away and gets it when it returns."""

    message_id: str
    server_seq: int
    queued: bool
    task: Json | None
    reply: Json | None


class Event(NamedTuple):
    """An event of a stream. ``seq`` is its place, after which a stream can be taken up again; 0: none
    is told."""

    seq: int
    kind: str
    data: Json


def event_of(fields: dict[str, str]) -> Event | None:
    """The event that these lines of a stream make, if they do."""
    try:
        data = decode(fields["data"])
        seq = count(int(fields["id"][:20])) or 0 if "id" in fields else None
    except (KeyError, ValueError, Refusal):
        return None
    if not isinstance(data, dict):
        return None
    kind, told = shapes.event(fields.get("event", "message")[:64], data)
    return Event(shapes.number(data) if seq is None else seq, kind[:64], told)


def refusal(response: httpx.Response, data: bytes) -> WireError:
    fields = fields_of(content_of(data))
    usual = f"the answer was {response.status_code}"
    if response.is_redirect:
        usual += ", a redirect, which acp does not follow"
    said = fields.get("error") or usual
    return WireError(
        str(said)[:_SAID], str(fields.get("error_code", ""))[:64], response.status_code
    )


def content_of(data: bytes) -> Any:
    try:
        return decode(data)
    except Refusal:
        return None


def listed(answer: Any, name: str) -> list[Json]:
    """The objects of an answer that is a list, or holds one under a name."""
    return objects(answer if isinstance(answer, list) else fields_of(answer).get(name))
