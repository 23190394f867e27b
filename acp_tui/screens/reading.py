"""A document, or what changed in a file, over the screen: read, and go back to where one was."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from acp_core.model import Change, Preview
from acp_tui import keys
from acp_tui.actions.collaboration_actions import trouble
from acp_tui.actions.preview import preview_content
from acp_tui.widgets.document_view import DocumentView, Reading
from acp_tui.widgets.key_line import KeyLine

if TYPE_CHECKING:
    from acp_tui.app import AcpApp


class ReadingScreen(ModalScreen[None]):
    """One document at a line, or one difference."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.READING, *keys.SCROLL]
    DEFAULT_CSS = """
    ReadingScreen {
        align: center middle;
        & #reading {
            width: 96%; height: 92%; border: round $border; padding: 0 1; background: $surface;
        }
        & Static { height: auto; }
        &:ansi #reading { background: ansi_default; }
    }
    """
    app: AcpApp

    def __init__(
        self, key: str, document: str, line: int = 1, change: Change | None = None
    ) -> None:
        """Make it.

        Args:
            key: The collaboration's; "" for a difference.
            document: The document's id, or the path of what changed.
            line: Where to begin.
            change: What changed, instead of a document.
        """
        super().__init__()
        self._key = key
        self._document = document
        self._line = line
        self._change = change

    @classmethod
    def of_change(cls, change: Change) -> ReadingScreen:
        """What changed in a file."""
        return cls("", change.path, change=change)

    def compose(self) -> ComposeResult:
        """The text in a frame."""
        with Vertical(id="reading"):
            if self._change is None:
                yield DocumentView(id="reading-document")
            else:
                with VerticalScroll():
                    yield Static(preview_content(Preview("", changes=(self._change,))))
        yield KeyLine()

    def on_mount(self) -> None:
        """Load the document."""
        if self._change is None:
            self._load()

    @work(group="reading", exit_on_error=False)
    async def _load(self) -> None:
        view = self.query_one(DocumentView)
        snapshot = self.app.fleet.snapshots.get(self._key)
        known = await asyncio.to_thread(snapshot.document, self._document) if snapshot else None
        if known is None:
            self.app.tell(f"{self._document} does not exist.")
            self.dismiss()
            return
        try:
            loaded = await self.app.fleet.call(self._key, lambda opened: opened.load(known.id))
        except Exception as error:  # somebody else's protocol: reported, not raised
            self.app.tell(
                f"Could not read the document: {trouble(self.app, self._key, error)}", "error"
            )
            self.dismiss()
            return
        view.now = self.app.now()
        view.reading = Reading(known, loaded)
        if self._line > 1:
            view.go_to(self._line, raw=True)
        view.active_view.focus()

    def action_close(self) -> None:
        """Go back."""
        self.dismiss()
