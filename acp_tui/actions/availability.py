"""Which acts a collaboration offers now: asked off the interface's thread, when one is in hand."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from acp_tui.actions.intents import UNKNOWN, Halt, Start, halting

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
    """The act that stops work in each collaboration, as it stood when it was last in hand."""

    def __init__(self, screen: Screen[Any], ask: Ask, changed: Callable[[], None]) -> None:
        """Make it.

        Args:
            screen: Its keys are looked at again when more is known.
            ask: Gives what a collaboration offers; slow.
            changed: Called when more is known.
        """
        self._screen = screen
        self._changed = changed
        self._offered = ask
        self._timer: Timer | None = None
        self._wanted: Snapshot | None = None
        self._took = 0.0  # seconds for the last answer
        self._offers: Halt | None = UNKNOWN  # what the keys were last drawn for
        self._drawn_for = ""  # and of which collaboration
        self._known: dict[str, tuple[object, Halt | None]] = {}
        self._starts: dict[str, Start | None] = {}

    def halt(self, snapshot: Snapshot) -> Halt | None:
        """The act that stops work now: None where there is none, `UNKNOWN` before it is known."""
        state, halt = self._known.get(snapshot.key, (None, None))
        return halt if state == _state(snapshot) else UNKNOWN

    def start(self, snapshot: Snapshot) -> Start | None:
        """The act that starts what runs it; None where there is none, or none is known."""
        known = self.halt(snapshot) is not UNKNOWN
        return self._starts.get(snapshot.key) if known else None

    def label(self, snapshot: Snapshot) -> str:
        """What the act that stops work is called, or was when it was asked for last."""
        _, halt = self._known.get(snapshot.key, (None, None))
        return halt.label if halt else UNKNOWN.label

    def want(self, snapshot: Snapshot | None) -> None:
        """See to it that what can be done here is known soon."""
        if snapshot is None:
            return
        self._update_keys(snapshot)
        if self.halt(snapshot) is not UNKNOWN:
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
        if self._wanted is None:
            return
        with suppress(Exception):  # a protocol's fault, or the collaboration is gone
            await self.find_out(self._wanted)

    async def find_out(self, snapshot: Snapshot) -> Halt | None:
        """Ask the collaboration for the act that stops work in it.

        Raises:
            Exception: whatever the protocol raises; KeyError where there is no such collaboration.
        """
        begun = time.monotonic()
        try:
            offers = tuple(await self._offered(snapshot.key))
        finally:
            self._took = time.monotonic() - begun
        if len(self._known) >= MOST:
            self._known.clear()
            self._starts.clear()
        halt = halting(offers)
        self._known[snapshot.key] = _state(snapshot), halt
        self._starts[snapshot.key] = _start(offers)
        self._update_keys(snapshot)
        self._changed()
        return halt

    def _update_keys(self, snapshot: Snapshot) -> None:
        """Have the keys looked at again, where other ones are of use: the footer is made anew."""
        halt = self.halt(snapshot)
        if halt is UNKNOWN and self._offers and self._drawn_for == snapshot.key:
            return  # it keeps its name until the answer is there
        self._drawn_for = snapshot.key
        if halt != self._offers:
            self._offers = halt
            self._screen.refresh_bindings()


def _start(offers: tuple[Action, ...]) -> Start | None:
    from acp_core.loops.wording import starting_act

    start = starting_act(offers)
    return Start(start.name, start.label) if start is not None else None


def _state(snapshot: Snapshot) -> object:
    """What decides which acts there are; most of what happens changes it not."""
    whose = tuple(turn.participant for turn in snapshot.turns)
    return snapshot.status, snapshot.phase, len(snapshot.needs), whose, snapshot.runners
