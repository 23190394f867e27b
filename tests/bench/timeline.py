"""What the timeline costs with many events: ``python -m tests.bench.timeline [EVENTS]``.

The widget alone, in a terminal of 120 x 40 that nobody sees; events are built when they are
asked for, as the protocols do. Processor times are medians and include the drawing.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

import psutil
from textual.app import App, ComposeResult

from acp_tui.widgets.timeline import Timeline
from acp_tui.widgets.timeline_model import parse
from tests.tui.support import NOW, ManyEvents

ACTORS = ("server", "reader", "reviewer")


class Alone(App[None]):
    """A timeline and nothing else."""

    def compose(self) -> ComposeResult:
        yield Timeline(id="timeline")


async def processor(times: int, act: Callable[[int], object]) -> float:
    """Milliseconds of processor time that acting and drawing takes, the median."""
    costs = []
    for number in range(times):
        begun = time.process_time()
        made = act(number)
        if isinstance(made, Awaitable):
            await made
        await asyncio.sleep(0.03)
        costs.append(time.process_time() - begun)
    return statistics.median(costs) * 1e3


async def wait_while(holds: Callable[[], bool]) -> tuple[float, float]:
    """Seconds until something no longer holds, and the longest time the loop stood still."""
    begun, longest = time.perf_counter(), 0.0
    while holds():
        step = time.perf_counter()
        await asyncio.sleep(0.001)
        longest = max(longest, time.perf_counter() - step)
    return time.perf_counter() - begun, longest


async def measure(events: int) -> None:
    """Print the figures."""
    app = Alone()
    async with app.run_test(size=(120, 40)) as pilot:
        pane = app.query_one(Timeline)
        await pilot.pause()
        memory = psutil.Process().memory_info().rss
        begun = time.perf_counter()
        pane.update_events(ManyEvents(events), ACTORS, NOW)
        await pilot.pause()
        print(f"ready             {(time.perf_counter() - begun) * 1e3:7.1f} ms")
        grown = psutil.Process().memory_info().rss - memory
        print(f"memory            {grown / 1e6:7.1f} MB beside the events")

        cost = await processor(
            50, lambda n: pane.update_events(ManyEvents(events + n + 1), ACTORS, NOW)
        )
        print(f"append            {cost:7.1f} ms of processor")
        pane.view.focus()
        await pilot.pause()
        for what, key in (("one up", "up"), ("page up", "pageup"), ("to the start", "home")):
            cost = await processor(20, lambda _, key=key: pilot.press(key))  # type: ignore[misc]
            print(f"{what:17} {cost:7.1f} ms of processor")

        pane.search(f"Step {events // 2} of")
        took, longest = await wait_while(lambda: bool(pane._search and not pane._search.complete))
        print(
            f"search            {took * 1e3:7.1f} ms, loop held up {longest * 1e3:.0f} ms at most"
        )
        pane.filter(parse("from:reader"))
        took, longest = await wait_while(lambda: pane._filtering)
        print(
            f"filter            {took * 1e3:7.1f} ms, loop held up {longest * 1e3:.0f} ms at most"
        )


if __name__ == "__main__":
    asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
