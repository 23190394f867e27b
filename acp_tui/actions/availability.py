"""Which acts a collaboration offers now: asked off the interface's thread, when one is in hand."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.timer import Timer

    from acp_core.model import Action, Snapshot

Ask = Callable[[str], Awaitable[Iterable["Action"]]]
"""Gives what can be done in the collaboration with a key."""

PAUSE = 0.3
"""Seconds for which one must be in hand before it is asked: who scrolls asks nothing."""

SHARE = 20
"""Asking takes at most one part in so many of the time: it reads a whole log."""

MOST = 2_000
"""Collaborations of which the answer is kept."""


class Availability:
    """The names of what can be done in collaborations, as they stood when they were last in hand."""

    def __init__(self, screen: Screen[Any], ask: Ask, action: str) -> None:
        """Make it.

        Args:
            screen: Its keys are looked at again when more is known.
            ask: Gives what a collaboration offers; slow.
            action: The name of the act that has a key.
        """
        self._screen = screen
        self._offered = ask
        self._action = action
        self._timer: Timer | None = None
        self._wanted: Snapshot | None = None
        self._took = 0.0  # seconds for the last answer
        self._lacked = False  # whether the act that has a key was impossible at the last look
        self._known: dict[str, tuple[object, frozenset[str]]] = {}

    def lacks(self, snapshot: Snapshot, action: str) -> bool:
        """Whether an act is known to be impossible now."""
        state, names = self._known.get(snapshot.key, (None, frozenset()))
        return state == _state(snapshot) and bool(names) and action not in names

    def want(self, snapshot: Snapshot | None) -> None:
        """See to it that what can be done here is known soon."""
        if snapshot is None:
            return
        if self._known.get(snapshot.key, ("",))[0] == _state(snapshot):
            self._dim(snapshot)
            return
        if self._timer is not None:
            self._timer.stop()
        self._wanted = snapshot
        self._timer = self._screen.set_timer(max(PAUSE, self._took * SHARE), self._ask)

    def _ask(self) -> None:
        # Not given the Snapshot: Textual writes down what a worker is given, all of it.
        ask: Callable[[], Awaitable[None]] = self._find_out
        self._screen.run_worker(ask, group="offers", exclusive=True, exit_on_error=False)

    async def _find_out(self) -> None:
        snapshot, begun = self._wanted, time.monotonic()
        if snapshot is None:
            return
        try:
            actions = await self._offered(snapshot.key)
            names = frozenset(action.name for action in actions)
        except Exception:  # a protocol's fault, or the collaboration is gone
            return
        finally:
            self._took = time.monotonic() - begun
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[snapshot.key] = _state(snapshot), names
        self._dim(snapshot)

    def _dim(self, snapshot: Snapshot) -> None:
        """Have the keys looked at again, where other ones are of use: the footer is made anew."""
        lacks = self.lacks(snapshot, self._action)
        if lacks != self._lacked:
            self._lacked = lacks
            self._screen.refresh_bindings()


def _state(snapshot: Snapshot) -> object:
    """What decides which acts there are; most of what happens changes it not."""
    return snapshot.status, snapshot.phase, len(snapshot.needs)
