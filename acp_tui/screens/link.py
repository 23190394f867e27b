"""Asking before an address of a document is opened: its text may lie about where it goes."""

from __future__ import annotations

from typing import ClassVar
from urllib.parse import urlsplit

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from acp_tui import keys
from acp_tui.text import MUTED, join, plain, safe_line
from acp_tui.widgets.key_line import KeyLine

SCHEMES = ("http", "https")


def is_web(address: str) -> bool:
    """Whether an address is one of the web, and nothing else that a desktop would open."""
    try:
        parts = urlsplit(address)
        return parts.scheme.lower() in SCHEMES and bool(parts.hostname)
    except ValueError:
        return False


class LinkScreen(ModalScreen[bool]):
    """Shows the whole address; gives whether it should be opened."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.LINK]

    DEFAULT_CSS = """
    LinkScreen {
        align: center middle;
        & #link {
            width: 80; max-width: 90%; height: auto; max-height: 80%;
            border: round $accent; padding: 1 2; background: $surface;
        }
        & Static { height: auto; }
        &:ansi #link { background: ansi_default; }
    }
    """

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address

    def compose(self) -> ComposeResult:
        """The address, where it goes, the keys."""
        host = urlsplit(self._address).hostname or ""
        with Vertical(id="link"):
            yield Static(
                join(
                    ("Open this address in the browser?", "bold"),
                    "\n\n",
                    plain(self._address, "$text-primary"),
                    "\n\n",
                    ("It goes to ", MUTED),
                    (safe_line(host), "bold"),
                )
            )
        yield KeyLine()

    def action_open(self) -> None:
        """Open it."""
        self.dismiss(True)

    def action_copy(self) -> None:
        """Copy it, and leave it."""
        self.app.copy_to_clipboard(safe_line(self._address))
        self.dismiss(False)

    def action_close(self) -> None:
        """Leave it."""
        self.dismiss(False)
