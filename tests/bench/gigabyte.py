"""A log of a gigabyte, of which acp reads the first 256 MiB: what `validate` and `stats` take."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from tests.bench.bench import Bench
from tests.bench.collaborations import of_decisions
from tests.bench.figures import Aim, Figure
from tests.bench.programs import BARE, Failed, acp

TIMES, LENGTH = 10, 1_080  # as many events as the longest other log has; bytes of each
AIMS = {"validate": (2_500.0, 300.0), "stats": (6_000.0, 500.0)}  # ms, MB
BESIDE = "python -c pass"
# Started by a process that is small: what one had before it runs a program counts as its own.
_PEAK = """import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def measure(bench: Bench) -> Iterator[Figure]:
    """Each figure is the median of as many runs as the bench has."""
    events = TIMES * bench.lengths[-1]
    bench.say(f"making a log of {events * LENGTH / 1e9:.2f} GB")
    folder = of_decisions(bench.path("gigabyte") / "log", events, LENGTH)
    bare: list[tuple[float, float]] = []
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in AIMS}
    for _ in range(bench.runs):
        bare.append(_run(BARE))
        for name, runs in taken.items():
            runs.append(_run([*acp(), name, str(folder)]))
    for name, runs in taken.items():
        for place, (unit, what) in enumerate((("ms", ""), ("MB", ", memory"))):
            value = statistics.median(run[place] for run in runs)
            beside = statistics.median(run[place] for run in bare)
            limit = AIMS[name][place]
            aim = Aim(f"at most {limit:,.0f} {unit}", limit)
            yield Figure("gigabyte", f"`acp {name}`{what}", unit, value, BESIDE, beside, aim)


def _run(command: Sequence[str]) -> tuple[float, float]:
    """Milliseconds, and megabytes at most.

    Raises:
        Failed: it ended otherwise than such a command does.
    """
    begun = time.perf_counter()
    ran = subprocess.run(
        [sys.executable, "-c", _PEAK, *command],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    took = time.perf_counter() - begun
    *said, peak = ran.stderr.splitlines()
    if said or ran.returncode not in (0, 2):  # 2: what is not read to its end is not valid
        raise Failed(f"{command} exited {ran.returncode}: {said}")
    return took * 1e3, int(peak) * 1024 / 1e6
