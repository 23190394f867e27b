"""From the start of `acp` to its first picture, beside an empty Textual program."""

from __future__ import annotations

from collections.abc import Iterator

from tests.bench.bench import Bench
from tests.bench.figures import Aim, Figure, interleaved
from tests.bench.programs import EMPTY, acp, paint

FACTOR = 1.6  # times an empty program's first picture


def measure(bench: Bench) -> Iterator[Figure]:
    """The fleet, and one collaboration's screen with its newest event, at three lengths."""
    fleet = bench.path("start")
    places = {events: bench.log(fleet / f"log{events}", events) for events in bench.lengths}
    measures = {
        "empty": lambda: paint(EMPTY, "painted"),
        "fleet": lambda: paint([*acp(), str(fleet)], " acp "),
    }
    for events, place in places.items():
        command, newest = [*acp(), str(place)], f"Entry {events} "
        measures[str(events)] = lambda command=command, newest=newest: paint(command, newest)  # type: ignore[misc]
        measures[f"first {events}"] = lambda command=command: paint(command, " acp ")  # type: ignore[misc]
    found = interleaved(bench.runs, measures)
    empty = found["empty"]
    aim = Aim(f"at most {FACTOR} x an empty program's", empty.seconds * FACTOR * 1e3)

    def figure(name: str, key: str, aim: Aim | None = None) -> Figure:
        return bench.figure("start", name, found[key], "an empty Textual program", empty, aim)

    yield figure("first picture, fleet", "fleet")
    for events in bench.lengths:
        held = aim if events == 10_000 else None
        yield figure(f"first picture, {events:,} events", f"first {events}", held)
        yield figure(f"newest event shown, {events:,} events", str(events))
