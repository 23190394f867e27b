"""A campaign: many cases of one kind of fault, as many as there is time for, and what failed.

The tests carry out a short part of each; ``python -m tests.faults`` carries out all of it.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from acp_core.files import locked
from acp_core.protocols.folder.read.facts import Facts


class Case(NamedTuple):
    """One fault. ``run`` raises where the product does not stand it, and cleans up after itself."""

    label: str
    run: Callable[[], None]


@dataclass(frozen=True)
class Campaign:
    """One kind of fault.

    Attributes:
        name: one word.
        what: what is done, in a few words.
        cases: makes the cases in a folder of its own, from a seed; without an end where they are
            made at random.
    """

    name: str
    what: str
    cases: Callable[[Path, int], Iterator[Case]]


@dataclass
class Result:
    """What became of a campaign.

    ``ended``: its cases came to an end before anything else ended it, which ``until`` names.
    """

    name: str
    seed: int
    count: int = 0
    seconds: float = 0.0
    ended: bool = False
    until: str = "as many as were asked for"
    failures: list[str] = field(default_factory=list)


def carry_out(
    campaign: Campaign,
    place: Path,
    seed: int = 0,
    *,
    seconds: float | None = None,
    start: int = 0,
    step: int = 1,
    most: int | None = None,
) -> Result:
    """Run cases of a campaign, one after the other.

    Args:
        campaign: which one.
        place: a folder for it, which is made.
        seed: what its chances depend on.
        seconds: no case is begun after this time; None: without a limit.
        start: the first case that is run, from 0.
        step: only every so many-th case is run.
        most: at most so many cases are run.
    """
    place.mkdir(parents=True)
    result = Result(campaign.name, seed)
    begun = time.monotonic()
    chosen = islice(campaign.cases(place, seed), start, None, step)
    with impatient():
        for case in islice(chosen, most):
            try:
                case.run()
            except Exception as error:
                result.failures.append(f"{case.label}: {_told(error)}")
            result.count += 1
            if seconds is not None and time.monotonic() - begun > seconds:
                result.until = "until its time was up"
                break
        else:
            result.ended = most is None or result.count < most
    result.seconds = time.monotonic() - begun
    return result


def mixed(cases: Iterable[Case], seed: int) -> Iterator[Case]:
    """In an order of chance, so that a part of them is a part of each kind."""
    shuffled = list(cases)
    Random(seed).shuffle(shuffled)
    yield from shuffled


@contextmanager
def impatient() -> Iterator[None]:
    """Files that are torn are not waited for: nobody is writing them."""
    defaults = Facts.__init__.__kwdefaults__
    assert defaults
    kept = defaults["grace"], locked.QUIET
    defaults["grace"], locked.QUIET = 0.0, 0.0
    try:
        yield
    finally:
        defaults["grace"], locked.QUIET = kept


def _told(error: Exception) -> str:
    """An error in a line: what, and where in the product or the tests it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    what = str(error) or (frames[-1].line if frames else "")  # an assertion may have no words
    return f"{type(error).__name__} at {where}: {(what or '')[:2_000]}"
