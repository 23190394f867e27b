"""From a change on disk to the changed screen, alone and in a stream of changes."""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.collaborations import Writer, numbers
from tests.bench.figures import Aim, Figure, Run, median, percentile
from tests.bench.programs import ECHO, acp, terminal, used
from tests.support.terminal import Terminal

P50, P99 = 25.0, 40.0  # ms
BESIDE = "a key to a changed empty Textual program"
SETTLE = 1.5  # s after the first picture until nothing more is loaded
IDLE = 8.0  # s after which many dashboards that were started, or ended, one after the other do nothing more
GAP = 0.25  # s between two changes
RATE, STREAM = 100, 3.0  # events in a second, for so many seconds
SLOW, LASTING = 10, 20.0  # events in a second, of several agents at work, for so many seconds
SHARE = 8.0  # % of a core that these may cost


def measure(bench: Bench) -> Iterator[Figure]:
    """p50 and p99 of one change at a time, also beside others, and of streams; short and long log."""
    for events in (bench.lengths[0], bench.lengths[-1]):
        place = bench.log(bench.path("changes") / f"log{events}", events)
        echoes: list[Run] = []
        alone: list[Run] = []
        streams: list[Run] = []
        pooled: dict[str, list[float]] = {"alone": [], "stream": [], "echo": []}
        for _ in range(bench.runs):
            for runs, name, taken in (
                (echoes, "echo", echo(bench.changes)),
                (alone, "alone", one_by_one(place, bench.changes)),
                (streams, "stream", stream(place)),
            ):
                pooled[name] += taken[0]
                runs.append(Run(statistics.median(taken[0]), taken[1]))
        beside, after = median(echoes), f"{events:,} events"
        for name, runs in ((f"one change, {after}", alone), (f"{RATE} a second, {after}", streams)):
            kind = "alone" if runs is alone else "stream"
            held = runs is alone
            aim = Aim(f"at most {P50:.0f} ms", P50) if held else None
            yield bench.figure("changes", f"{name}, p50", median(runs), BESIDE, beside, aim)
            late = Run(percentile(pooled[kind], 0.99))
            aim = Aim(f"at most {P99:.0f} ms", P99) if held else None
            worst = Run(percentile(pooled["echo"], 0.99))
            yield bench.figure("changes", f"{name}, p99", late, BESIDE, worst, aim)
        costs = [stream(place, SLOW, LASTING)[1] * SLOW * 100 for _ in range(bench.runs)]
        yield Figure(
            "changes", f"{SLOW} a second, {after}, processor", "%", statistics.median(costs),
            "one event after the other", (median(alone).processor or 0.0) * SLOW * 100,
            Aim(f"at most {SHARE:.0f} % of a core", SHARE),
        )  # fmt: skip
    yield from beside_others(bench)


def beside_others(bench: Bench) -> Iterator[Figure]:
    """One change at a time where more dashboards are open, each on a quiet collaboration."""
    place = bench.log(bench.path("changes") / "beside", bench.lengths[0])
    quiet = bench.log(bench.path("changes") / "quiet", bench.lengths[0])
    alone: list[float] = []
    beside: list[float] = []
    for _ in range(bench.runs):
        alone += one_by_one(place, bench.changes)[0]
        with contextlib.ExitStack() as others:
            for _ in range(bench.others):
                shown = others.enter_context(terminal([*acp(), str(quiet)]))
                shown.wait_for("Timeline", timeout=120)
                shown.run(SETTLE / 5)
            shown.run(IDLE)
            beside += one_by_one(place, bench.changes)[0]
        time.sleep(IDLE)
    name, one = f"one change beside {bench.others} idle dashboards", "one change without them"
    for part, value, aim in (("p50", 0.5, P50), ("p99", 0.99, P99)):
        runs = Run(percentile(beside, value)), Run(percentile(alone, value))
        yield bench.figure(
            "changes", f"{name}, {part}", runs[0], one, runs[1], Aim(f"at most {aim:.0f} ms", aim)
        )


def one_by_one(folder: Path, changes: int) -> tuple[list[float], float]:
    """Seconds from each appended event to the screen, and processor seconds for each."""
    taken = []
    with terminal([*acp(), str(folder)]) as shown:
        writer = ready(shown, folder)
        before = used(shown.pid).processor
        for number in range(changes):
            begun = time.perf_counter()
            word = writer.append()
            taken.append(shown.wait_for(word) - begun)
            shown.run(GAP + number % 7 * 0.013)  # never in step with anything
        cost = (used(shown.pid).processor - before) / changes
    return taken, cost


def ready(shown: Terminal, folder: Path) -> Writer:
    """Wait until the newest event is shown and the program has come to rest."""
    writer = Writer(folder)
    shown.wait_for("Timeline", timeout=120)
    # The first event brings the screen to the newest, wherever it stood.
    shown.wait_for(writer.append(), timeout=120)
    shown.run(SETTLE)
    return writer


def stream(folder: Path, rate: int = RATE, seconds: float = STREAM) -> tuple[list[float], float]:
    """The same for events that come ``rate`` a second; an event counts once a later one is shown."""
    written: dict[int, float] = {}
    taken = []
    with terminal([*acp(), str(folder)]) as shown:
        writer = ready(shown, folder)
        first = waited = writer.seq + 1
        before = used(shown.pid).processor

        def write() -> None:
            begun = time.perf_counter()
            for number in range(int(rate * seconds)):
                time.sleep(max(0.0, begun + number / rate - time.perf_counter()))
                now = time.perf_counter()
                writer.append()
                written[writer.seq] = now

        thread = threading.Thread(target=write)
        thread.start()
        last = first + int(rate * seconds) - 1
        end = time.monotonic() + seconds + 30
        while waited <= last and time.monotonic() < end and not shown.ended:
            if not shown.pump(0.2):
                continue
            newest = max(numbers(shown.text), default=0)
            while waited <= newest:
                if waited in written:
                    taken.append(shown.arrived - written[waited])
                waited += 1
        thread.join()
        cost = (used(shown.pid).processor - before) / len(written)
        if waited <= last:
            shown.wait_for(f"tok{last}x", timeout=1)  # says what stands there in its place
    return taken, cost


def echo(changes: int) -> tuple[list[float], float]:
    """The same for keys that a program shows which does nothing else."""
    taken = []
    with terminal(ECHO) as shown:
        shown.wait_for("painted")
        shown.run(0.3)
        before = used(shown.pid).processor
        for number in range(1, changes + 1):
            begun = time.perf_counter()
            shown.send("x")
            taken.append(shown.wait_for(f"pressed {number} times") - begun)
            shown.run(0.05 + number % 7 * 0.013)
        cost = (used(shown.pid).processor - before) / changes
    return taken, cost
