"""Two installed copies of acp measured in turn: this one, and another that is named by its path."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.bench import sections
from tests.bench.bench import Bench
from tests.bench.page import amount
from tests.bench.programs import ACP, Failed, as_people_run_it, measured
from tests.bench.sections import Section

Maker = Callable[[Path], Bench]
"""Makes what a section is measured with, in a folder of its own."""


class Pair(NamedTuple):
    """One figure of both copies, in the order in which it was taken.

    Attributes:
        name: what was measured, in ``unit``.
        this, other: the values of this copy and of the other one, a round each.
    """

    name: str
    unit: str
    this: tuple[float, ...]
    other: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float]:
        """Of this copy, and of the other one."""
        return statistics.median(self.this), statistics.median(self.other)

    @property
    def ratio(self) -> float | None:
        """How many times the other copy's; None where that is nothing."""
        this, other = self.medians
        return this / other if other else None

    @property
    def spread(self) -> float | None:
        """The other copy's largest value, times its smallest; None where that is nothing."""
        return max(self.other) / min(self.other) if min(self.other) > 0 else None

    def as_json(self) -> dict[str, object]:
        """Values, medians, ratio and spread."""
        this, other = self.medians
        return self._asdict() | {
            "median": this, "median_other": other, "ratio": self.ratio, "spread": self.spread,
        }  # fmt: skip


def compare(section: Section, other: str, rounds: int, base: Path, make: Maker) -> list[Pair]:
    """Measure a section with both copies, round by round; who begins changes with each round.

    Args:
        section: what is measured.
        other: the path of the other copy's ``acp``.
        rounds: how often.
        base: a folder in which each copy has its own state and collaborations.
        make: a `Bench` of one run.

    Raises:
        Failed: one of them does not do what is measured.
        NotShown: likewise, on its screen.
    """
    programs: dict[str, Sequence[str]] = {"this": ACP, "other": (other,)}
    taken: dict[str, dict[str, list[float]]] = {name: {} for name in programs}
    units: dict[str, str] = {}
    for number in range(rounds):
        for name in sorted(programs, reverse=number % 2 == 0):
            place = base / f"{section.name}-{name}-{number}"
            with as_people_run_it(str(place / "own")), measured(programs[name]):
                for what, unit, value in _once(section, programs[name], place, make):
                    units[what] = unit
                    taken[name].setdefault(what, []).append(value)
    this, that = taken["this"], taken["other"]
    return [Pair(n, units[n], tuple(this[n]), tuple(that[n])) for n in this if n in that]


def _once(
    section: Section, program: Sequence[str], place: Path, make: Maker
) -> Iterable[tuple[str, str, float]]:
    """The figures of one round: what, unit, value."""
    place.mkdir(parents=True)
    bench = make(place)
    if section.imports and tuple(program) != ACP:
        return _by_itself(section, program, place, quick=len(bench.lengths) < 3)
    return [(each.name, each.unit, each.value) for each in sections.measure(bench, section)]


def _by_itself(
    section: Section, program: Sequence[str], place: Path, quick: bool
) -> Iterable[tuple[str, str, float]]:
    """What the other copy measures of itself: nobody else can import its functions.

    It works in ``place``: where this checkout is the working folder, ``python -m`` would import it.
    """
    words = [
        *program,
        "bench",
        section.name,
        "--json",
        *(["--quick"] if quick else ["--runs", "1"]),
    ]
    ended = subprocess.run(words, cwd=place, capture_output=True, text=True, check=False)
    if ended.returncode:
        said = ended.stderr.strip().rpartition("\n")[2]
        raise Failed(f"{' '.join(words)} exited {ended.returncode}: {said}")
    found: list[dict[str, Any]] = json.loads(ended.stdout)["sections"][0]["figures"]
    return [(str(each["name"]), str(each["unit"]), float(each["value"])) for each in found]


def table(section: Section, pairs: Sequence[Pair], other: str) -> list[str]:
    """The lines of a section's table: medians of both, their ratio, the other one's spread."""
    rows = [("what", "this copy", other, "ratio", "spread of the other")]
    for pair in pairs:
        this, that = (amount(value, pair.unit) for value in pair.medians)
        rows.append((pair.name, this, that, _times(pair.ratio), _times(pair.spread)))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows]
    return [f"{section.name}: {section.summary}", "", *lines, ""]


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"
