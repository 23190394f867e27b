"""A document over the screen, and what became of one between two moments: word by word.

A rendered version is laid out with every paragraph on one line, compared like any text, and cut
to the width only then: so a changed word does not make the rest of its paragraph look changed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from acp_core.history.past import Past
from acp_core.history.versions import (
    NEW,
    OLD,
    SAME,
    Known,
    Line,
    Touched,
    bytes_of,
    changed_sections,
    compare_lines,
    describe_versions,
    hunks,
    is_changed,
    touched,
    unseen,
)
from acp_core.history.versions import text_of as version_text
from acp_core.model import Change, Preview
from acp_core.model.format import count
from acp_core.model.text import clean_line
from acp_tui import keys
from acp_tui.actions.forms import preview_content
from acp_tui.actions.offered import trouble
from acp_tui.screens.choosing import PickScreen
from acp_tui.text import MUTED, Part, fit, join, width
from acp_tui.widgets.document_view import RENDERED_UP_TO, DocumentView, Reading
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.lines import Row, cut, mark, text_of, wrap
from acp_tui.widgets.log_view import LogView
from acp_tui.widgets.markdown import MarkdownPage, TooDeep, parse
from acp_tui.widgets.row_list import Item

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
            texts = version_text(old), version_text(new)
            known = past.present.document(document)
            as_markdown = rendered and known is not None and known.kind == "markdown"
            raw = compare_lines(*texts)
            return _Read(
                old, new, compare(*texts, rendered=as_markdown), changed_sections(raw),
                touched(past.requests(old, new), raw),
                unseen(bytes_of(old), bytes_of(new), raw),
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
        shown = [[*comparison.diff]] if self._whole else hunks(comparison.diff)
        rows: list[Row] = []
        self._changes = []
        for hunk in shown:
            if not self._whole:
                rows.append(((f"─── line {comparison.line(hunk[0])}", "rule"),))
            made, changes = (side_by_side if wide else below)(comparison, hunk, cells)
            self._changes += [len(rows) + each for each in changes]
            rows += made
        if self._made.old is None or self._made.new is None:
            rows.insert(
                0, (("acp has no version of the document at one of the two steps.", "warning"),)
            )
        elif not is_changed(comparison.diff):
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


_ENDLESS = 100_000  # cells of a rendered line: no paragraph is cut

_RULE = 40  # cells of a rule

_STYLES = {SAME: "", OLD: "removed", NEW: "added"}

_NUMBER = 6  # cells of a line's number, with the blank behind it


@dataclass(frozen=True, slots=True)
class Version:
    """One version: its rows in their styles, and the file's line in which each begins."""

    rows: tuple[Row, ...]
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both versions, and what became of the rows of the old one."""

    old: Version
    new: Version
    diff: tuple[Line, ...]

    def line(self, line: Line) -> int:
        """In which line of its file a row begins; 0 where it is not known."""
        side, place = (self.new, line.new) if line.new else (self.old, line.old)
        return side.lines[place - 1] if place else 0


def compare(old: str, new: str, *, rendered: bool) -> Comparison:
    """Compare two texts; slow for long ones: for a thread.

    Args:
        old, new: safe to show, with "\\n" as their only line end.
        rendered: As Markdown; what cannot be rendered is compared as it stands.
    """
    both = (_rendered(old), _rendered(new)) if rendered else (None, None)
    first, second = both if both[0] and both[1] else (_raw(old), _raw(new))
    assert first is not None and second is not None
    texts = ["\n".join(text_of(row) for row in side.rows) for side in (first, second)]
    return Comparison(first, second, tuple(compare_lines(*texts)))


def _raw(text: str) -> Version:
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    rows = tuple(((clean_line(line, len(line) + 1), ""),) for line in lines)
    return Version(rows, tuple(range(1, len(rows) + 1)))


def _rendered(text: str) -> Version | None:
    if len(text) > RENDERED_UP_TO:
        return None
    try:
        page = MarkdownPage(parse(text), _ENDLESS)
    except TooDeep:
        return None
    rows = [page.row(y) for y in range(page.rows)]
    return Version(
        tuple(_short(row) for row in rows), tuple(page.lines(y)[0] for y in range(page.rows))
    )


def _short(row: Row) -> Row:
    """A rule is as wide as the page; a few cells of it say the same."""
    text = text_of(row)
    return cut(row, 0, _RULE) if len(text) > _RULE and not text.strip("─━ ") else row


def below(comparison: Comparison, hunk: Sequence[Line], cells: int) -> tuple[list[Row], list[int]]:
    """Rows below each other, and those of them at which a change begins."""
    rows: list[Row] = []
    changes: list[int] = []
    before = SAME
    for line in hunk:
        if line.sign != SAME and before == SAME:
            changes.append(len(rows))
        before = line.sign
        side = comparison.old if line.sign == OLD else comparison.new
        lead = f"{_number(side, line, old=line.sign == OLD)}{line.sign} "
        for part, row in enumerate(_cut(_styled(side, line), cells - len(lead))):
            rows.append(((lead if not part else " " * len(lead), "number"), *row))
    return rows, changes


def side_by_side(
    comparison: Comparison, hunk: Sequence[Line], cells: int
) -> tuple[list[Row], list[int]]:
    """Rows side by side, and those of them at which a change begins."""
    room = max(20, (cells - 3) // 2 - _NUMBER)
    rows: list[Row] = []
    changes: list[int] = []
    olds: list[Line] = []
    news: list[Line] = []

    def put(left: Line | None, right: Line | None) -> None:
        one = _column(comparison.old, left, room, old=True)
        two = _column(comparison.new, right, room, old=False)
        for place in range(max(len(one), len(two))):
            rows.append((*_filled(one, place, room), ("│ ", "rule"), *_filled(two, place, room)))

    def flush() -> None:
        if olds or news:
            changes.append(len(rows))
        for place in range(max(len(olds), len(news))):
            put(olds[place] if place < len(olds) else None,
                news[place] if place < len(news) else None)  # fmt: skip
        olds.clear()
        news.clear()

    for line in hunk:
        if line.sign == SAME:
            flush()
            put(line, line)
        else:
            (olds if line.sign == OLD else news).append(line)
    flush()
    return rows, changes


def _column(side: Version, line: Line | None, room: int, *, old: bool) -> list[Row]:
    if line is None:
        return []
    number = _number(side, line, old=old)
    styled = _styled(side, line, old=old)
    return [
        ((number if not part else " " * _NUMBER, "number"), *row)
        for part, row in enumerate(_cut(styled, room))
    ]


def _filled(rows: Sequence[Row], place: int, room: int) -> Row:
    row = rows[place] if place < len(rows) else ()
    left = room + _NUMBER - width(text_of(row))
    return (*row, (" " * max(0, left), ""))


def _number(side: Version, line: Line, *, old: bool) -> str:
    place = (line.old if old else line.new) or 0
    at = side.lines[place - 1] if place else 0
    return f"{at or '':>{_NUMBER - 1}} "


def _styled(side: Version, line: Line, *, old: bool = False) -> Row:
    """The row of a line, with what changed in it marked."""
    place = (line.old if old or line.sign == OLD else line.new) or 0
    row = side.rows[place - 1] if place else ()
    if line.sign == SAME:
        return row
    style = _STYLES[line.sign]
    whole = all(changed for _, changed in line.pieces)
    spans, at = [], 0
    for text, changed in line.pieces:
        if changed and not whole:
            spans.append((at, at + len(text)))
        at += len(text)
    return mark(mark(row, [(0, at)], style), spans, "match")


def _cut(row: Row, cells: int) -> list[Row]:
    return [cut(row, start, end) for start, end in wrap(text_of(row), max(8, cells))]
