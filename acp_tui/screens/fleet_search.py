"""The search inside documents that enter in the fleet's filter begins."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

if TYPE_CHECKING:
    from acp_core.fleet.search import Hit
    from acp_tui.screens.fleet import FleetScreen
    from acp_tui.widgets.hits import Hits, Results

PACE = 0.2  # seconds between two pictures of the hits so far
GROUP = "search"


class FleetSearch:
    """Looks into the documents of all collaborations, and lists the hits below the fleet.

    Args:
        screen: The fleet's.
    """

    def __init__(self, screen: FleetScreen) -> None:
        self._screen = screen
        self.hits: Hits | None = None
        """The list of hits, where something was searched for."""

    async def start(self, words: str) -> None:
        """Look for words, in place of the ones before."""
        from acp_tui.widgets.hits import Hits, Results

        await self.clear()
        self.hits = Hits()
        await self._screen.mount(self.hits, after=self._screen.query_one("#empty"))
        self.hits.results = Results(words)
        self._screen.run_worker(
            partial(self._search, words), group=GROUP, thread=True, exit_on_error=False
        )

    async def clear(self) -> None:
        """End the search, and take its hits away."""
        self._screen.workers.cancel_group(self._screen, GROUP)
        if self.hits is not None:
            hits, self.hits = self.hits, None
            await hits.remove()

    def _search(self, words: str) -> None:
        from acp_core.fleet.search import hits, loader
        from acp_tui.widgets.hits import Results

        worker, app = get_current_worker(), self._screen.app
        snapshots = tuple(app.fleet.snapshots.values())
        results: list[Hit] = []
        drawn_at = monotonic()
        for hit in hits(snapshots, words, loader(app.fleet), stop=lambda: worker.is_cancelled):
            results.append(hit)
            if monotonic() - drawn_at > PACE:
                drawn_at = monotonic()
                so_far = Results(words, tuple(results), len(snapshots))
                app.call_from_thread(self._update, so_far)
        if not worker.is_cancelled:
            app.call_from_thread(
                self._update, Results(words, tuple(results), len(snapshots), done=True)
            )

    def _update(self, results: Results) -> None:
        if self.hits is None or results.words != self._screen.words:
            return
        self.hits.results = results._replace(hits=_ranked(results.hits))
        if results.done and results.hits and self._screen.focused is self._screen.field:
            self.hits.list.focus()


def _ranked(hits: Sequence[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (-hit.score, hit.name.casefold(), hit.key))
