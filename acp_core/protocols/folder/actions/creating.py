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
from acp_core.model.errors import Refused
from acp_core.protocols.folder.actions import initial
from acp_core.protocols.folder.actions.table_agents import DIALECTS, INIT
from acp_core.protocols.folder.actions.table_new import NEW
from acp_core.protocols.folder.schema.deliverables import TYPES
from acp_core.protocols.folder.write.init import initialise
from acp_core.protocols.kit.binding import Context, Location, Narrowed, bound, command_of
from acp_core.protocols.kit.starting import Team, followed, starter, team_of, with_start
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

_USUAL = "design-spec"
_NARROWED: Narrowed = {
    "participants": {"help": "Agents and people; the first one owns the proposal."},
    "dialect": {"default": DIALECTS[0]},
    "deliverable": {
        "kind": Kind.CHOICE,
        "choices": (_USUAL, *(each for each in TYPES if each != _USUAL)),
        "default": _USUAL,
    },
}
"""What a form asks otherwise than the command: the dialect before the rest."""
_HELP = "The agent that takes a participant's turns; none for people."


def create(folder: Path | str) -> Action:
    """The action that starts a collaboration in ``folder``, which is made if it does not exist."""
    return creation(Location(os.path.abspath(os.path.expanduser(folder))), utc_now())


def creation(context: Context, now: datetime) -> Action:
    """Start a collaboration with its agents; refusals are in the words of the form.

    Raises:
        Refused: the settings that say which programs there are cannot be read.
    """
    folder, begin = context.key, starter()
    agents = {**begin.choices(), "help": _HELP} if begin else {"asked": False}

    def preview(values: Values) -> Preview:
        team, values = _with_team(values)
        with _in_words_of_the_form():
            shown = initial.preview(values, folder)
        shown = replace(shown, command=_command(context, team, values))
        if begin and team.programs:
            shown = with_start(shown, begin.preview(folder, team.programs))
        return shown

    def perform(values: Values) -> Outcome:
        team, values = _with_team(values)
        if begin and team.programs:  # nothing is written where a program is missing
            missing = begin.preview(folder, team.programs).refused
            if missing:
                raise Refused(missing)
        with _in_words_of_the_form():
            started = initialise(folder, initial.wish(values))
        sentence = safe(
            " ".join([f"Created a collaboration in {started.folder}.", *started.warnings])
        )
        if begin and team.programs:
            return followed(sentence, folder, begin.start(folder, team.programs))
        return Outcome(OutcomeState.DONE, sentence, location=folder)

    return bound(NEW, context, preview, perform, narrowed={**_NARROWED, "agent": agents})


def _with_team(values: Values) -> tuple[Team, Values]:
    """Who takes part by which program, and the values with the names alone.

    Raises:
        Refused: a program is given to somebody who does not take part.
    """
    team = team_of(values.participants, values.agent)
    return team, Values(**{**vars(values), "participants": team.names})


def _command(context: Context, team: Team, values: Values) -> tuple[str, ...]:
    """The same as a command: each participant with its program."""
    plain = initial.plain(values)
    shown = Values(**{**vars(plain), "participants": [], "agent": []})
    words = command_of(NEW, context, shown)
    people = [
        f"{each}={team.programs[each]}" if each in team.programs else each for each in team.names
    ]
    at = words.index("new") + 2  # behind the folder
    return (*words[:at], *map(safe, people), *words[at:])


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
