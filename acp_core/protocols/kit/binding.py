"""Acts bound to a collaboration: one plan, shown as a preview and done under the lock.

Refusals, wherever they come from, are told here and not raised.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple, Protocol, TypeVar

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import ActionSpec, Field, Kind
from acp_core.model.errors import Refused
from acp_core.protocols.kit.schema import inputs
from acp_core.protocols.kit.values import NUMBERS, Values, completed
from acp_core.protocols.kit.wording import reason, safe
from acp_core.protocols.registry import load

T = TypeVar("T")


class Context(Protocol):
    """What an act is bound to: a collaboration, or merely its location."""

    @property
    def key(self) -> str:
        """The location: an absolute path or a URL."""


class Location(NamedTuple):
    """A collaboration's location, where nobody has opened it."""

    key: str


def located(spec: ActionSpec, place: str) -> Location:
    """What an act's command is bound to: the absolute path of a folder, anything else as it is."""
    folder = spec.place is not None and spec.place.kind is Kind.FOLDER and "://" not in place
    return Location(os.path.abspath(os.path.expanduser(place)) if folder else place)


Narrowed = Mapping[str, Mapping[str, Any]]
"""What is otherwise than in the description, here and now: by field, by attribute of `Field`."""


def bound(
    spec: ActionSpec,
    context: Context,
    preview: Callable[[Values], Preview],
    perform: Callable[[Values], Outcome],
    *,
    fields: Iterable[Field] | None = None,
    narrowed: Narrowed | None = None,
    sentence: str = "",
    offered: bool = True,
) -> Action:
    """An act as it can be done now.

    Args:
        spec: its description.
        context: the collaboration.
        preview, perform: take the values of all fields, and may raise `Refused` and OSError.
        fields: its inputs now, where their number depends on the state; None for the described ones.
        narrowed: the fields that are otherwise now: choices, labels, default, help.
        sentence: what it does, where that depends on the state.
        offered: whether lists offer it now; else it can be asked for by name, and says why not.
    """
    narrowed_fields = narrow(spec.fields if fields is None else fields, narrowed or {})
    asked = tuple(each._replace(required=each.required or each.needed) for each in narrowed_fields)

    def safe_preview(given: Any) -> Preview:
        try:
            values = completed(asked, given)
            return _with_command(preview(values), spec, context, values)
        except (Refused, OSError) as error:
            return Preview("", refused=reason(error))

    def done(given: Any) -> Outcome:
        try:
            return perform(completed(asked, given))
        except (Refused, OSError) as error:
            return Outcome(OutcomeState.REFUSED, reason(error))

    return Action(
        spec.name,
        spec.label,
        safe(sentence or spec.sentence),
        inputs(spec.name, asked),
        safe_preview,
        done,
        risky=spec.risky,
        fields=asked,
        intent=spec.intent,
        by=spec.by,
        aliases=spec.aliases,
        offered=offered,
        personal=spec.personal,
        owner=spec.owner,
    )


def planned(
    spec: ActionSpec,
    context: Context,
    plan: Callable[[Values], T],
    show: Callable[[T], Preview],
    carry_out: Callable[[Callable[[], T]], T],
    *,
    after: Callable[[Values], str] | None = None,
    fields: Iterable[Field] | None = None,
    narrowed: Narrowed | None = None,
    sentence: str = "",
    offered: bool = True,
) -> Action:
    """An act that is one plan: shown as a preview, and made anew under the lock and done.

    Args:
        spec, context, fields, narrowed, sentence, offered: as those of `bound`.
        plan: what would be written, from the values.
        show: the plan for people.
        carry_out: takes the lock, makes the plan again, does it, and returns it.
        after: what is done then; it returns a sentence on that, or "".
    """

    def perform(values: Values) -> Outcome:
        told = show(carry_out(lambda: plan(values)))
        more = after(values) if after else ""
        return Outcome(OutcomeState.DONE, safe(f"{told.sentence} {more}".strip()), done=told)

    return bound(
        spec,
        context,
        lambda values: show(plan(values)),
        perform,
        fields=fields,
        narrowed=narrowed,
        sentence=sentence,
        offered=offered,
    )


def narrow(fields: Iterable[Field], narrowed: Narrowed) -> tuple[Field, ...]:
    """The fields as they can be given now."""
    return tuple(each._replace(**narrowed.get(each.name, {})) for each in fields)


def bind_all(specs: Iterable[ActionSpec], context: Context, now: datetime) -> list[Action]:
    """The acts that can be done now, in the order of their descriptions."""
    found = []
    for spec in specs:
        try:
            action = bind(spec, context, now)
        except (Refused, OSError):
            continue
        if action is not None and action.offered:
            found.append(action)
    return found


def bind_named(
    specs: Iterable[ActionSpec], name: str, context: Context, now: datetime
) -> Action | None:
    """The act of this name, new or old, without the others; None where there is none.

    Raises:
        Refused: it cannot be done now.
        OSError: what it is about cannot be read.
    """
    spec = next((each for each in specs if each.bind and each.called(name)), None)
    if spec is None:
        return None
    action = bind(spec, context, now)
    if action is None:
        raise Refused(f"{spec.name} is not available now")
    return action


def bind(spec: ActionSpec, context: Context, now: datetime) -> Action | None:
    """An act as it can be done now; None where it cannot.

    Raises:
        Refused: it cannot be done now; the message says why.
        OSError: what it is about cannot be read.
    """
    found: Action | None = load(spec.bind)(context, now) if spec.bind else None
    return found


# --- the command that does the same ----------------------------------------------------------


def _with_command(preview: Preview, spec: ActionSpec, context: Context, values: Values) -> Preview:
    if not spec.command or preview.command or preview.refused:
        return preview
    return replace(preview, command=command_of(spec, context, values))


def command_of(spec: ActionSpec, context: Context, values: Values) -> tuple[str, ...]:
    """The command line that does an act with these values, safe to show."""
    words = ["acp", *spec.command.split(), *place_words(spec, context)]
    words += [word for each in spec.fields for word in words_of(each, getattr(values, each.name))]
    return tuple(map(safe, words))


def place_words(spec: ActionSpec, context: Context) -> list[str]:
    """The collaboration on the command line."""
    if spec.place is None:
        return []
    return [context.key] if spec.place.position else [spec.place.option, context.key]


def words_of(field: Field, value: Any) -> list[str]:
    """A value on the command line; nothing where that is what the command takes anyway."""
    if value is None or (value == field.empty and not field.required):
        return []
    if field.kind is Kind.FLAG:
        return [field.option if value else f"--no-{field.option[2:]}"]
    if field.kind is Kind.LIST:
        return [word for each in value for word in _as_option(field, str(each))]
    if field.kind in NUMBERS:
        return _as_option(field, f"{value:g}")
    plain = field.position and not str(value).startswith("-")
    return [str(value)] if plain else _as_option(field, str(value))


def _as_option(field: Field, word: str) -> list[str]:
    """An option with its value, joined where that looks like an option itself."""
    return [f"{field.option}={word}"] if word.startswith("-") else [field.option, word]
