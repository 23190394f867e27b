"""What agents run at every turn: `append`, `next` and `validate`, beside a bare Python."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench.bench import Bench
from tests.bench.collaborations import OWNER, READER
from tests.bench.figures import Aim, Figure, Run, interleaved
from tests.bench.programs import BARE, acp, run

FACTOR, MORE = 1.5, 35.0  # times bare Python's start, and ms beside that
SHORT = {"append": 2.2, "next": 2.0}  # times bare Python's start, for 10 events
LONG = {"append": 60.0, "validate": 250.0}  # ms for 100,000 events
KEPT = 10_000  # events of a log of which acp keeps where it stands
BESIDE = "python -c pass"


def measure(bench: Bench) -> Iterator[Figure]:
    """Each command at each length."""
    for events in bench.lengths:
        folder = bench.log(bench.path("commands") / f"log{events}", events)
        words = ["--folder", str(folder)]
        asks = [*acp(), "next", *words, "--participant", READER]
        checks = [*acp(), "validate", *words]
        measured = {
            "bare": lambda: run(BARE),
            "next": lambda asks=asks: run(asks),  # type: ignore[misc]
            "validate": lambda checks=checks: run(checks),  # type: ignore[misc]
            "append": lambda folder=folder, events=events: _append(folder, events),  # type: ignore[misc]
        }
        if events >= KEPT:
            measured["append, nothing kept"] = lambda append=measured["append"]: _first(append)  # type: ignore[misc]
        found = interleaved(bench.runs, measured)
        bare = found.pop("bare")
        for name, taken in found.items():
            aim = _aim(name, events, bare)
            yield bench.figure("commands", f"{name}, {events:,} events", taken, BESIDE, bare, aim)


def _append(folder: Path, events: int) -> Run:
    """Append to the log, and take the event back, so that every run finds the same log."""
    log, protocol = folder / "events.jsonl", folder / "protocol.json"
    size, before = log.stat().st_size, protocol.read_bytes()
    words = ["append", "--folder", str(folder), "--participant", OWNER if events % 2 else READER]
    words += ["--event", "blocked", "--summary", "Measured", "--reply-to", "1"]
    try:
        return run([*acp(), *words])
    finally:
        os.truncate(log, size)
        protocol.write_bytes(before)


def _first(command: Callable[[], Run]) -> Run:
    """Run a command of which nothing was kept; it keeps where the log stands."""
    shutil.rmtree(os.path.join(os.environ["ACP_CACHE"], "logs"), ignore_errors=True)
    return command()


def _aim(command: str, events: int, bare: Run) -> Aim | None:
    beside = bare.seconds * 1e3
    if events == 10 and command in SHORT:
        factor = SHORT[command]
        return Aim(f"at most {factor} x bare Python", beside * factor)
    if events == 10_000 and command in SHORT:
        return Aim(f"at most {FACTOR} x bare Python + {MORE:.0f} ms", beside * FACTOR + MORE)
    if events == 100_000 and command in LONG:
        return Aim(f"at most {LONG[command]:.0f} ms", LONG[command])
    return None
