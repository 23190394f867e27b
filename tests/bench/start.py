"""From the start of `acp` to its first picture, and to all panes, beside an empty Textual program."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.bench import Bench
from tests.bench.collaborations import fleet
from tests.bench.figures import Aim, Figure, interleaved
from tests.bench.programs import EMPTY, acp, paint

FACTOR, ROWS = 1.6, 1.5  # times an empty program's first picture
NEWEST = {10: 1.6, 10_000: 1.8, 100_000: 2.5}  # the same, by events
FEW = 30  # collaborations of a person's fleet


def measure(bench: Bench) -> Iterator[Figure]:
    """The fleet, and one collaboration's screen with its newest event, at three lengths."""
    base, few = bench.path("start"), bench.path("few") / "work"
    places = {events: bench.log(base / f"log{events}", events) for events in bench.lengths}
    if not few.exists():
        fleet(few, FEW)
    measures = {
        "empty": lambda: paint(EMPTY, "painted"),
        "fleet": lambda: paint([*acp(), str(base)], " acp "),
        "names": lambda: paint([*acp(), str(few)], "c00"),
        "rows": lambda: paint([*acp(), str(few)], "folder v"),
    }
    for events, place in places.items():
        command, newest = [*acp(), str(place)], f"Entry {events} "
        measures[str(events)] = lambda command=command, newest=newest: paint(command, newest)  # type: ignore[misc]
        measures[f"all {events}"] = lambda command=command: paint(command, "Findings")  # type: ignore[misc]
        measures[f"first {events}"] = lambda command=command: paint(command, " acp ")  # type: ignore[misc]
    found = interleaved(bench.runs, measures)
    empty = found["empty"]

    def figure(name: str, key: str, factor: float | None = None) -> Figure:
        limit = empty.seconds * (factor or 0) * 1e3
        aim = Aim(f"at most {factor} x an empty program's", limit) if factor else None
        return bench.figure("start", name, found[key], "an empty Textual program", empty, aim)

    yield figure("first picture, fleet", "fleet")
    yield figure(f"names of {FEW} collaborations", "names")
    yield figure(f"first rows of {FEW} collaborations", "rows", ROWS)
    for events in bench.lengths:
        held = FACTOR if events == 10_000 else None
        yield figure(f"first picture, {events:,} events", f"first {events}", held)
        yield figure(f"newest event shown, {events:,} events", str(events), NEWEST.get(events))
        yield figure(f"all panes shown, {events:,} events", f"all {events}")
