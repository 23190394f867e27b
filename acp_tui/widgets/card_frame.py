"""The frame of a card: title, claim, facts, what is asked for, and the verdicts, which always show."""

from __future__ import annotations

from datetime import datetime

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.widgets import Static

from acp_core.model import Card
from acp_tui import text
from acp_tui.widgets.card_rows import (
    CardFacts,
    claim_rows,
    items_of,
    title_content,
    verdict_content,
)
from acp_tui.widgets.row_list import RowList

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
