"""An empty Textual program: one word, painted once."""

from __future__ import annotations

from textual.app import App, ComposeResult
from textual.widgets import Static


class Empty(App[None]):
    """Shows a word."""

    def compose(self) -> ComposeResult:
        """The word."""
        yield Static("painted")


if __name__ == "__main__":
    Empty().run()
