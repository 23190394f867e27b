"""A part of a screen with a quiet frame and a title."""

from __future__ import annotations

from textual.containers import Vertical

from acp_tui.text import line


class Pane(Vertical):
    """A frame; which one has the focus shows by its colour, and by its title's weight."""

    DEFAULT_CSS = """
    Pane {
        border: round $foreground 20%;
        border-title-color: $foreground 70%;
        padding: 0;
        &:focus-within {
            border: round $accent 70%;
            border-title-color: $text-accent;
            border-title-style: bold;
        }
        &:ansi { border: round ansi_bright_black; border-title-color: ansi_default; }
        &:ansi:focus-within { border: round $accent; border-title-color: $accent; }
    }
    """

    def entitle(self, title: str) -> None:
        """Set the title."""
        if title != self._entitled:
            self._entitled = title
            self.border_title = line(title)  # a str would be markup

    _entitled = ""
