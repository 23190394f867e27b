"""Actions that append an event: a person's own turn, somebody else's, and `blocked`.

Source: folder protocol specification, "Events" and "Phases".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from acp_core.model.action import Action, Outcome, Preview
from acp_core.model.action_spec import ActionSpec, Field
from acp_core.model.errors import Refused
from acp_core.model.text import clean_name
from acp_core.protocols.folder.actions.appending import write
from acp_core.protocols.folder.actions.common import (
    OpenFolder,
    open_folder,
    participants,
    problems,
    who_may,
)
from acp_core.protocols.folder.actions.previewing import preview
from acp_core.protocols.folder.actions.table_turns import BLOCKING
from acp_core.protocols.folder.write.append import Request
from acp_core.protocols.folder.write.opened import Opened, open_unlocked
from acp_core.protocols.kit.binding import Context, Narrowed, bound
from acp_core.protocols.kit.values import Values

Compose = Callable[[Opened, Values], Request]
"""Makes the event, and what changes with it, of what was given."""


def _as_described(opened: Opened) -> Narrowed:
    return {}


def _nothing_more(opened: Opened) -> tuple[Field, ...]:
    return ()


class Turn(NamedTuple):
    """One kind of event that a person can append.

    ``narrow`` is what is otherwise than in the description now, ``more`` is asked besides (the
    gates of this collaboration), ``compose`` makes the request.
    """

    spec: ActionSpec
    compose: Compose
    narrow: Callable[[Opened], Narrowed] = _as_described
    more: Callable[[Opened], tuple[Field, ...]] = _nothing_more

    def bind(self, context: Context, now: datetime) -> Action:
        """The turn as it can be taken now: a person's own, or in an agent's place.

        Raises:
            Refused: nobody may take it now, or the collaboration cannot be read.
        """
        here = open_folder(context, now)
        allowed = _allowed(here, self.spec.name)
        people = [name for name in allowed if name in here.humans]
        ordered = [*people, *(name for name in allowed if name not in people)]
        *first, summary = self.spec.fields
        action = _appending(
            self.spec,
            here,
            self.compose,
            (*first, *self.more(here.opened), summary),
            {**self.narrow(here.opened), "participant": participants(ordered)},
            here.humans,
        )
        return action if people else _in_its_place(action, ordered[0])


def _allowed(here: OpenFolder, event: str) -> list[str]:
    """Who may append an event now.

    Raises:
        Refused: nobody may; the message says why.
    """
    allowed = who_may(here.opened, event)
    if not allowed:
        found = [each.text for name in here.opened.participants[:1]
                 for each in problems(here.opened, event, name)]  # fmt: skip
        raise Refused(found[0] if found else f"{event} is not allowed now")
    return allowed


def _in_its_place(action: Action, name: str) -> Action:
    """A turn that no person may take: it is taken in an agent's place."""
    return replace(
        action,
        label=f"Act as {clean_name(name, 40)}: {action.label.lower()}",
        sentence=f"{action.sentence} No human participant can do this: you act in its place.",
        risky=True,
    )


def _appending(
    spec: ActionSpec,
    here: OpenFolder,
    compose: Compose,
    fields: tuple[Field, ...],
    narrowed: Narrowed,
    humans: frozenset[str] | None,
) -> Action:
    folder = here.opened.folder

    def show(values: Values) -> Preview:
        opened = open_unlocked(folder)
        return preview(compose(opened, values), opened, humans)

    def perform(values: Values) -> Outcome:
        return write(compose(open_unlocked(folder), values))

    return bound(spec, here, show, perform, fields=fields, narrowed=narrowed)


def blocking(context: Context, now: datetime) -> Action:
    """Stop the collaboration, on behalf of a participant.

    Raises:
        Refused: it is stopped already, or has ended, or cannot be read.
    """
    here = open_folder(context, now)
    allowed, machine = _allowed(here, "blocked"), here.opened.machine
    if machine.phase == "blocked":
        raise Refused("the collaboration is blocked already")
    waited = [name for name in machine.waiting if name in allowed]
    first = [name for name in allowed if name in here.humans] or waited
    ordered = [*first, *(name for name in allowed if name not in first)]

    def compose(opened: Opened, values: Values) -> Request:
        return _blocked(opened, values, here.humans)

    return _appending(
        BLOCKING, here, compose, BLOCKING.fields, {"participant": participants(ordered)}, None
    )


def _blocked(opened: Opened, values: Values, humans: frozenset[str]) -> Request:
    reason = values.reason.strip()
    if not reason:
        raise Refused("describe the blocker")
    name = values.participant
    if name not in humans:
        reason = f"{reason} (said by a human coordinator on behalf of {name})"
    return Request(
        folder=opened.folder,
        participant=name,
        event="blocked",
        summary=reason,
        reply_to=opened.last_seq or None,
        expect_seq=opened.last_seq,
    )
