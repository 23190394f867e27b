"""Bodies of requests, checked: what is taken from them has the type that it should have."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from acp_core.protocols.wire.parts import parts_of
from acp_core.protocols.wire.schema import MAX_ID, ROLES, Json, invalid, is_name

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
        raise invalid('role: "user" or "agent" is needed')
    return Draft(
        parts=parts,
        role=role,
        message_id=ident(body, "message_id"),
        task_id=path_ident(body, "task_id"),
        context_id=path_ident(body, "context_id"),
        peer_id=ident(body, "peer_id"),
        sender=text(body, "from", MAX_ID),
        sync=flag(body, "sync"),
        timeout=seconds(body, "timeout"),
        create_task=flag(body, "create_task"),
        carried={name: value for name in CARRIED if (value := ident(body, name)) is not None},
    )


def text(body: Json, name: str, longest: int = 1 << 16) -> str | None:
    """A text of at most ``longest`` characters, or None where it is absent or null."""
    value = body.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > longest:
        raise invalid(f"{name}: a text of at most {longest} characters is needed")
    return value


def ident(body: Json, name: str) -> str | None:
    """An id: 1 to `MAX_ID` characters, none of them a control character."""
    value = text(body, name, MAX_ID)
    if value is not None and (not value or any(ord(sign) < 32 or sign == "\x7f" for sign in value)):
        raise invalid(f"{name}: an id of plain characters is needed")
    return value


def path_ident(body: Json, name: str) -> str | None:
    """An id that can stand in a path: no blanks, and none of ``/ ? # : %``."""
    value = ident(body, name)
    if value is not None and not is_path_ident(value):
        raise invalid(f"{name}: an id without blanks and without / ? # : % is needed")
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
        raise invalid(f"{name}: true or false is needed")
    return value


def seconds(body: Json, name: str, default: float = WAIT) -> float:
    """A time to wait, at most `LONGEST_WAIT`."""
    return bounded_seconds(body.get(name), name, default)


def bounded_seconds(value: Any, name: str, default: float = WAIT) -> float:
    """``value`` (a number, or a query's text) as a time to wait."""
    if value is None:
        return default
    if isinstance(value, bool):
        raise invalid(f"{name}: a number of seconds is needed")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise invalid(f"{name}: a number of seconds is needed") from None
    if not math.isfinite(number) or number < 0:
        raise invalid(f"{name}: a number of seconds that is not negative is needed")
    return min(number, LONGEST_WAIT)


def agent_name(body: Json, name: str = "name") -> str | None:
    """The name of an agent, or None where it is absent."""
    value = text(body, name, MAX_ID)
    if value is not None and not is_name(value):
        raise invalid(f"{name}: 1 to 64 printable characters are needed")
    return value
