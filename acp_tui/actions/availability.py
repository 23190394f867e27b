"""Which acts a collaboration offers now, and what acts are called: asked off the interface's thread.

`Availability` knows the act that stops work where one is in hand, `Labels` what needs ask for: as the
act is described at first, then as the collaboration offers it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from acp_core.model.text import clean_line
from acp_tui.actions.offered import (
    UNKNOWN,
    Halt,
    Start,
    halting,
    offered,
)

if TYPE_CHECKING:
    from textual.screen import Screen
    from textual.timer import Timer

    from acp_core.model import Action, Snapshot, Status
    from acp_tui.app import AcpApp

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
        self._drawn_for: tuple[str, Status | None] = (
            "",
            None,
        )  # and of which collaboration, how it stands
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
        halt, drawn_for = self.halt(snapshot), (snapshot.key, snapshot.status)
        if halt is UNKNOWN and self._offers and self._drawn_for == drawn_for:
            return  # it keeps its name until the answer is there
        self._drawn_for = drawn_for
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


LOADING, UNNAMED = "…", "Do it"
"""What stands for what an act is called until that is known, and where nobody says it: never its name."""
_label_of: dict[str, Callable[[str, str], str]] = {}
"""What knows the descriptions of a protocol's acts, by the protocol's name, where they are loaded."""


def described(protocol: str, name: str) -> str:
    """What an act is called by its description; `LOADING` while those of the protocol are not loaded."""
    label_of = _label_of.get(protocol)
    return LOADING if label_of is None else clean_line(label_of(protocol, name)) or UNNAMED


async def describe(protocol: str, name: str) -> str:
    """As `described`, once the descriptions are loaded, in a worker thread."""
    if protocol not in _label_of:
        await asyncio.to_thread(load_descriptions, protocol)
    return described(protocol, name)


def load_descriptions(protocol: str) -> None:
    """Load the descriptions of a protocol's acts: dozens of modules."""
    try:
        from acp_core.diagnosis.actions import label_of

        label_of(protocol, "")
    except Exception:  # somebody else's protocol: what the collaboration offers has labels, too
        _label_of[protocol] = lambda *_: ""
    else:
        _label_of[protocol] = label_of


AT_ONCE = 40
"""Collaborations that are asked in one go: no more stand on a screen."""

SOON = 0.2
"""Seconds until lines that were drawn are asked for: who scrolls past them asks nothing."""


class Labels:
    """The labels of actions, by collaboration and name."""

    def __init__(self, app: AcpApp, changed: Callable[[], None]) -> None:
        """Make it.

        Args:
            app: Its fleet is asked.
            changed: Called when more is known.
        """
        self._app = app
        self._changed = changed
        self._known: dict[tuple[str, str], str] = {}
        self._asked: dict[tuple[str, str], Snapshot] = {}
        self._soon: dict[tuple[str, str], Snapshot] = {}

    def of(self, key: str, action: str) -> str:
        """What an action is called, as far as that is known."""
        snapshot = self._app.fleet.snapshots.get(key)
        protocol = snapshot.protocol if snapshot is not None else ""
        return self._known.get((key, action)) or described(protocol, action)

    def drawn(self, key: str, action: str) -> str:
        """As `of`, for a line that is drawn now: of a thousand only those are asked that show."""
        snapshot = self._app.fleet.snapshots.get(key)
        if snapshot is not None:
            self.want_soon([(snapshot, action)])
        return self.of(key, action)

    def want_soon(self, wanted: Iterable[tuple[Snapshot, str]]) -> None:
        """As `want`, once what was read is drawn: describing actions takes many modules."""
        for snapshot, action in wanted:
            place = snapshot.key, action
            if not self._knows(place, snapshot):
                if not self._soon:
                    self._app.set_timer(SOON, self._ask)
                self._soon[place] = snapshot

    def _ask(self) -> None:
        soon, self._soon = self._soon, {}
        self.want((snapshot, action) for (_, action), snapshot in soon.items())

    def _knows(self, place: tuple[str, str], snapshot: Snapshot) -> bool:
        return place in self._known or self._asked.get(place) is snapshot

    def want(self, wanted: Iterable[tuple[Snapshot, str]]) -> None:
        """See to it that the labels of these actions are known soon."""
        missing: dict[str, set[str]] = {}
        for snapshot, action in wanted:
            place = snapshot.key, action
            if self._knows(place, snapshot):
                continue
            if len(missing) == AT_ONCE and snapshot.key not in missing:
                break
            self._asked[place] = snapshot
            missing.setdefault(snapshot.key, set()).add(action)
        if missing:
            self._app.run_worker(self._request(missing), group="labels", exit_on_error=False)

    async def _request(self, missing: dict[str, set[str]]) -> None:
        if await self._describe(missing):
            self._changed()
        changed = False
        for key, names in missing.items():
            try:
                actions = await offered(self._app, key)
            except Exception:  # a protocol's fault, or the collaboration is gone
                continue
            for action in actions:
                if action.name in names and action.label:
                    self._known[key, action.name] = action.label
                    changed = True
        if changed:
            self._changed()

    async def _describe(self, missing: Mapping[str, Iterable[str]]) -> bool:
        """See to it that descriptions are known: no collaboration is asked. Whether any is new."""
        snapshots = self._app.fleet.snapshots
        acts = {
            (snapshots[key].protocol, name)
            for key, names in missing.items()
            if key in snapshots
            for name in names
        }
        new = [each for each in acts if described(*each) == LOADING]
        for protocol, name in new:
            await describe(protocol, name)
        return bool(new)
