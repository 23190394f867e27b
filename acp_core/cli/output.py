"""What commands print: to a terminal with its width and colours, or to a file or a pipe; text in columns.

Text that is printed is made safe here once more: arguments, paths and messages of
exceptions never were part of a Snapshot. Tables and paragraphs that wrap count cells of the terminal, not
characters (a Chinese sign takes two cells, a combining accent none).
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size

from acp_core.model import ActionSpec, Snapshot
from acp_core.model.text import clean, clean_line

STYLES = {
    "head": "1",
    "dim": "2",
    "need": "1;33",
    "good": "32",
    "warning": "33",
    "error": "31",
    "live": "36",
}
SHORT = 60  # characters of an input up to which a list names it
_COLOURS = re.compile(rf"(\x1b\[(?:0|{'|'.join(STYLES.values())})m)")

# What JSON would leave as it is although a terminal, or a reader's eye, may obey it.
_UNSAFE = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where text goes: ``width`` in cells (None: as wide as it needs), and whether in colour."""

    width: int | None = None
    colour: bool = False

    def paint(self, text: str, style: str) -> str:
        """``text`` in a style of `STYLES`, or as it is."""
        if not (self.colour and style and text):
            return text
        return f"\x1b[{STYLES[style]}m{text}\x1b[0m"


def terminal() -> Terminal:
    """What the standard output is. A file or a pipe has no colours, and no width unless
    ``COLUMNS`` says one; ``NO_COLOR`` (not empty) and ``TERM=dumb`` turn colours off.
    """
    shown = sys.stdout.isatty()
    colour = shown and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    columns = os.environ.get("COLUMNS", "")
    if shown or columns.isdecimal():
        return Terminal(shutil.get_terminal_size((80, 24)).columns, colour)
    return Terminal(None, colour)


def say(text: str = "", *, now: bool = False) -> None:
    """Print text, made safe but for the colours of `Terminal.paint`.

    Args:
        text: One line or several.
        now: Do not keep it back until there is more: somebody is waiting for it.
    """
    if "\x1b" in text:  # every second piece is one of our own sequences
        pieces = _COLOURS.split(text)
        pieces[::2] = map(clean, pieces[::2])
        text = "".join(pieces)
    else:
        text = clean(text)
    print(text, flush=now)


def warn(text: str) -> None:
    """Say on the standard error what did not go as it should."""
    print(f"warning: {clean(text)}", file=sys.stderr)


def complain(text: str) -> None:
    """Say on the standard error what is wrong, where the command goes on with what is not."""
    print(f"error: {clean(text)}", file=sys.stderr)


def typed(snapshot: Snapshot) -> str:
    """The shortest way to name the collaboration's folder from here, safe to show."""
    near = os.path.relpath(snapshot.key) if os.path.isabs(snapshot.key) else snapshot.key
    return clean_line(min(near, snapshot.key, key=len), limit=4096)


def act_command(
    snapshot: Snapshot,
    action: str,
    given: Iterable[tuple[str, str]] = (),
    longest: int = 8192,
) -> str:
    """The command that does an action of a collaboration, with its inputs, ready to be typed.

    Inputs that are longer than ``longest`` are left out: the action has a default for them. What a
    person must choose stands in it in capitals, see `to_choose`.
    """
    words = ["acp", "act", typed(snapshot), action]
    for name, value in _taken(snapshot, action, given):
        if len(value) > longest:
            continue
        flag = f"--{name.replace('_', '-')}"
        words += [flag] if value == "true" else [flag, value]
    for name, placeholder in to_choose(snapshot, action, given).items():
        words += [f"--{name.replace('_', '-')}", placeholder]
    return clean_line(" ".join(shlex.quote(word) for word in words), limit=8192)


def to_choose(
    snapshot: Snapshot, action: str, given: Iterable[tuple[str, str]] = ()
) -> dict[str, str]:
    """The inputs that a person must choose before an action can be done, and what stands for them."""
    from acp_core.protocols.kit import command  # late: only who prints such commands needs it

    spec = _act(snapshot, action)
    if spec is None:
        return {}
    left = command.unsaid(spec, (name for name, _ in given))
    return {each.name: command.placeholder(each) for each in left}


def choice_hint(snapshot: Snapshot, action: str, given: Iterable[tuple[str, str]] = ()) -> str:
    """What a person must choose before `act_command` can be run; "" where it is complete."""
    left = to_choose(snapshot, action, given).values()
    return f"you choose {' and '.join(left)}: add --help to see what is possible" if left else ""


def _taken(
    snapshot: Snapshot, action: str, given: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Those inputs that `acp act` takes: what only an act's own command takes, it knows itself."""
    spec = _act(snapshot, action)
    unasked = {each.name for each in spec.fields if not each.form} if spec else set()
    return tuple((name, value) for name, value in given if name not in unasked)


def asked_words(snapshot: Snapshot, action: str, names: Iterable[str]) -> list[str]:
    """The options of inputs that a person must fill in, each with what stands for its value."""
    from acp_core.model.action_field import Kind
    from acp_core.protocols.kit import command

    spec = _act(snapshot, action)
    fields = {each.name: each for each in spec.fields} if spec else {}
    words: list[str] = []
    for name in names:
        field = fields.get(name)
        words.append(f"--{name.replace('_', '-')}")
        if field is None:
            words.append("TEXT")
        elif field.kind is not Kind.FLAG:
            words.append(command.placeholder(field))
    return words


def fitting(
    snapshot: Snapshot, action: str, given: Iterable[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Those inputs of one action that are chosen for another one, too."""
    from acp_core.model.action_field import Kind

    spec = _act(snapshot, action)
    choices = (
        (each for each in spec.fields if Kind.CHOICE in (each.kind, each.items)) if spec else ()
    )
    names = {each.name for each in choices}
    return tuple((name, value) for name, value in given if name in names)


def _act(snapshot: Snapshot, action: str) -> ActionSpec | None:
    """The description of an act by its name: of the protocol, or about loops."""
    from acp_core.loops.acts import table  # late, as above
    from acp_core.protocols.kit import command as kit_command

    own = kit_command.act(snapshot.protocol, action)
    return own or next((each for each in table.ACTS if each.name == action), None)


def dump(value: object, *, indent: int | None = 2) -> str:
    """JSON that keeps every script readable and is harmless on a terminal.

    Strings stay exact: what is unsafe to show is written as ``\\uXXXX``.
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _UNSAFE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text)


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
