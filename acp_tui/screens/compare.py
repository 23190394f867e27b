"""What became of a document between two moments: word by word, below each other or side by side."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.widgets import Footer, Static

from acp_core import format
from acp_core.files.text import clean, clean_line
from acp_core.history import diff as differ
from acp_core.history.diff import NEW, OLD, SAME, Line
from acp_core.history.past import Past
from acp_core.history.versions import Known
from acp_tui import replay_keys
from acp_tui.screens.pick import PickScreen
from acp_tui.text import MUTED, fit, join
from acp_tui.widgets.lines import Piece, Row
from acp_tui.widgets.log_view import LogView
from acp_tui.widgets.row_list import Item

if TYPE_CHECKING:
    from acp_tui.app import AcpApp

Ask = Callable[[Callable[[Past], Any]], Awaitable[Any]]
WIDE = 140
"""Columns from which on both versions stand side by side."""
_STYLES = {SAME: "", OLD: "removed", NEW: "added"}


class CompareScreen(Screen[None]):
    """A document's two versions."""

    DEFAULT_CSS = """
    CompareScreen {
        & #about { height: auto; padding: 0 1; background: $surface; }
        &:ansi #about { background: ansi_default; }
    }
    """
    AUTO_FOCUS = "LogView"
    BINDINGS: ClassVar[list[BindingType]] = [*replay_keys.COMPARE]
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
        self._lines: list[Line] = []
        self._old: Known | None = None
        self._new: Known | None = None
        self._changes: list[int] = []

    def compose(self) -> ComposeResult:
        """What is compared, the lines, the keys."""
        yield Static(id="about")
        yield LogView(id="lines")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Read both versions."""
        self.view = self.query_one(LogView)
        self.view.follow = False
        self.view.clear("Reading both versions…")
        self._read()

    @work(group="compare", exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        document, since, until = self._document, self._since, self._until

        def read(past: Past) -> tuple[Known | None, Known | None, list[Line]]:
            old, new = past.between(document, since, until)
            return old, new, differ.lines(_text(old), _text(new))

        try:
            self._old, self._new, self._lines = await self._ask(read)
        except Exception as error:
            self.view.clear(clean_line(f"They cannot be compared: {error}"))
            return
        self._draw()

    def _draw(self) -> None:
        old, new = (_said(each, self.app.utc) for each in (self._old, self._new))
        titles = differ.sections(self._lines)
        changed = f"  changed below: {', '.join(titles)}" if titles else ""
        self.query_one("#about", Static).update(
            join(
                (clean_line(self._document, 100), "bold"),
                (f"  {old} → {new}", MUTED),
                (clean_line(changed, 400), "$text-accent"),
            )
        )
        shown = [self._lines] if self._whole else differ.hunks(self._lines)
        rows: list[Row] = []
        self._changes = []
        for hunk in shown:
            if not self._whole:
                first = hunk[0]
                rows.append(((f"─── line {first.new or first.old}", "rule"),))
            rows += (
                self._side_by_side(hunk, len(rows))
                if self._is_wide()
                else self._below(hunk, len(rows))
            )
        if self._old is None or self._new is None:
            rows.insert(0, (("What it was at one of the two moments is not known.", "warning"),))
        elif not differ.is_changed(self._lines):
            rows = [(("Nothing changed between these two moments.", "muted"),)]
        self.view.wrapped = not self._is_wide()
        self.view.follow = False
        self.view.clear("")
        self.view.extend(rows)
        self.view.follow = False
        self.view.scroll_to(y=0, animate=False, force=True)

    def _is_wide(self) -> bool:
        return self.size.width >= WIDE if self._sides is None else self._sides

    def _below(self, hunk: list[Line], first: int) -> list[Row]:
        rows: list[Row] = []
        before = SAME
        for each in hunk:
            if each.sign != SAME and before == SAME:
                self._changes.append(first + len(rows))
            before = each.sign
            number = each.new or each.old or 0
            rows.append(((f"{number:>5} {each.sign} ", "number"), *_pieces(each)))
        return rows

    def _side_by_side(self, hunk: list[Line], first: int) -> list[Row]:
        cells = max(20, (self.size.width - 3) // 2 - 7)
        rows: list[Row] = []
        pending: list[Line] = []

        def put(left: Line | None, right: Line | None) -> None:
            rows.append(
                (*_cell(left, cells, old=True), ("│ ", "rule"), *_cell(right, cells, old=False))
            )

        def flush() -> None:
            olds = [each for each in pending if each.sign == OLD]
            news = [each for each in pending if each.sign == NEW]
            if pending:
                self._changes.append(first + len(rows))
            for place in range(max(len(olds), len(news))):
                put(
                    olds[place] if place < len(olds) else None,
                    news[place] if place < len(news) else None,
                )
            pending.clear()

        for each in hunk:
            if each.sign == SAME:
                flush()
                put(each, each)
            else:
                pending.append(each)
        flush()
        return rows

    def on_resize(self) -> None:
        """Side by side needs room."""
        if self._lines:
            self._draw()

    # --- keys ------------------------------------------------------------------------------

    def action_toggle_whole(self) -> None:
        """Show everything, or only what changed."""
        self._whole = not self._whole
        self._draw()

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
        self._pick()

    @work(group="pick", exclusive=True, exit_on_error=False)
    async def _pick(self) -> None:
        names = await self._ask(lambda past: [each.id for each in past.present.documents])
        items = [Item(((name, ""),), key=name) for name in names]
        self.app.push_screen(PickScreen("Compare", items, self._document), self._picked)

    def _picked(self, document: str | None) -> None:
        if document is not None:
            self._document = document
            self._read()

    def action_back(self) -> None:
        """Go back to where one came from."""
        self.dismiss()


def _text(known: Known | None) -> str:
    if known is None or known.size is None:
        return ""
    return clean(known.read().decode(errors="replace"))


def _said(known: Known | None, utc: bool) -> str:
    if known is None:
        return "nothing known"
    at = format.exact(datetime.fromtimestamp(known.since, UTC), utc)
    return f"{at} ({known.source})"


def _pieces(each: Line) -> tuple[Piece, ...]:
    style = _STYLES[each.sign]
    whole = all(changed for _, changed in each.pieces)
    return tuple(
        (clean_line(text, len(text) + 1), f"{style} match" if changed and not whole else style)
        for text, changed in each.pieces
    )


def _cell(each: Line | None, cells: int, *, old: bool) -> tuple[Piece, ...]:
    """One side of a row, cut and filled to its width."""
    if each is None:
        return ((" " * (cells + 6), ""),)
    number = each.old if old else each.new
    pieces: list[Piece] = [(f"{number or 0:>5} ", "number")]
    left = cells
    for text, style in _pieces(each):
        if left <= 0:
            break
        shown = fit(text, left) if len(text) > left else text
        pieces.append((shown, style))
        left -= len(shown)
    pieces.append((" " * max(0, left), ""))
    return tuple(pieces)
