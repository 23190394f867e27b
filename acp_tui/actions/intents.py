"""Acts by what they are for: the one that the key `b` does, and the order in which acts are listed.

Keys are bound to intents, never to names: each kind of collaboration names its acts as it likes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from acp_core.model.action_spec import Intent

if TYPE_CHECKING:
    from acp_core.model import Action

HALTING = (Intent.STOP_EVERYTHING, Intent.STOP)
"""What the key that stops work is for: all of it where that can be done, else a part of it."""


class Halt(NamedTuple):
    """The act that stops work in a collaboration, as far as a key needs to know it.

    Attributes:
        name: The act's name; "" while it is not known.
        label: What it is called.
        choices: Its inputs that are chosen, each with all that can be chosen now.
    """

    name: str = ""
    label: str = "Stop"
    choices: tuple[tuple[str, frozenset[str]], ...] = ()

    def given(self, words: Iterable[str]) -> Mapping[str, str]:
        """Its inputs as far as ``words``, those of the selected row, name one that can be chosen."""
        named = list(words)
        matches = ((name, [word for word in named if word in some]) for name, some in self.choices)
        return {name: matching[0] for name, matching in matches if matching}


UNKNOWN = Halt()


class Start(NamedTuple):
    """The act that starts what runs a collaboration."""

    name: str
    label: str


def halting(actions: Sequence[Action]) -> Halt | None:
    """The act that stops everything, else the one that stops a part; None where there is neither."""
    candidates = (each for intent in HALTING for each in actions if each.intent is intent)
    action = next(candidates, None)
    if action is None:
        return None
    fields = [field for field in action.fields or () if field.choices]
    choices = tuple((field.name, frozenset(map(str, field.choices))) for field in fields)
    return Halt(action.name, action.label, choices)


def grave(action: Action) -> bool:
    """Whether nobody may do it by mistake: it stops everything, or cannot be taken back."""
    return action.risky or action.intent is Intent.STOP_EVERYTHING


def grave_last(actions: Iterable[Action]) -> tuple[Action, ...]:
    """The same acts, in the same order but for the grave ones, which come last."""
    return tuple(sorted(actions, key=grave))
