"""Keys one after the other: what a key does is done before the next key finds its widget.

Textual hands every key to the widget that has the focus when the key arrives. In a burst (a paste by a
terminal without bracketed paste, a lagging line) the second key arrives before the first one has moved the
focus, and what was meant as text runs as commands. Here the second key waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from textual import events
from textual.screen import Screen

if TYPE_CHECKING:
    from textual.app import App
    from textual.dom import DOMNode

Input = events.Key | events.Paste
LONGEST = 10.0
"""Seconds for which keys wait at most for what is being made; a form takes more than one on a busy machine."""
PAUSE = 0.01
NEVER_HELD = frozenset({"escape", "ctrl+q", "ctrl+c"})
"""Keys that leave: nobody is kept in a form that does not come."""


class KeyQueue:
    """The keys that were pressed and have not reached a widget yet."""

    def __init__(
        self,
        app: App[Any],
        forward: Callable[[Input], Awaitable[None]],
        is_held: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make it.

        Args:
            app: Its focused widget gets the keys.
            forward: Hands a key to it.
            is_held: Says whether keys wait although the screen is made.
        """
        self._app = app
        self._forward = forward
        self._is_held = is_held
        self._waiting: deque[Input] = deque()
        self._busy = False  # a key is on its way

    async def take(self, event: Input) -> None:
        """Hand a key on, at once or when those before it are done."""
        if self._busy:
            self._waiting.append(event)
        else:
            self._busy = True
            await self._hand_on(event)

    async def _hand_on(self, event: Input, waited: float = 0.0) -> None:
        leaving = isinstance(event, events.Key) and event.key in NEVER_HELD
        held = is_being_made(self._app.screen) or self._is_held()
        if held and waited < LONGEST and not leaving:
            later = partial(self._hand_on, event, waited + PAUSE)
            self._app.set_timer(PAUSE, lambda: self._after_focus(later))
            return
        target = self._app.focused or self._app.screen
        await self._forward(event)
        self._follow(target, partial(self._follow_messages, target))

    async def _follow_messages(self, target: DOMNode) -> None:
        """Go the same way again, behind what widgets told each other because of the key."""
        self._follow(target, self._done)

    def _follow(self, node: DOMNode, then: Callable[[], Awaitable[None]]) -> None:
        """Go the way of the key, behind it: from widget to widget up to the app."""
        if node is self._app or not node.call_later(self._passed, node, then):
            self._after_focus(then)

    def _passed(self, node: DOMNode, then: Callable[[], Awaitable[None]]) -> None:
        self._follow(self._app if node.parent is None else node.parent, then)

    def _after_focus(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Call something when the app has set the focus that a widget asked for until now."""
        self._app.call_later(self._app.call_later, callback)

    async def _done(self) -> None:
        if self._waiting:
            await self._hand_on(self._waiting.popleft())
        else:
            self._busy = False


def is_being_made(screen: Screen[Any]) -> bool:
    """Whether a screen has not made yet what takes its keys; one that loads it says ``is_being_made``."""
    return not screen.is_mounted or bool(getattr(screen, "is_being_made", False))
