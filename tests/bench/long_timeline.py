"""A log of 100,000 events: opened, scrolled, appended to, and what it takes of memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.changes import ready
from tests.bench.figures import Aim, Figure
from tests.bench.programs import EMPTY, acp, terminal, used
from tests.support.terminal import Terminal

READY, APPEND, MEMORY = 500.0, 8.0, 150.0  # ms, ms of processor, MB over an empty program's
BESIDE = "an empty Textual program"
HOME, END, PAGE_UP = "\x1b[H", "\x1b[F", "\x1b[5~"
PAGES = 20


def measure(bench: Bench) -> Iterator[Figure]:
    """Each figure is the median of as many runs as the bench has."""
    events = bench.lengths[-1]
    place = bench.log(bench.path("timeline") / "long", events)
    empty: list[dict[str, float]] = []
    taken: list[dict[str, float]] = []
    for _ in range(bench.runs):
        empty.append(_empty())
        taken.append(_one(place, bench.changes))

    def middle(of: list[dict[str, float]], name: str) -> float:
        return statistics.median(each[name] for each in of)

    def figure(name: str, unit: str, key: str, beside: float, aim: Aim | None = None) -> Figure:
        return Figure("timeline", name, unit, middle(taken, key), BESIDE, beside, aim)

    first, memory = middle(empty, "ready"), middle(empty, "memory")
    yield figure(
        f"{events:,} events, ready from start", "ms", "ready", first,
        Aim(f"at most {READY:.0f} ms more than an empty program", first + READY),
    )  # fmt: skip
    yield figure("appending and drawing one event, processor", "ms", "append",
                 middle(empty, "key"), Aim(f"at most {APPEND:.0f} ms", APPEND))  # fmt: skip
    yield figure("one page up, processor", "ms", "page", middle(empty, "key"))
    yield figure("to the first event", "ms", "home", first)
    yield figure("to the last event", "ms", "end", first)
    yield figure(
        "memory", "MB", "memory", memory,
        Aim(f"at most {MEMORY:.0f} MB more than an empty program", memory + MEMORY),
    )  # fmt: skip


def _empty() -> dict[str, float]:
    with terminal(EMPTY) as shown:
        first = shown.wait_for("painted") - shown.begun
        shown.run(0.5)
        page = _processor(shown, PAGE_UP, PAGES)
        return {"ready": first * 1e3, "key": page, "memory": used(shown.pid).memory / 1e6}


def _one(folder: Path, changes: int) -> dict[str, float]:
    with terminal([*acp(), str(folder)]) as shown:
        first = shown.wait_for("Timeline", timeout=120) - shown.begun
        writer = ready(shown, folder)
        memory = used(shown.pid).memory
        before = used(shown.pid).processor
        for _ in range(changes):
            shown.wait_for(writer.append())
            shown.run(0.1)
        append = (used(shown.pid).processor - before) / changes
        page = _processor(shown, PAGE_UP, PAGES)
        home = _key(shown, HOME, "initialized")
        end = _key(shown, END, f"tok{writer.seq}x")
    return {
        "ready": first * 1e3, "append": append * 1e3, "page": page, "home": home * 1e3,
        "end": end * 1e3, "memory": memory / 1e6,
    }  # fmt: skip


def _processor(shown: Terminal, key: str, times: int) -> float:
    """Milliseconds of processor time that a key takes."""
    before = used(shown.pid).processor
    for _ in range(times):
        shown.send(key)
        shown.run(0.06)
    return (used(shown.pid).processor - before) / times * 1e3


def _key(shown: Terminal, key: str, text: str) -> float:
    """Seconds from a key to a text on the screen."""
    import time

    begun = time.perf_counter()
    shown.send(key)
    return shown.wait_for(text) - begun
