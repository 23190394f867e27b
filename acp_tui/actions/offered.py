"""What a collaboration offers: acts by what they are for, and the order in which they are listed.

Keys are bound to intents, never to names: each kind of collaboration names its acts as it likes. The
first picture needs this; what is asked and kept is in `acp_tui.actions.availability`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from acp_core.model.action_spec import Intent

if TYPE_CHECKING:
    from acp_core.model import Action
    from acp_core.protocols.contract import Collaboration
    from acp_tui.app import AcpApp


async def offered(app: AcpApp, key: str) -> tuple[Action, ...]:
    """What can be done in a collaboration now, in a worker thread; what mends it first.

    Raises:
        Exception: whatever the protocol raises; KeyError where there is no such collaboration.
    """
    snapshot, now = app.fleet.snapshots.get(key), app.now()

    def find(collaboration: Collaboration) -> tuple[Action, ...]:
        if snapshot is None:
            return tuple(collaboration.actions(now))
        from acp_core.diagnosis import actions

        return actions.actions(collaboration, snapshot, now, app.attention)

    return await app.fleet.call(key, find)


async def offered_named(app: AcpApp, key: str, name: str) -> Action | None:
    """One act by its name, without the others, in a worker thread; None where there is none.

    Raises:
        Refused: it cannot be done now.
        Exception: whatever the protocol raises; KeyError where there is no such collaboration.
    """
    snapshot, now = app.fleet.snapshots.get(key), app.now()

    def find(collaboration: Collaboration) -> Action | None:
        if snapshot is None:
            return collaboration.action(name, now)
        from acp_core.diagnosis import actions

        return actions.action(collaboration, snapshot, name, now, app.attention)

    return await app.fleet.call(key, find)


def trouble(app: AcpApp, key: str | None, error: Exception) -> str:
    """Why something with a collaboration failed, in words: it is gone, or what was raised."""
    if key is not None and key not in app.fleet.snapshots:
        return "the collaboration no longer exists"
    return repr(error)


HALTING = (Intent.STOP_EVERYTHING, Intent.STOP)


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
