"""What a person wants of the document that is shown: edit it, go to a heading, follow a link."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from acp_core.model import Document, DocumentText
from acp_tui.screens.link import LinkScreen, is_web
from acp_tui.screens.pick import PickScreen
from acp_tui.terminal.editor import EditorProblem, edit
from acp_tui.widgets.row_list import Item

if TYPE_CHECKING:
    from acp_tui.screens.snapshot_screen import SnapshotScreen


class DocumentRequests:
    """Does it; whatever leaves the terminal is asked before.

    Args:
        screen: The collaboration's.
    """

    def __init__(self, screen: SnapshotScreen) -> None:
        self._screen = screen

    def edit(self, document: Document, line: int) -> None:
        """Open a document in the person's editor, at a line; then read it again."""
        app = self._screen.app
        if document.path is None:
            return
        try:
            edit(app, Path(document.path), line, app.settings.editor)
        except EditorProblem as problem:
            app.tell(str(problem), "error")
        app.fleet.touch(self._screen.key)

    def pick_heading(self, text: DocumentText) -> None:
        """Let the person choose a heading to go to."""
        items = [
            Item(
                (
                    ("  " * (heading.level - 1), ""),
                    (heading.title, ""),
                    (f"  line {heading.line}", "muted"),
                ),
                key=str(heading.line),
            )
            for heading in text.headings
        ]
        here = self._screen.documents.document_view.view.current_line
        above = [h.line for h in text.headings if h.line <= here]
        selected = str(above[-1]) if above else ""
        self._screen.app.push_screen(PickScreen("Contents", items, selected), self._picked)

    def _picked(self, line: str | None) -> None:
        if line is not None:
            self._screen.documents.document_view.go_to(int(line))

    def follow(self, address: str) -> None:
        """Ask before a link leaves the terminal; follow one inside of the collaboration."""
        app = self._screen.app
        if is_web(address):
            app.push_screen(LinkScreen(address), lambda yes: app.open_url(address) if yes else None)
            return
        inside = self._document_at(address)
        if inside is None:
            app.tell(f"Not followed: {address}", "warning")
        else:
            self._screen.documents.open(inside.id)

    def _document_at(self, address: str) -> Document | None:
        """The document that a relative link of the shown one leads to."""
        try:
            parts = urlsplit(address)
        except ValueError:
            return None
        here, snapshot = self._screen.documents.document_view.document, self._screen.snapshot
        if parts.scheme or parts.netloc or not parts.path or here is None or snapshot is None:
            return None
        if here.path is None:
            return snapshot.document(unquote(parts.path))
        wanted = os.path.normpath(os.path.join(os.path.dirname(here.path), unquote(parts.path)))
        paths = ((d, d.path) for d in snapshot.documents)
        return next((d for d, path in paths if path and os.path.normpath(path) == wanted), None)
