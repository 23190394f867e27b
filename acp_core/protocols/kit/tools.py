"""Tools of participants' programs, made from the descriptions of participants' own acts and queries.

A tool asks its model for what the act's form asks for, but never who acts and where: those are
the seat, which the command line names. What a person decides is never a tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from acp_core.model.action import OutcomeState
from acp_core.model.action_spec import ActionSpec, Answer, By, Field, Kind, QuerySpec, Spec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean
from acp_core.protocols.kit import schema, validation
from acp_core.protocols.kit.binding import Location, bind
from acp_core.protocols.kit.values import completed
from acp_core.protocols.registry import Protocol, load

FOLDER, PARTICIPANT = "folder", "participant"
SEAT = frozenset({FOLDER, PARTICIPANT})
"""The inputs that come from the command line, never from a model."""
LONGEST = 20_000
"""Characters of a tool's answer; the rest is there for the asking."""
OFFSET = Field(
    "offset", "Offset", "Continue a long answer from this character; the answer names the number.",
    Kind.NUMBER, default=0, least=0,
)  # fmt: skip
_COMMON = "acp_core.protocols.kit.taking_part:TOOLS"


class Seat(NamedTuple):
    """Who uses tools, and where: an absolute path or a URL, and an id as the files have it."""

    key: str
    participant: str


def tools_of(protocol: Protocol, *, waits: bool = True) -> tuple[Spec, ...]:
    """The tools of a protocol's participants: its own, then those that every protocol offers.

    Args:
        protocol: the protocol.
        waits: whether to offer those that wait for a turn.

    Raises:
        TypeError: a description is not that of a participant's own act or query.
    """
    own: tuple[Spec, ...] = load(protocol.tools) if protocol.tools else ()
    common: tuple[Spec, ...] = load(_COMMON)
    found = {each.name: each for each in (*common, *own)}
    for each in found.values():
        if each.by is not By.PARTICIPANT:
            raise TypeError(f"{each.name} is not a participant's own")
    return tuple(each for each in found.values() if waits or each.name != "wait")


def asked(spec: Spec) -> tuple[Field, ...]:
    """What a tool asks its model for: what a form asks for, without the seat."""
    return tuple(each for each in spec.fields if each.form and each.name not in SEAT)


def input_schema(spec: Spec) -> dict[str, Any]:
    """The JSON schema of a tool's inputs."""
    made = schema.model(spec.name, asked(spec)).model_json_schema()
    properties = {name: _plain(each) for name, each in made.get("properties", {}).items()}
    required = {"required": made["required"]} if made.get("required") else {}
    return {
        "type": "object",
        "properties": properties,
        **required,
        "additionalProperties": False,
    }


def call(spec: Spec, seat: Seat, arguments: Mapping[str, Any]) -> str:
    """Do what a tool is for.

    Args:
        spec: its description.
        seat: who uses it, and where.
        arguments: what the model gave.

    Returns:
        The answer, safe to show, at most `LONGEST` characters and a line on how to get the rest.

    Raises:
        Refused: it cannot be done, with what to do in one line.
        OSError: what it is about cannot be read or written.
    """
    if isinstance(spec, QuerySpec):
        given = checked(spec.name, asked(spec), arguments)
        seated = {FOLDER: seat.key, PARTICIPANT: seat.participant}
        answer: Answer = load(spec.answer)(completed(spec.fields, {**given, **seated}))
        return excerpt("\n".join(answer.lines), given.get(OFFSET.name, 0))
    return excerpt(_done(spec, seat, arguments), 0)


def _done(spec: ActionSpec, seat: Seat, arguments: Mapping[str, Any]) -> str:
    action = bind(spec, Location(seat.key), utc_now())
    if action is None:
        raise Refused(f"{spec.label} is not available now")
    now = {each.name: each for each in action.fields or ()}
    fields = (each._replace(choices=now[each.name].choices) for each in asked(spec))
    given = checked(spec.name, fields, arguments)
    outcome = action.perform({**given, PARTICIPANT: seat.participant})
    if outcome.state is OutcomeState.REFUSED:
        raise Refused(outcome.sentence)
    remarks = (*outcome.done.warnings, *outcome.done.notes) if outcome.done else ()
    return "\n".join([outcome.sentence, *remarks, *(f"failed: {each}" for each in outcome.failed)])


def checked(name: str, fields: Iterable[Field], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What the model gave, as the fields ask for it.

    Raises:
        Refused: something else was given; all that is wrong, on one line.
    """
    from pydantic import ValidationError

    wanted = tuple(fields)
    known = [each.name for each in wanted]
    unknown = [f"{each}: is not an input of {name}" for each in arguments if each not in known]
    if unknown:
        raise Refused("; ".join([*unknown, f"it has {', '.join(known) or 'none'}"]))
    given = {each: value for each, value in arguments.items() if value is not None}
    try:
        made = schema.model(name, wanted).model_validate(given)
    except ValidationError as error:
        wrong = (
            f"{field}: {what}" if field else what for field, what in validation.problems(error)
        )
        raise Refused("; ".join(wrong)) from None
    return made.model_dump()


def excerpt(text: str, offset: int) -> str:
    """A part of a text that is not too long, safe to show, with how to get what follows.

    Args:
        text: the whole.
        offset: the character that it begins with.
    """
    whole = clean(text)
    if offset and offset >= len(whole):
        raise Refused(f"offset: the answer has only {len(whole):,} characters")
    part = whole[offset : offset + LONGEST]
    end = offset + len(part)
    if end == len(whole):
        return part
    return f"{part}\n[characters {offset} to {end} of {len(whole)}: call again with offset={end}]"


def _plain(described: Mapping[str, Any]) -> dict[str, Any]:
    """A property without what only forms need."""
    left = {name: value for name, value in described.items() if name not in ("title", "format")}
    if left.get("default", "") in ("", None):
        left.pop("default", None)
    return left
