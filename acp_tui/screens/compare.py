"""What became of a document between two moments: word by word, below each other or side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from acp_core.history import diff as differ
from acp_core.history.diff import Touched, touched
from acp_core.history.past import Past
from acp_core.history.versions import Known, bytes_of, describe_versions, text_of
from acp_core.model.format import count
from acp_core.model.text import clean_line
from acp_tui import keys
from acp_tui.screens.pick import PickScreen
from acp_tui.text import MUTED, Part, fit, join, width
from acp_tui.widgets.comparison import Comparison, below, compare, side_by_side
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.lines import Row, cut
from acp_tui.widgets.log_view import LogView
from acp_tui.widgets.row_list import Item
from acp_tui.widgets.wrap import wrap

if TYPE_CHECKING:
    from acp_tui.app import AcpApp

Ask = Callable[[Callable[[Past], Any]], Awaitable[Any]]
WIDE = 140
"""Columns from which on both versions stand side by side."""


class _Read(NamedTuple):
    """Both versions, what became of the old one, where, and which requests that touched."""

    old: Known | None
    new: Known | None
    comparison: Comparison
    sections: list[str]
    touched: list[Touched]
    unseen: list[str]


class CompareScreen(Screen[None]):
    """A document's two versions."""

    DEFAULT_CSS = """
    CompareScreen {
        & #about { height: auto; padding: 0 1; background: $surface; }
        &:ansi #about { background: ansi_default; }
    }
    """
    AUTO_FOCUS = "LogView"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.COMPARE]
    app: AcpApp

    def __init__(self, ask: Ask, document: str, since: int | None, until: int) -> None:
        """Make it.

        Args:
            ask: Asks the past something, in a worker thread.
            document: Its id.
            since: The place of the earlier moment; None: the version before the later one.
            until: The place of the later moment.
        """
        super().__init__()
        self._ask = ask
        self._document = document
        self._since, self._until = since, until
        self._whole = False
        self._sides: bool | None = None  # None: as the width allows
        self._rendered = False
        self._made: _Read | None = None
        self._changes: list[int] = []
        self.is_being_made = False

    def compose(self) -> ComposeResult:
        """What is compared, the lines, the keys."""
        yield Static(id="about")
        yield LogView(id="lines")
        yield KeyLine()

    def on_mount(self) -> None:
        """Read both versions."""
        self.view = self.query_one(LogView)
        self.view.follow = False
        self.view.clear("Reading both versions…")
        self._read()

    @work(group="compare", exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        document, since, until, rendered = self._document, self._since, self._until, self._rendered

        def read(past: Past) -> _Read:
            old, new = past.between(document, since, until)
            texts = text_of(old), text_of(new)
            known = past.present.document(document)
            as_markdown = rendered and known is not None and known.kind == "markdown"
            raw = differ.lines(*texts)
            return _Read(
                old, new, compare(*texts, rendered=as_markdown), differ.changed_sections(raw),
                touched(past.requests(old, new), raw),
                differ.unseen(bytes_of(old), bytes_of(new), raw),
            )  # fmt: skip

        try:
            self._made = await self._ask(read)
        except Exception as error:
            self.view.clear(clean_line(f"Could not compare the versions: {error}"))
            return
        self._draw()

    def _draw(self) -> None:
        if self._made is None:
            return
        comparison = self._made.comparison
        self.query_one("#about", Static).update(self._about(self._made))
        wide = self._is_wide()
        cells = max(40, self.size.width - 2)
        hunks = [[*comparison.diff]] if self._whole else differ.hunks(comparison.diff)
        rows: list[Row] = []
        self._changes = []
        for hunk in hunks:
            if not self._whole:
                rows.append(((f"─── line {comparison.line(hunk[0])}", "rule"),))
            made, changes = (side_by_side if wide else below)(comparison, hunk, cells)
            self._changes += [len(rows) + each for each in changes]
            rows += made
        if self._made.old is None or self._made.new is None:
            rows.insert(
                0, (("acp has no version of the document at one of the two steps.", "warning"),)
            )
        elif not differ.is_changed(comparison.diff):
            rows = [(("Nothing changed between these two steps.", "muted"),)]
            if self._made.unseen:
                rows = [((f"No word changed: {'; '.join(self._made.unseen)}.", "warning"),)]
        rows += self._requests(self._made.touched, cells)
        self.view.wrapped = self.view.follow = False
        self.view.clear("")
        self.view.extend(rows)
        self.view.scroll_to(y=0, animate=False, force=True)

    def _about(self, made: _Read) -> Content:
        """What is compared; where it changed, and how many requests that touched, in a row."""
        versions = describe_versions(made.old, made.new, self.app.utc)
        requests = (
            f"{count(len(made.touched), 'request')} touched: see the end" if made.touched else ""
        )
        room = self.size.width - 2 - width(requests)
        changed = f"changed: {', '.join(made.sections)}" if made.sections else ""
        parts: list[Part] = [
            (clean_line(self._document, 100), "bold"),
            (f"  {versions}", MUTED),
            ("\n" if changed or requests else "", ""),
            (fit(clean_line(changed, 400), max(0, room - 2)).rstrip(), "$text-accent"),
            (f"  {requests}" if changed else requests, MUTED),
        ]
        return join(*parts)

    def _requests(self, found: list[Touched], cells: int) -> list[Row]:
        """Which requests of reviews the changes seem to meet, and why; in rows of so many cells."""
        if not found:
            return []
        rows: list[Row] = [(("─── requests that the changes touch (inferred)", "rule"),)]
        for each in found:
            who = f"{each.request.participant}, event {each.request.event}: "
            asked = clean_line(f"{who}{each.request.text}", 300)
            pieces = ((asked[: len(who)], "accent"), (asked[len(who) :], ""))
            for start, end in wrap(asked, cells - 2):
                rows.append((("  ", ""), *cut(pieces, start, end)))
            reason = clean_line(each.reason, 200)
            for start, end in wrap(reason, cells - 4):
                rows.append((("    ", ""), (reason[start:end], "muted")))
        return rows

    def _is_wide(self) -> bool:
        return self.size.width >= WIDE if self._sides is None else self._sides

    def on_resize(self) -> None:
        """Side by side needs room."""
        self._draw()

    # --- keys ------------------------------------------------------------------------------

    def action_toggle_whole(self) -> None:
        """Show everything, or only what changed."""
        self._whole = not self._whole
        self._draw()

    def action_toggle_rendered(self) -> None:
        """Compare the rendered text, or the text as it stands in the file."""
        self._rendered = not self._rendered
        self._read()

    def action_toggle_sides(self) -> None:
        """Show both versions side by side, or below each other."""
        self._sides = not self._is_wide()
        self._draw()

    def action_change(self, by: int) -> None:
        """Go to the next change, or to the one before."""
        top = round(self.view.scroll_offset.y)
        ahead = [row for row in self._changes if (row - top - 1 > 0 if by > 0 else row - 1 < top)]
        if ahead:
            self.view.scroll_to(y=max(0, (ahead[0] if by > 0 else ahead[-1]) - 1), animate=False)

    def action_pick_document(self) -> None:
        """Compare another document."""
        self.is_being_made = True  # what is typed next narrows the list
        self._pick()

    @work(group="pick", exclusive=True, exit_on_error=False)
    async def _pick(self) -> None:
        try:
            names = await self._ask(lambda past: [each.id for each in past.present.documents])
            items = [Item(((name, ""),), key=name) for name in names]
            self.app.push_screen(PickScreen("Compare", items, self._document), self._picked)
        finally:
            self.is_being_made = False

    def _picked(self, document: str | None) -> None:
        if document is not None:
            self._document = document
            self._read()

    def action_back(self) -> None:
        """Go back to where one came from."""
        self.dismiss()
