"""Which acts a collaboration offers now: asked off the interface's thread, when one is in hand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

from acp_tui.acts import offered

if TYPE_CHECKING:
    from textual.timer import Timer

    from acp_core.model import Snapshot
    from acp_tui.acts import Acts

PAUSE = 0.3
"""Seconds for which one must be in hand before it is asked: who scrolls asks nothing."""

MOST = 2_000
"""Collaborations of which the answer is kept."""


class Offers:
    """The names of what can be done in collaborations, as they stood when they were last in hand."""

    def __init__(self, screen: Acts) -> None:
        """Make it for a screen, of which the keys are looked at again when more is known."""
        self._screen = screen
        self._timer: Timer | None = None
        self._known: dict[str, tuple[object, frozenset[str]]] = {}

    def lacks(self, snapshot: Snapshot, action: str) -> bool:
        """Whether an act is known to be impossible now."""
        state, names = self._known.get(snapshot.key, (None, frozenset()))
        return state == _state(snapshot) and bool(names) and action not in names

    def want(self, snapshot: Snapshot | None) -> None:
        """See to it that what can be done here is known soon."""
        if snapshot is None or self._known.get(snapshot.key, ("",))[0] == _state(snapshot):
            return
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._screen.set_timer(PAUSE, lambda: self._ask(snapshot))

    def _ask(self, snapshot: Snapshot) -> None:
        look: Callable[[], Awaitable[None]] = partial(self._look, snapshot)
        self._screen.run_worker(look, group="offers", exclusive=True, exit_on_error=False)

    async def _look(self, snapshot: Snapshot) -> None:
        try:
            found = await offered(self._screen.app, snapshot.key)
            names = frozenset(action.name for action in found)
        except Exception:  # a protocol's fault, or the collaboration is gone
            return
        if len(self._known) >= MOST:
            self._known.clear()
        self._known[snapshot.key] = _state(snapshot), names
        self._screen.refresh_bindings()


def _state(snapshot: Snapshot) -> object:
    """What decides which acts there are; most of what happens changes it not."""
    return snapshot.status, snapshot.phase, len(snapshot.needs)
