"""The facts of a card as rows of a list: a section's title stands beside its first row."""

from __future__ import annotations

from acp_core.cli.signs import CHECKED
from acp_core.model import Card, Row, Target, Tone
from acp_tui.text import fit, safe_line, width
from acp_tui.widgets.row_list import Item

_STYLES = {Tone.REVISE: "error", Tone.REVIEW: "warning", Tone.BLOCKED: "error"}
GAP = 2
"""Cells between the titles and the rows."""


def items_of(card: Card) -> tuple[Item, ...]:
    """The rows of a card, each with what it points to."""
    wide = max((width(section.title) for section in card.sections), default=0)
    items = []
    for section in card.sections:
        title = section.title
        if section.columns:
            cells = "  ".join(section.columns)
            items.append(_item(title, ((cells, "muted"),), wide, Target(), f"{title} columns"))
            title = ""
        for number, row in enumerate(section.rows):
            items.append(_item(title, _pieces(row), wide, row.target, f"{section.title} {number}"))
            title = ""
    return tuple(items)


def _item(
    title: str, pieces: tuple[tuple[str, str], ...], wide: int, target: Target, key: str
) -> Item:
    hints = []
    if target.change is not None:
        hints.append(("enter: what changed", "primary"))
    elif target.document is not None:
        near = "/".join(target.document.split("/")[-2:])  # a whole path takes three rows
        hints.append((f"enter: {safe_line(near)}", "primary"))
    lead = fit(safe_line(title), wide) + " " * GAP
    return Item(((lead, "muted"), *pieces), tuple(hints), target, indent=wide + GAP + 2, key=key)


def _pieces(row: Row) -> tuple[tuple[str, str], ...]:
    """Met or not, then the cells; added lines in one colour, removed ones in another."""
    style = _STYLES.get(row.tone, "")
    pieces = []
    if row.checked is not None:
        pieces.append((f"{CHECKED[row.checked]} ", "success" if row.checked else "error"))
    for number, cell in enumerate(each for each in row.cells if each):
        pieces.append((("  " if number else "") + safe_line(cell), style))
    return tuple(pieces)
