"""What is measured, as data: figures, their baselines and the aims that they are held against."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Aim(NamedTuple):
    """At most ``limit`` in the figure's unit; ``text`` says where the limit comes from."""

    text: str
    limit: float


class Figure(NamedTuple):
    """One measured number.

    Attributes:
        section: the section that measured it.
        name: what was measured.
        unit: of ``value`` and ``baseline``: "ms", "MB" (10^6 bytes), "%", "events/s" or "".
        value: the median, or the percentile that the name says.
        baseline_name, baseline: what it stands beside, measured in turn with it.
        aim: what it is held against, None where there is no aim.
        processor, baseline_processor: seconds of processor time of the same runs where they
            were taken: they tell more than times on a busy machine.
    """

    section: str
    name: str
    unit: str
    value: float
    baseline_name: str
    baseline: float
    aim: Aim | None = None
    processor: float | None = None
    baseline_processor: float | None = None

    @property
    def ratio(self) -> float | None:
        """Times the baseline; None where that is nothing."""
        return self.value / self.baseline if self.baseline else None

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None where there is none."""
        return None if self.aim is None else self.value <= self.aim.limit

    def told(self) -> dict[str, object]:
        """As JSON tells it."""
        told = self._asdict() | {"ratio": self.ratio, "met": self.met}
        told["aim"] = self.aim._asdict() if self.aim else None
        return told


class Run(NamedTuple):
    """One run of one measure: seconds of time, and of processor time where known."""

    seconds: float
    processor: float | None = None


Measure = Callable[[], Run]


def interleaved(runs: int, measures: dict[str, Measure]) -> dict[str, Run]:
    """The medians of measures that are taken in turn, after one round that does not count."""
    taken: dict[str, list[Run]] = {name: [] for name in measures}
    for number in range(runs + 1):
        for name, measure in measures.items():
            run = measure()
            if number:
                taken[name].append(run)
    return {name: median(of) for name, of in taken.items()}


def median(runs: Sequence[Run]) -> Run:
    """The median time and the median processor time."""
    used = [run.processor for run in runs if run.processor is not None]
    return Run(
        statistics.median(run.seconds for run in runs), statistics.median(used) if used else None
    )


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which ``share`` of the values lie; the largest of few."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
