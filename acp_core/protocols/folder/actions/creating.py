"""Starting a collaboration, as a form does it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_field import Kind
from acp_core.model.clock import utc_now
from acp_core.protocols.folder.actions import initial
from acp_core.protocols.folder.actions.table_agents import DIALECTS, INIT
from acp_core.protocols.folder.schema.deliverables import TYPES
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.init import initialise
from acp_core.protocols.kit.binding import Context, Location, Narrowed, bound, command_of
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

_USUAL = "design-spec"
_NARROWED: Narrowed = {
    "objective": {"required": True},
    "participants": {"required": True},
    "gates": {"required": True},
    "dialect": {"default": DIALECTS[0]},
    "deliverable": {
        "kind": Kind.CHOICE,
        "choices": (_USUAL, *(each for each in TYPES if each != _USUAL)),
        "default": _USUAL,
    },
}
"""What a form asks otherwise than the command: what must be said, and the dialect before the rest."""


def create(folder: Path | str) -> Action:
    """The action that starts a collaboration in ``folder``, which is made if it does not exist."""
    return creation(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def creation(context: Context, now: datetime) -> Action:
    """Start a collaboration; refusals are in the words of the form."""
    folder = context.key

    def preview(values: Values) -> Preview:
        with _in_words_of_the_form():
            shown = initial.preview(values, folder)
        return replace(shown, command=command_of(INIT, context, initial.plain(values)))

    def perform(values: Values) -> Outcome:
        with _in_words_of_the_form():
            started = initialise(folder, initial.wish(values))
        sentence = " ".join([f"Started a collaboration in {started.folder}.", *started.warnings])
        return Outcome(OutcomeState.DONE, safe(sentence), location=folder)

    return bound(INIT, context, preview, perform, narrowed=_NARROWED)


@contextmanager
def _in_words_of_the_form() -> Iterator[None]:
    """Refusals name the command's options: the form's own titles stand in their place."""
    try:
        yield
    except Refused as error:
        said = str(error)
        for field in INIT.fields[:3]:
            said = said.replace(field.option, f"“{field.title}”")
        raise Refused(said, error.code) from None
