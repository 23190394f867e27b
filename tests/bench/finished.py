"""Thousands of finished collaborations beside a few live ones: the first time, and every later one."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from acp_core.files.tree_state import SETTLED
from tests.bench.bench import Bench
from tests.bench.collaborations import fleet
from tests.bench.figures import Aim, Figure
from tests.bench.programs import BARE, EMPTY, acp, terminal, used
from tests.support import finished

TIMES, LIVE = 5, 20  # as many finished ones as a fleet has; live ones
FIRST, LATER, MEMORY = 10_000.0, 2_000.0, 200.0  # ms, ms, MB
REST = 5.0  # s
BESIDE, DRAWN = "python -c pass", "an empty Textual program"


def measure(bench: Bench) -> Iterator[Figure]:
    """Medians, but for the first time of each program, which there is once in each run."""
    count = TIMES * bench.fleet
    bench.say(f"making {count:,} finished collaborations")
    base = _make(bench.path("finished"), count)
    words = [*acp(), "status", str(base)]
    bare, _ = _status(BARE)
    first: list[float] = []
    later: list[float] = []
    memory: list[float] = []
    drawn: dict[str, list[float]] = {"first": [], "later": [], "memory": []}
    for _ in range(bench.runs):
        _forget()
        first.append(_status(words)[0])
        _status(words)
        for _ in range(3):
            took, used_memory = _status(words)
            later.append(took)
            memory.append(used_memory)
        _forget()
        drawn["first"].append(_drawn(base, count)[0])
        took, used_memory = _drawn(base, count)
        drawn["later"].append(took)
        drawn["memory"].append(used_memory)
    empty, empty_memory = _shown(EMPTY, "painted")
    size = f"{count:,} finished and {LIVE} live"
    for name, unit, taken, other, baseline, aim in (
        ("`acp status`, first time", "ms", first, BESIDE, bare, FIRST),
        ("`acp status`, later", "ms", later, BESIDE, bare, LATER),
        ("`acp status`, later, memory", "MB", memory, DRAWN, empty_memory, MEMORY),
        ("dashboard with all rows, first time", "ms", drawn["first"], DRAWN, empty, FIRST),
        ("dashboard with all rows, later", "ms", drawn["later"], DRAWN, empty, LATER),
        ("dashboard, later, memory", "MB", drawn["memory"], DRAWN, empty_memory, MEMORY),
    ):
        limit = Aim(f"at most {aim:,.0f} {unit}", aim)
        yield Figure(
            "finished", f"{size}, {name}", unit, statistics.median(taken), other, baseline, limit
        )


def _make(place: Path, count: int) -> Path:
    base = place / "work"
    if not base.exists():
        pattern = finished.folder(place / "pattern")
        for number in range(count):
            shutil.copytree(pattern, base / "done" / f"d{number:04}")
        fleet(base / "live", LIVE)
        time.sleep(SETTLED)  # nothing is kept of what was written just now
    return base


def _forget() -> None:
    """As if acp had never run."""
    for name in ("ACP_CACHE", "ACP_STATE"):
        shutil.rmtree(os.environ[name], ignore_errors=True)


def _status(words: Sequence[str]) -> tuple[float, float]:
    """Milliseconds, and megabytes at most (never less than this process has)."""
    begun = time.perf_counter()
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    took = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return took * 1e3, usage.ru_maxrss * 1024 / 1e6


def _drawn(base: Path, count: int) -> tuple[float, float]:
    return _shown([*acp(), str(base)], f"{count:,} done")


def _shown(command: Sequence[str], text: str) -> tuple[float, float]:
    """Milliseconds until ``text`` is drawn, and megabytes some time later."""
    with terminal(command) as shown:
        took = shown.wait_for(text, timeout=180) - shown.begun
        shown.run(REST)
        memory = used(shown.pid).memory
        shown.send("q")  # what is to be kept is written at the latest now
        shown.run(REST)
        return took * 1e3, memory / 1e6
