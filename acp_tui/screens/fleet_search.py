"""The fleet's filter, and the search inside documents that enter in it begins."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING

from textual import work
from textual.worker import get_current_worker

from acp_tui.actions.collaboration_actions import CollaborationActions

if TYPE_CHECKING:
    from textual.widgets import Input

    from acp_core.fleet.search import Hit
    from acp_tui.widgets.filter_input import FilterInput
    from acp_tui.widgets.fleet_table import FleetTable
    from acp_tui.widgets.hits import Hits

PACE = 0.2  # seconds between two pictures of what was found so far


class Searching(CollaborationActions):
    """Filters by words while they are typed; enter looks into the documents for them."""

    hits: Hits | None = None
    """What was found inside documents, where something was searched for."""
    field: FilterInput
    """The filter; both are there from `furnish` on."""
    table: FleetTable
    """The list."""

    furnished = False
    """Whether they are there."""

    def furnish(self) -> None:
        """Make the filter and the list, where they are not there yet."""
        raise NotImplementedError

    def filter_changed(self) -> None:
        """Show what matches `words`."""
        raise NotImplementedError

    @property
    def words(self) -> str:
        """What is typed in the filter."""
        return self.field.value.strip() if self.furnished else ""

    def action_filter(self) -> None:
        """Begin to filter, or go on with it."""
        self.furnish()
        self.field.display = True
        self.set_focus(self.field)  # at once: the next key may be there already

    async def action_clear(self) -> None:
        """Show everything again."""
        await self._forget()
        if self.furnished:
            self.field.value = ""
            self.field.display = False
            self.set_focus(self.table)

    def action_list(self) -> None:
        """Go from the filter to what it left."""
        (self.table if self.table.entries or self.hits is None else self.hits.list).focus()

    async def on_input_changed(self, message: Input.Changed) -> None:
        """Filter by what is typed now."""
        if message.input is self.field:
            await self._forget()
            self.filter_changed()

    async def _forget(self) -> None:
        """Other words: what was found by the ones before goes away."""
        self.workers.cancel_group(self, "search")
        if self.hits is not None:
            hits, self.hits = self.hits, None
            await hits.remove()

    async def on_input_submitted(self, message: Input.Submitted) -> None:
        """Look into the documents."""
        if message.input is self.field:
            await self._search()

    async def _search(self) -> None:
        if not self.words:
            await self.action_clear()
            return
        from acp_tui.widgets.hits import Hits

        await self._forget()
        self.hits = Hits()
        await self.mount(self.hits, after=self.query_one("#empty"))
        self.hits.show((), self.words, 0, done=False)
        self._look_inside(self.words)

    @work(thread=True, exclusive=True, group="search", exit_on_error=False)
    def _look_inside(self, words: str) -> None:
        from acp_core.fleet.search import hits, loader

        worker = get_current_worker()
        snapshots = tuple(self.app.fleet.snapshots.values())
        found: list[Hit] = []
        shown_at = monotonic()
        load = loader(self.app.fleet)
        for hit in hits(snapshots, words, load, stop=lambda: worker.is_cancelled):
            found.append(hit)
            if monotonic() - shown_at > PACE:
                shown_at = monotonic()
                self.app.call_from_thread(self._found, tuple(found), words, len(snapshots), False)
        if not worker.is_cancelled:
            self.app.call_from_thread(self._found, tuple(found), words, len(snapshots), True)

    def _found(self, found: Sequence[Hit], words: str, looked: int, done: bool) -> None:
        if self.hits is None or words != self.words:
            return
        best = sorted(found, key=lambda hit: (-hit.score, hit.name.casefold(), hit.key))
        self.hits.show(best, words, looked, done=done)
        if done and best and self.focused is self.field:
            self.hits.list.focus()

    def on_hits_opened(self, message: Hits.Opened) -> None:
        """Show the place of a hit."""
        from acp_core.model import Target

        hit = message.hit
        target = Target(document=hit.document, line=hit.line) if hit.document else None
        self.app.open_collaboration(hit.key, target)
