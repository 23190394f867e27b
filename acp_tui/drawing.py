"""Pictures that reach the terminal sooner than by Textual's own ways."""

from __future__ import annotations

from time import sleep
from typing import Any

from textual.app import App
from textual.screen import Screen

TURN = 1e-4
"""Seconds for which Python's one lock is let go after a picture: a thread writes it."""


class Drawing(App[None]):
    """An app of which the pictures go out at once, and whose screens open with little ado."""

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
