"""A fleet of 1,000 collaborations: opened, changed, left alone, and its memory."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.collaborations import Writer, fleet
from tests.bench.figures import Aim, Figure
from tests.bench.programs import ECHO, acp, terminal, used
from tests.support.terminal import Terminal

FIRST, ALL, CHANGE, IDLE, MEMORY = 600.0, 2_500.0, 100.0, 1.0, 250.0  # ms, ms, ms, %, MB
BESIDE = "an empty Textual program"
QUIET, PATIENCE = 3.0, 150.0  # s in which next to nothing is used, and how long that is waited for
LITTLE = 1.5  # % of a processor; until then every collaboration's past is kept for the first time
WATCHED = 10.0  # s of rest that are looked at
CHANGES = 8


def measure(bench: Bench) -> Iterator[Figure]:
    """Each figure is the median of as many runs as the bench has."""
    bench.say(f"making {bench.fleet:,} collaborations")
    base = fleet(bench.path("fleet") / "work", bench.fleet)
    empty: list[dict[str, float]] = []
    taken: list[dict[str, float]] = []
    for _ in range(bench.runs):
        empty.append(_empty())
        taken.append(_one(base, bench.fleet))
    middle = {key: statistics.median(each[key] for each in taken) for key in taken[0]}
    beside = {key: statistics.median(each[key] for each in empty) for key in empty[0]}
    size = f"{bench.fleet:,} collaborations"
    for name, unit, key, other, aim in (
        ("first screen", "ms", "first", "first", Aim(f"at most {FIRST:.0f} ms", FIRST)),
        ("all read", "ms", "all", "first", Aim(f"at most {ALL:,.0f} ms", ALL)),
        ("one change to screen", "ms", "change", "change", Aim(f"at most {CHANGE:.0f} ms", CHANGE)),
        ("processor at rest", "%", "idle", "idle", Aim(f"at most {IDLE:.0f} %", IDLE)),
        ("memory", "MB", "memory", "memory", Aim(f"at most {MEMORY:.0f} MB", MEMORY)),
    ):
        yield Figure("fleet", f"{size}, {name}", unit, middle[key], BESIDE, beside[other], aim)


def _one(base: Path, size: int) -> dict[str, float]:
    with terminal([*acp(), str(base)]) as shown:
        first = shown.wait_for("folder v", timeout=120) - shown.begun
        whole = shown.wait_for(f"{size:,} need you", timeout=180) - shown.begun
        settle(shown)
        idle = _at_rest(shown)
        memory = used(shown.pid).memory
        writers = [Writer(base / "c0003"), Writer(base / "c0004")]
        taken = []
        for number in range(CHANGES):
            writer = writers[number % 2]
            begun = time.perf_counter()
            arrived = shown.arrived
            writer.append()
            while shown.arrived == arrived and time.perf_counter() < begun + 10:
                shown.pump(0.2)
            taken.append(shown.arrived - begun)
            shown.run(0.7)
        return {
            "first": first * 1e3, "all": whole * 1e3, "idle": idle, "memory": memory / 1e6,
            "change": statistics.median(taken) * 1e3,
        }  # fmt: skip


def settle(shown: Terminal) -> None:
    """Wait until the program has done what a start brings with it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        before = used(shown.pid).processor
        shown.run(QUIET)
        if 100 * (used(shown.pid).processor - before) / QUIET < LITTLE:
            return


def _empty() -> dict[str, float]:
    with terminal(ECHO) as shown:
        first = shown.wait_for("painted") - shown.begun
        shown.run(0.5)
        begun = time.perf_counter()
        shown.send("x")
        change = shown.wait_for("pressed 1 times") - begun
        shown.run(0.5)
        idle = _at_rest(shown)
        memory = used(shown.pid).memory
        return {"first": first * 1e3, "change": change * 1e3, "idle": idle, "memory": memory / 1e6}


def _at_rest(shown: Terminal) -> float:
    """Percent of one processor that a program uses while nothing happens."""
    before, begun = used(shown.pid).processor, time.perf_counter()
    shown.run(WATCHED)
    return 100 * (used(shown.pid).processor - before) / (time.perf_counter() - begun)
