"""What a protocol shows beyond the common words, in one of a few shapes."""

from __future__ import annotations

from collections.abc import Sequence

from acp_core.model import Panel, Row
from acp_core.signs import TONE
from acp_tui.text import fit, width
from acp_tui.widgets.lines import Piece
from acp_tui.widgets.row_list import Item, RowList
from acp_tui.widgets.timeline_rows import tone_style

WIDEST = 32
"""How wide a column gets at most; the last one takes what is left."""
MEASURED = 300
"""How many rows are looked at to know how wide a column must be."""
GAP = "  "


class PanelView(RowList):
    """Any panel: its rows point to events, document lines, findings and actions."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._panel: Panel | None = None

    def take(self, panel: Panel) -> None:
        """Show a panel; another one begins at its top."""
        if self._panel is not None and self._panel.id != panel.id:
            self.cursor = None
            self.scroll_home(animate=False)
        self._panel = panel
        self.show(items(panel), panel.empty or "Nothing here yet.")


def items(panel: Panel) -> list[Item]:
    """The rows of a panel in its shape; an unknown shape is a table."""
    if not panel.rows:
        return []
    match panel.shape:
        case "board":
            return _board(panel)
        case "thread":
            return [_thread(panel, row, number) for number, row in enumerate(panel.rows)]
        case _:
            return _table(panel)


def _table(panel: Panel) -> list[Item]:
    """A heading, and a line per row: also for trees, check lists and comparisons."""
    widths = _widths(panel.columns, panel.rows)
    heading = tuple(
        (fit(name, cells) + GAP, "muted")
        for name, cells in zip(panel.columns, widths, strict=False)
    )
    shown = [Item(heading, heading=True)] if any(panel.columns) else []
    for number, row in enumerate(panel.rows):
        pieces: list[Piece] = _lead(row)
        for column, text in enumerate(row.cells):
            last = column == len(row.cells) - 1
            lead = width("".join(piece for piece, _ in pieces)) if column == 0 else 0
            cells = max(4, widths[column] - lead) if column < len(widths) else WIDEST
            style = tone_style(row.tone) if column == 0 else ""
            pieces.append((text if last else fit(text, cells) + GAP, style))
        shown.append(Item(tuple(pieces), _details(panel, row), row.target, key=_key(row, number)))
    return shown


def _board(panel: Panel) -> list[Item]:
    """A heading per lane (the first cell), and its rows below, in the order of the lanes."""
    lanes: dict[str, list[tuple[int, Row]]] = {}
    for number, row in enumerate(panel.rows):
        lanes.setdefault(row.cells[0] if row.cells else "", []).append((number, row))
    shown = []
    for lane, rows in lanes.items():
        shown.append(Item(((lane, "strong"), (f"  {len(rows)}", "muted")), heading=True))
        for number, row in rows:
            pieces = [*_lead(row), (GAP.join(row.cells[1:]) or lane, tone_style(row.tone))]
            shown.append(
                Item(tuple(pieces), _details(panel, row), row.target, key=_key(row, number))
            )
    return shown


def _thread(panel: Panel, row: Row, number: int) -> Item:
    """Who said what: the first cell stands out, the last is what was said."""
    who, *rest = row.cells or ("",)
    pieces = [*_lead(row), (who + GAP, "strong"), (GAP.join(rest), tone_style(row.tone))]
    return Item(tuple(pieces), _details(panel, row), row.target, key=_key(row, number))


def _lead(row: Row) -> list[Piece]:
    """What stands before the first cell: indentation, a box, or a sign."""
    lead: list[Piece] = [("  " * min(row.depth, 20), "")]
    if row.checked is not None:
        lead.append(("[x] ", "success") if row.checked else ("[ ] ", ""))
    elif tone_style(row.tone) != "muted":
        lead.append((f"{TONE[row.tone]} ", tone_style(row.tone)))
    return lead


def _details(panel: Panel, row: Row) -> tuple[Piece, ...]:
    """All cells in full with the names of their columns, and where the row points to."""
    details: list[Piece] = []
    for number, text in enumerate(row.cells):
        name = panel.columns[number] if number < len(panel.columns) else ""
        if text and (len(row.cells) > 1 or width(text) > WIDEST):
            details.append((f"{name}: {text}" if name else text, "muted"))
    target = row.target
    if target.document:
        line = f":{target.line}" if target.line else ""
        details.append((f"→ {target.document}{line}", "primary"))
    elif target.event:
        details.append((f"→ event {target.event}", "primary"))
    elif target.action:
        details.append((f"→ {target.action}", "accent"))
    return tuple(details)


def _widths(columns: Sequence[str], rows: Sequence[Row]) -> list[int]:
    """How wide each column must be for what is in it."""
    number = max(len(columns), max((len(row.cells) for row in rows[:MEASURED]), default=0))
    widths = [0] * number
    for column, name in enumerate(columns):
        widths[column] = width(name)
    for row in rows[:MEASURED]:
        for column, text in enumerate(row.cells):
            lead = sum(width(piece) for piece, _ in _lead(row)) if column == 0 else 0
            widths[column] = max(widths[column], width(text) + lead)
    return [min(cells, WIDEST) for cells in widths]


def _key(row: Row, number: int) -> str:
    target = row.target
    where = target.event or target.document or target.action
    return f"{where} {target.line} {row.cells[:1]}" if where else f"{number}"
