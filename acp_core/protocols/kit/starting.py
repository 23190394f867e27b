"""Starting programs in a folder that an act makes: a new collaboration, or one that continues another.

The acts that make folders belong to protocols; what starts programs stands above them and is handed
in (`acp_core.protocols.registry.START`). Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from acp_core.model.action import Outcome, OutcomeState, Preview
from acp_core.model.errors import Refused, Unusable
from acp_core.protocols.registry import START, handed_in


class Starter(Protocol):
    """What starts programs for participants."""

    def choices(self) -> Mapping[str, Any]:
        """The programs to choose from, as attributes of a `Field`; its ``bare`` is the usual one."""

    def preview(self, folder: str, programs: Mapping[str, str]) -> Preview:
        """What would be started in a folder that does not exist yet, by participant.

        Raises:
            Refused: there is no such program.
        """

    def start(self, folder: str, programs: Mapping[str, str]) -> Outcome:
        """Start them.

        Raises:
            Refused: there is no such program.
        """

    def ran(self, folder: str) -> Sequence[str]:
        """The participants whose programs ran in a folder."""

    def preview_same(self, before: str, folder: str) -> Preview:
        """What would be started in a folder that does not exist yet: what ran in another."""

    def start_same(self, before: str, folder: str) -> Outcome:
        """Start what ran in another folder."""


class Team(NamedTuple):
    """Who takes part in a new collaboration, and by which program; those without one by hand."""

    names: list[str]
    programs: dict[str, str]


def starter() -> Starter | None:
    """What starts programs; None where nothing was handed in, as in the portable skill."""
    try:
        found: Starter = handed_in(START)
    except Unusable:
        return None
    return found


def team_of(participants: Sequence[str], agents: Sequence[str]) -> Team:
    """Who takes part, and by which program.

    Args:
        participants: each ``NAME`` or ``NAME=PROGRAM``.
        agents: each ``NAME=PROGRAM``, or the program of all who name none.

    Raises:
        Refused: a word names nobody, or somebody who does not take part.
    """
    pairs = [_pair(word) for word in participants]
    chosen = [_pair(word) for word in agents if "=" in word]
    names = [name for name, _ in pairs]
    unknown = [name for name, _ in chosen if name not in names]
    if unknown:
        raise Refused(f"{unknown[0]!r} is not a participant (participants: {', '.join(names)})")
    usual = next((each for each in reversed(agents) if "=" not in each), "")
    programs = dict.fromkeys(names, usual)
    programs |= {name: program for name, program in (*pairs, *chosen) if program}
    return Team(names, {name: program for name, program in programs.items() if program})


def _pair(word: str) -> tuple[str, str]:
    name, _, program = (part.strip() for part in word.partition("="))
    if not name:
        raise Refused(f"{word!r} names no participant")
    return name, program


def with_start(made: Preview, start: Preview) -> Preview:
    """The preview of an act that makes a folder and then starts programs there."""
    return replace(
        made,
        sentence=f"{made.sentence} {start.sentence}",
        changes=(*start.changes, *made.changes),
        warnings=(*made.warnings, *start.warnings),
        refused=made.refused or start.refused,
        data={**made.data, **start.data},
    )


def followed(sentence: str, location: str, start: Outcome) -> Outcome:
    """How such an act ended: the folder is there, whether or not every program runs."""
    failed = (start.sentence,) if start.state is not OutcomeState.DONE else ()
    return Outcome(
        OutcomeState.UNKNOWN if failed else OutcomeState.DONE,
        f"{sentence} {start.sentence}",
        location=location,
        done=start.done,
        failed=failed,
    )
