"""What every section of the measurements is given: where to write, how often to measure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.bench import collaborations
from tests.bench.figures import Aim, Figure, Run


class Bench:
    """One run of the measurements.

    Args:
        base: a folder of its own.
        runs: how often each figure is taken; medians are told.
        changes: how many changes are waited for in each run.
        lengths: numbers of events.
        fleet: how many collaborations a fleet has.
        others: how many dashboards stand idle beside the one that is measured.
        say: takes a line about what is done now.
    """

    def __init__(
        self,
        base: Path,
        *,
        runs: int = 5,
        changes: int = 20,
        lengths: tuple[int, ...] = (10, 10_000, 100_000),
        fleet: int = 1_000,
        others: int = 19,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._base = base
        self.runs = runs
        self.changes = changes
        self.lengths = lengths
        self.fleet = fleet
        self.others = others
        self.say = say

    def path(self, name: str) -> Path:
        """A folder for one section."""
        place = self._base / name
        place.mkdir(parents=True, exist_ok=True)
        return place

    def log(self, folder: Path, events: int) -> Path:
        """A collaboration of so many events in that folder, made where it is not there yet."""
        if not folder.exists():
            self.say(f"making a collaboration of {events:,} events")
            collaborations.of_length(folder, events)
        return folder

    @staticmethod
    def figure(
        section: str, name: str, run: Run, beside: str, baseline: Run, aim: Aim | None = None
    ) -> Figure:
        """A figure of two runs, in milliseconds."""
        return Figure(
            section, name, "ms", run.seconds * 1e3, beside, baseline.seconds * 1e3, aim,
            run.processor, baseline.processor,
        )  # fmt: skip
