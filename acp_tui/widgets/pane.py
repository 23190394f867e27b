"""A part of a screen with a quiet frame and a title."""

from __future__ import annotations

from typing import Self

from textual.containers import Vertical
from textual.geometry import Region
from textual.reactive import var

from acp_tui.text import line


class Pane(Vertical):
    """A frame; which one has the focus shows by its colour, and by its title's weight."""

    DEFAULT_CSS = """
    Pane {
        border: round $foreground 20%;
        border-title-color: $text-muted;
        padding: 0;
        &:focus-within {
            border: round $accent 70%;
            border-title-color: $text-accent;
            border-title-style: bold;
        }
        &.-empty { border: blank; border-top: round $foreground 20%; border-bottom: none; }
        &.-empty:focus-within { border: blank; border-top: round $accent 70%; border-bottom: none; }
        &:ansi { border: round ansi_bright_black; border-title-color: ansi_default; }
        &:ansi:focus-within { border: round $accent; border-title-color: $accent; }
        &.-empty:ansi { border: blank; border-top: round ansi_bright_black; border-bottom: none; }
        &.-empty:ansi:focus-within { border: blank; border-top: round $accent; border-bottom: none; }
    }
    """

    heading: var[str] = var("", init=False)
    """What stands in the frame."""

    def watch_heading(self, heading: str) -> None:
        """Set the title."""
        self._only_title = True
        self.border_title = line(heading)  # a str would be markup
        self._only_title = False

    def refresh(
        self,
        *regions: Region,
        repaint: bool = True,
        layout: bool = False,
        recompose: bool = False,
    ) -> Self:
        """Draw again: for another title the line in which it stands, not both sides of each line."""
        if self._only_title and self.styles.border_top[0]:
            regions = (Region(-1, -1, self.outer_size.width, 1),)  # from where the content begins
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    _only_title = False
