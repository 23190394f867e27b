"""What the dashboard says outside its screens: in the corner, in the title, on the clipboard."""

from __future__ import annotations

from typing import Literal

from acp_core.files.text import clean, clean_line
from acp_tui.covering import Covering
from acp_tui.terminal import Terminal

Severity = Literal["information", "warning", "error"]


class Saying(Covering):
    """An app that says things, and never as markup, whatever they hold."""

    def __init__(self) -> None:
        super().__init__()
        self.terminal = Terminal(self)

    def tell(
        self, sentence: str, severity: Severity = "information", *, timeout: float = 6
    ) -> None:
        """Say something in the corner for some seconds."""
        words = clean_line(sentence, 1000)
        self.notify(words, severity=severity, timeout=timeout, markup=False)

    def copy(self, text: str) -> None:
        """Put a text on the clipboard, by way of the terminal (OSC 52), without control characters."""
        self.copy_to_clipboard(clean(text))
        self.tell(f"Copied: {text}", timeout=3)

    def show_title(self, title: str) -> None:
        """Put a title on the terminal's window."""
        self.title = title
        self.terminal.title(title)
