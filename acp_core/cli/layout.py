"""Text in columns: tables, and paragraphs that wrap. Counts cells of the terminal, not
characters (a Chinese sign takes two cells, a combining accent none).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from acp_core.cli.output import Terminal
from acp_core.model.text import clean, clean_line

GAP = "  "
NARROWEST = 2  # cells of a column, however narrow the terminal is


class Cell(NamedTuple):
    """One cell of a table: one line of text, in a style of `output.STYLES`."""

    text: str
    style: str = ""


class Column(NamedTuple):
    """A column, which is good with ``least`` cells. Where that is too wide, columns are left
    out, those with the highest ``drop`` first (0: never); then all get narrower still.
    A column of ``names`` shortens its texts as `fit_name` does.
    """

    title: str
    least: int = 4
    drop: int = 0
    right: bool = False
    names: bool = False


def width(text: str) -> int:
    """How many cells ``text`` takes."""
    return len(text) if text.isascii() else cell_len(text)


def fit(text: str, cells: int, *, right: bool = False) -> str:
    """``text`` in exactly ``cells`` cells: padded, or cut with "…"."""
    space = cells - width(text)
    if space < 0:
        text = set_cell_size(text, max(0, cells - 1)).rstrip() + "…"
        space = cells - width(text)
    return " " * space + text if right else text + " " * space


PLACE = " · "
"""Between a collaboration's name and the folder that tells it from others of that name."""
_LEAST_NAME = 4  # cells that a name keeps beside its folder


def fit_name(name: str, cells: int) -> str:
    """A collaboration's name in exactly ``cells`` cells.

    A name that is too long is cut in its middle. Where a folder follows the name, the folder is
    kept whole as long as a few letters of the name fit beside it.
    """
    first, dot, folder = name.rpartition(PLACE)
    if dot and width(name) > cells > _LEAST_NAME + width(dot):
        space = cells - width(dot)
        folder = _cut_middle(folder, max(space - width(first), space - _LEAST_NAME))
        name = f"{_cut_middle(first, space - width(folder))}{dot}{folder}"
    return fit(_cut_middle(name, cells), cells) if cells > 0 else ""


def _cut_middle(text: str, cells: int) -> str:
    if width(text) <= cells or cells < 3:
        return text
    end = (cells - 1) // 2
    last = len(text)
    while last and width(text[last - 1 :]) <= end:
        last -= 1
    while last < len(text) and not width(text[last]):  # marks that belong to the letter before
        last += 1
    return f"{set_cell_size(text, cells - 1 - end).rstrip()}…{text[last:].lstrip()}"


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], terminal: Terminal
) -> list[str]:
    """The lines of a table, its titles first; as wide as the terminal at most."""
    rows = [[cell._replace(text=_one_line(cell.text)) for cell in row] for row in rows]
    natural = [
        max([width(column.title), *(width(row[i].text) for row in rows)])
        for i, column in enumerate(columns)
    ]
    shown = _fitting_columns(columns, natural, terminal.width)
    widths = _shrunk([columns[i] for i in shown], [natural[i] for i in shown], terminal.width)
    titles = [Cell(column.title, "dim") for column in columns]
    lines = []
    for row in (titles, *rows):
        parts = [
            terminal.paint(_fit_cell(row[i].text, cells, columns[i]), row[i].style)
            for i, cells in zip(shown, widths, strict=True)
        ]
        lines.append(GAP.join(parts).rstrip(" "))
    return lines


def _fit_cell(text: str, cells: int, column: Column) -> str:
    return fit_name(text, cells) if column.names else fit(text, cells, right=column.right)


def _one_line(text: str) -> str:
    return text if text.isprintable() else clean_line(text, len(text) + 1)


def wrap(text: str, terminal: Terminal, *, indent: str = "", first: str | None = None) -> list[str]:
    """Text, made safe, as lines that fit, each behind ``indent`` (the first one behind ``first``).

    Line feeds are kept; words are broken only where one is wider than a line.
    """
    start = indent if first is None else first
    lines: list[str] = []
    for paragraph in clean(text).expandtabs(4).split("\n"):
        pieces = [paragraph]
        if terminal.width is not None:
            pieces = _wrapped(paragraph, max(10, terminal.width - width(indent)))
        for piece in pieces:
            lines.append(((indent if lines else start) + piece).rstrip(" "))
    return lines


def _wrapped(paragraph: str, cells: int) -> list[str]:
    if width(paragraph) <= cells:
        return [paragraph]
    lines = [""]
    for word in _words(paragraph, cells):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if width(joined) <= cells:
            lines[-1] = joined
        else:
            lines.append(word)
    return lines


def _words(paragraph: str, cells: int) -> Iterable[str]:
    for word in paragraph.split(" "):
        yield from chop_cells(word, cells) if width(word) > cells else [word]


def _fitting_columns(
    columns: Sequence[Column], natural: Sequence[int], limit: int | None
) -> list[int]:
    """The columns that fit when all are as narrow as they can be."""
    shown = list(range(len(columns)))
    while limit is not None:
        least = sum(min(natural[i], columns[i].least) for i in shown) + len(GAP) * (len(shown) - 1)
        last = max(shown, key=lambda i: columns[i].drop)
        if least <= limit or columns[last].drop == 0:
            break
        shown.remove(last)
    return shown


def _shrunk(columns: Sequence[Column], natural: Sequence[int], limit: int | None) -> list[int]:
    """Widths that fit: the widest column gives way first, down to what each is good with."""
    widths = list(natural)
    if limit is None:
        return widths
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - limit
    for floors in ([column.least for column in columns], [NARROWEST] * len(columns)):
        while excess > 0:
            able = [i for i, floor in enumerate(floors) if widths[i] > floor]
            if not able:
                break
            widths[max(able, key=lambda i: widths[i])] -= 1
            excess -= 1
    return widths
