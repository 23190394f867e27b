"""Screens that cannot be seen are not drawn."""

from __future__ import annotations

from typing import Any

from textual import events
from textual.screen import Screen

from acp_tui.drawing import Drawing


class Covering(Drawing):
    """An app that draws what is below a screen only where one can see through it.

    Textual takes the screen below the top one for visible always, and draws the top one anew,
    whole, whenever something changes there: tens of milliseconds for each change in a folder.
    """

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        stack = self._screen_stack
        if stack and stack[-1].styles.background.a == 1:
            return []
        return super()._background_screens

    def on_resize(self, event: events.Resize) -> None:
        """Tell the screens that are covered too: which parts they show depends on the size."""
        for screen in self._screen_stack[:-1]:
            if screen not in self._background_screens:
                screen.post_message(event)
