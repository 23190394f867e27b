"""An app whose pictures reach the terminal sooner than by Textual's own ways."""

from __future__ import annotations

from time import sleep
from typing import Any

from textual import events
from textual.app import App
from textual.screen import Screen

TURN = 1e-4
"""Seconds for which Python's one lock is let go after a picture: a thread writes it."""


class PaintingApp(App[None]):
    """An app that draws only what can be seen, sends it at once, and opens screens with little ado.

    The private names of Textual that this takes, and what each saves, are listed in
    ``tests/hygiene/test_private_names.py``.
    """

    def post_display_hook(self) -> None:
        """Let the thread write the picture before anything else is done.

        It would get its turn 5 ms later else, or after what this thread does next.
        """
        if not self.is_headless:
            sleep(TURN)

    def _load_screen_css(self, screen: Screen[Any]) -> None:
        """Add a screen's stylesheet to those that are parsed already.

        Textual parses all of them anew, and styles every widget of every screen again. The
        rules of ours begin with the class of their screen, and so concern no other.
        """
        if screen.CSS or self.css_monitor is not None:
            super()._load_screen_css(screen)
            return
        for path in screen.css_path:
            if not self.stylesheet.has_source(str(path), ""):
                self.stylesheet.read(path)

    @property
    def _background_screens(self) -> list[Screen[Any]]:
        """The screens below the top one that one can see through it: none where it is opaque.

        Textual takes the one below for visible always, and draws the top one anew, whole,
        whenever something changes there: tens of milliseconds for each change in a folder.
        """
        stack = self.screen_stack
        if stack and stack[-1].styles.background.a == 1:
            return []
        return super()._background_screens

    def on_resize(self, event: events.Resize) -> None:
        """Tell the screens that are covered too: which parts they show depends on the size."""
        for screen in self.screen_stack[:-1]:
            if screen not in self._background_screens:
                screen.post_message(event)
