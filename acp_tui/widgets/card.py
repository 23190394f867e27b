"""A card: title, claim, facts, what is asked for, and the verdicts, which always show.

The facts are rows of a list, a section's title beside its first row.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from acp_core.cli.signs import of_row
from acp_core.model import Card, Row, Target, Tone
from acp_core.model.card import CardVerdict
from acp_core.model.format import age
from acp_tui import text
from acp_tui.text import MUTED, fit, join, line, safe_line, width
from acp_tui.widgets.lines import wrap
from acp_tui.widgets.row_list import Item, RowList

_STYLES = {Tone.REVISE: "error", Tone.REVIEW: "warning", Tone.BLOCKED: "error"}

_WHOLE = ("create", "script")  # of these the whole text is shown, not a difference

GAP = 2

"""Cells between the titles and the rows."""

_GAP = "   "  # between verdicts


class CardFacts(RowList):
    """The rows of a card; the key that opens one is offered where there is something to open."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether the selected row leads to a document or to a difference."""
        if action != "choose":
            return super().check_action(action, parameters)
        if self.selected is None:
            return False
        target = self.selected.target
        return target.change is not None or target.document is not None

    def select(self, index: int | None) -> None:
        """Select a row, and offer what can be done with it."""
        super().select(index)
        self.refresh_bindings()


def title_content(card: Card, now: datetime, room: int) -> Content:
    """Who asks for what and how long it waits: in one row of so many cells, or in two."""
    waits = f"waiting for you {age(card.since, now)}" if card.since else ""
    title = line(card.title, "bold $text-accent")
    gap = room - width(title.plain) - width(waits)
    between = (" " * gap if gap >= 2 else "\n") if waits else ""
    return join(title, between, (waits, MUTED))


def claim_rows(card: Card, room: int) -> int:
    """How many rows of so many cells the claim takes."""
    return sum(len(wrap(safe_line(each), room)) for each in f"“{card.claim}”".splitlines())


def items_of(card: Card, claim: int = 0) -> tuple[Item, ...]:
    """The rows of a card, each with what it points to.

    Args:
        card: The card.
        claim: Cells of a row of the claim, where it is too long to stay above them: it scrolls with them,
            row by row.
    """
    whole = {each.path for each in card.changes if each.verb in _WHOLE}
    wide = max((width(section.title) for section in card.sections), default=0)
    items = []
    lines = [safe_line(each) for each in card.claim.splitlines()] if claim else []
    parts = (each[start:end] for each in lines for start, end in wrap(each, claim))
    for number, each in enumerate(parts):
        items.append(_item("", ((each, ""),), 0, Target(), f"claim {number}"))
    for section in card.sections:
        title = section.title
        if section.columns:
            cells = "  ".join(section.columns)
            items.append(_item(title, ((cells, "muted"),), wide, Target(), f"{title} columns"))
            title = ""
        lead = max(map(width, section.leads), default=0)
        signed = any(map(of_row, section.rows))
        for number, row in enumerate(section.rows):
            pieces = _pieces(row, lead, signed)
            item = _item(title, pieces, wide, row.target, f"{section.title} {number}", whole)
            items.append(item)
            title = ""
    return tuple(items)


def _item(
    title: str,
    pieces: tuple[tuple[str, str], ...],
    wide: int,
    target: Target,
    key: str,
    whole: Collection[str] = (),
) -> Item:
    hints = []
    if target.change is not None:
        hints.append(
            ("enter: open" if target.change in whole else "enter: what changed", "primary")
        )
    elif target.document is not None:
        near = safe_line("/".join(target.document.split("/")[-2:]))  # a whole path takes three rows
        is_said = any(near in text for text, _ in pieces)
        hints.append(("enter: open" if is_said else f"enter: {near}", "primary"))
    lead = fit(safe_line(title), wide) + " " * GAP
    return Item(((lead, "muted"), *pieces), tuple(hints), target, indent=wide + GAP + 2, key=key)


def _pieces(row: Row, lead: int, signed: bool) -> tuple[tuple[str, str], ...]:
    """The row's sign, then the cells, the first of several as wide as ``lead``.

    A row without a sign leaves the room of one where others of its section are ``signed``.
    """
    style = _STYLES.get(row.tone, "")
    pieces = []
    if signed:
        checked = {None: style, True: "success", False: "error"}
        pieces.append((f"{of_row(row) or ' '} ", checked[row.checked]))
    cells = [safe_line(each) for each in row.cells if each]
    if len(cells) > 1 and lead:
        cells[0] += " " * (lead - width(cells[0]))
    for number, cell in enumerate(cells):
        pieces.append((("  " if number else "") + cell, style))
    return tuple(pieces)


def verdict_content(verdicts: Sequence[CardVerdict], chosen: int, room: int) -> Content:
    """The verdicts with their numbers: in one row, or else in as many columns as fit.

    Args:
        verdicts: Those of the card.
        chosen: The one in hand, from 0.
        room: How many cells a line has.
    """
    parts = []
    for number, each in enumerate(verdicts):
        style = "bold reverse" if number == chosen else "bold"
        sign = (f" {number + 1} ", f"{style} $text-accent")
        parts.append(join(sign, (f" {each.label}", "bold")))
    wide = sum(each.cell_length for each in parts) + len(_GAP) * (len(parts) - 1)
    if wide <= room:
        return Content(_GAP).join(parts)
    widest = max(each.cell_length for each in parts)
    rows = -(-len(parts) // max(1, (room + len(_GAP)) // (widest + len(_GAP))))
    columns = -(-len(parts) // rows)  # no more than these rows need
    padded = [
        part if (place + 1) % columns == 0 else part.pad_right(widest - part.cell_length)
        for place, part in enumerate(parts)
    ]
    lines = (padded[first : first + columns] for first in range(0, len(parts), columns))
    return Content("\n").join(Content(_GAP).join(each) for each in lines)


CLAIM_ROWS, NARROW_CLAIM_ROWS = 6, 3

"""Rows of a claim that stays above the facts; a longer one scrolls with them."""

_EDGE = 6  # cells of a row of the facts that its sign, the gap and the scroll bar take

_SCROLLING = ("card-facts", "card-writes", "card-inputs")


class CardFrame(Vertical):
    """Draws a card, and gives what scrolls the rows that all else leaves."""

    def compose(self) -> ComposeResult:
        """The matter, the writes, the inputs of the verdict, the verdicts."""
        yield Static(id="card-title")
        yield Static(id="card-claim")
        yield CardFacts(id="card-facts", wrapped=True)
        with VerticalScroll(id="card-writes"):
            yield Static(id="card-changes")
        yield VerticalScroll(id="card-inputs", can_focus=False)
        yield Static(id="card-verdicts")
        yield Static(id="card-why")

    def draw_title(self, card: Card, now: datetime) -> None:
        """Draw who asks for what, and how long it waits."""
        self.query_one("#card-title", Static).update(title_content(card, now, self._room))

    def draw_facts(self, card: Card) -> None:
        """Draw the claim above the facts, or, where it is long, among what scrolls."""
        most = NARROW_CLAIM_ROWS if self._is_narrow else CLAIM_ROWS
        is_long = claim_rows(card, self._room) > most
        claim = text.plain(f"“{card.claim}”", "italic")
        self.query_one("#card-claim", Static).update(claim)
        self.screen.set_class(not card.claim or is_long, "-unclaimed")
        self.screen.set_class(not card.sections and not is_long, "-bare")
        self.query_one(RowList).items = items_of(card, self._room - _EDGE if is_long else 0)

    def draw_verdicts(self, card: Card, chosen: int) -> None:
        """Draw the verdicts; the one in hand, counted from 0, stands out."""
        shown = verdict_content(card.verdicts, chosen, self._room)
        self.query_one("#card-verdicts", Static).update(shown)

    def fit(self, height: int) -> None:
        """Let what scrolls take what the title, the claim and the verdicts leave of the height."""
        scrolling = [each for each in self.children if each.id in _SCROLLING]
        fixed = sum(
            each.outer_size.height + each.styles.margin.height
            for each in self.children
            if each.display and each not in scrolling
        )
        shown = [each for each in scrolling if each.display]
        blank = sum(each.styles.margin.height for each in shown)
        room = height - self.gutter.height - fixed - blank
        for each in shown:
            rows = room // len(shown) if each.id != "card-inputs" else room - room // len(shown)
            each.styles.max_height = max(3, rows)

    @property
    def _is_narrow(self) -> bool:
        return self.screen.has_class("-narrow")

    @property
    def _room(self) -> int:
        """Cells of a row of the card."""
        share = 1.0 if self._is_narrow else 0.96
        return min(int(self.screen.size.width * share), 120) - self.gutter.width
