"""The figures as a table, as a page of documentation, and what they were measured on."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, NamedTuple

from tests.bench.figures import Figure
from tests.support.terminal import emulator

if TYPE_CHECKING:
    from tests.bench.sections import Section

BEGIN, END = (
    "<!-- figures of {}: written by python -m tests.bench -->",
    "<!-- end of figures of {} -->",
)
WITHOUT = "pyte is not installed: the program's output stands in for the screen"


class Setting(NamedTuple):
    """What the figures were measured on, and how.

    ``load`` is the average number of processes that wanted to run in the minute before, at the
    start and at the end.
    """

    at: datetime
    command: str
    processors: int
    python: str
    textual: str
    terminal: str
    runs: int
    load: tuple[float, float]

    def told(self) -> dict[str, object]:
        """As JSON tells it."""
        return self._asdict() | {"at": self.at.isoformat(timespec="seconds")}


def setting(at: datetime, command: str, runs: int, load: tuple[float, float]) -> Setting:
    """What is measured on here."""
    try:
        textual = version("textual")
    except PackageNotFoundError:
        textual = ""
    shown = emulator() or WITHOUT
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return Setting(
        at, command, count or 1, platform.python_version(), textual, shown, runs, load
    )  # fmt: skip


def amount(value: float, unit: str) -> str:
    """A number with its unit, in a sensible number of digits."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    text = f"{value:,.{digits}f}"
    return f"{text} {unit}".rstrip()


def ratio(figure: Figure) -> str:
    """How many times the baseline, and the same of processor time where it was taken."""
    if figure.ratio is None:
        return "-"
    text = f"{figure.ratio:.1f}x"
    if figure.processor and figure.baseline_processor:
        text += f" (processor {figure.processor / figure.baseline_processor:.1f}x)"
    return text


def verdict(figure: Figure) -> str:
    """Whether the aim is met, in a word."""
    return {None: "-", True: "met", False: "not met"}[figure.met]


def aim(figure: Figure) -> str:
    """The aim, with its limit in figures where the words hold none."""
    if figure.aim is None:
        return "-"
    limit = amount(figure.aim.limit, figure.unit)
    return figure.aim.text if limit in figure.aim.text else f"{figure.aim.text}: {limit}"


def rows(figures: Sequence[Figure]) -> list[tuple[str, ...]]:
    """A row for each figure, the heading first."""
    heading = ("what", "figure", "baseline of the same run", "ratio", "aim", "")
    found = [
        (
            each.name,
            amount(each.value, each.unit),
            f"{amount(each.baseline, each.unit)}, {each.baseline_name}",
            ratio(each),
            aim(each),
            verdict(each),
        )
        for each in figures
    ]
    return [heading, *found]


def told(on: Setting) -> str:
    """One sentence on what it was measured on."""
    return (
        f"Measured {on.at:%Y-%m-%d %H:%M} UTC by `{on.command}` with {on.processors} processors, "
        f"Python {on.python}, Textual {on.textual or 'absent'}, screen by {on.terminal}; medians "
        f"of {on.runs} interleaved runs; load {on.load[0]:.1f} at the start, {on.load[1]:.1f} at "
        "the end."
    )


def table(section: Section, figures: Sequence[Figure], on: Setting) -> list[str]:
    """The lines of a section's table for the terminal."""
    found = rows(figures)
    widths = [max(len(row[column]) for row in found) for column in range(len(found[0]))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in found]
    return [f"{section.name}: {section.summary}", told(on), "", *lines, ""]


def markdown(section: Section, figures: Sequence[Figure], on: Setting) -> str:
    """One section's figures as a block of a Markdown page."""
    heading, *found = rows(figures)
    begin, end = _marks(section)
    lines = [begin, "", f"## {section.name}: {section.summary}", "", told(on), ""]
    lines += [_row(heading), _row(["---"] * len(heading)), *map(_row, found)]
    return "\n".join([*lines, "", end])


def _marks(section: Section) -> tuple[str, str]:
    return BEGIN.format(section.name), END.format(section.name)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def put_into(page: str, section: Section, block: str) -> str:
    """The page with its old block of a section replaced, or with the block at its end."""
    first, last = _marks(section)
    before, begin, rest = page.partition(first)
    _, end, after = rest.partition(last)
    if begin and end:
        return before + block + after
    return f"{page.rstrip()}\n\n{block}\n" if page.strip() else f"# Measurements\n\n{block}\n"
