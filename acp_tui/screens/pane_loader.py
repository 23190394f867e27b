"""Gets what the panes of a collaboration ask for and is slow to get, in workers of its screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from acp_core.model import Document, Event, Need, Snapshot
from acp_core.model.text import clean
from acp_tui.actions.collaboration_actions import offered
from acp_tui.actions.labels import Labels
from acp_tui.screens.collaboration_source import Source
from acp_tui.widgets import event_details
from acp_tui.widgets.documents import PEOPLE
from acp_tui.widgets.pane_data import PaneData

if TYPE_CHECKING:
    from textual.timer import Timer

    from acp_tui.screens.snapshot_screen import SnapshotScreen


SOON = 0.3
"""Seconds until loops are looked at after a change: not while what changed is drawn."""


class PaneLoader:
    """Hands each pane what it asked for, when it is there.

    Args:
        screen: The collaboration's.
        source: Where texts come from: the present, or a moment of the past.
    """

    def __init__(self, screen: SnapshotScreen, source: Source) -> None:
        self._screen = screen
        self._source = source
        self._labels = Labels(screen.app, self._relabel)
        self._askers: dict[str, str] = {}  # by action: the collaboration whose need it helps
        self._loops_soon: Timer | None = None

    def load_text(self, document: Document) -> None:
        """Get a document's text for the pane of documents."""
        self._start(partial(self._load_text, document), "load")

    async def _load_text(self, document: Document) -> None:
        text = await self._source.text(document)
        if text is not None:
            self._screen.documents.loaded(text)

    def load_source(self, event: Event) -> None:
        """Get an event as its source holds it for the event's details."""
        self._start(partial(self._load_source, event), "source", exclusive=True)

    async def _load_source(self, event: Event) -> None:
        source = await self._source.event(event)
        details = self._screen.query_one(event_details.EventDetails)
        details.source = event_details.Source(event.id, source)

    def load_loops(self) -> None:
        """Get the loops of the participants for the pane of documents."""
        if self._loops_soon is not None:
            self._loops_soon.stop()
            self._loops_soon = None
        self._start(self._load_loops, "loops", exclusive=True)

    def load_loops_soon(self) -> None:
        """As `load_loops`, in a moment, while they show: once for all that happens until then."""
        if self._loops_soon is None and self._screen.documents.active == PEOPLE:
            self._loops_soon = self._screen.set_timer(SOON, self.load_loops)

    async def _load_loops(self) -> None:
        self._screen.documents.loops = await self._source.loops()

    def load_labels(self) -> None:
        """Get what the causes' remedies are called, and which can be done now."""
        self._start(self._load_labels, "labels", exclusive=True)

    async def _load_labels(self) -> None:
        try:
            actions = await offered(self._screen.app, self._screen.key)
        except Exception:  # somebody else's protocol, or it is gone: their names do
            return
        self._screen.documents.labels = {action.name: action.label for action in actions}

    def label(self, action: str) -> str:
        """What an action is called; the words of its name until that is known."""
        return self._labels.of(self._askers.get(action, self._screen.key), action)

    def want_labels(self, data: PaneData, asked: Sequence[tuple[Snapshot, Need]] = ()) -> None:
        """See to it that it is known what the actions of needs and findings are called.

        Args:
            data: What the panes show.
            asked: Its needs, each with the collaboration (itself, or a part) whose it is.
        """
        wanted = {need.action: whose for whose, need in asked if need.action}
        self._askers = {name: whose.key for name, whose in wanted.items()}
        names = [need.action for need in data.needs]
        names += [finding.action for finding in data.snapshot.findings]
        wanted = {name: data.snapshot for name in names if name} | wanted
        self._labels.want_soon((whose, name) for name, whose in wanted.items())

    def _relabel(self) -> None:
        """It is known now what actions are called."""
        screen = self._screen
        for pane in (screen.headline, screen.findings, screen.next, screen.documents.panel):
            pane.called = self.label

    def copy_event(self, event: Event) -> None:
        """Copy an event as JSON."""
        self._start(partial(self._copy_event, event), "copy")

    async def _copy_event(self, event: Event) -> None:
        self.copy(await self._source.event(event), f"event {event.order} as JSON")

    def copy(self, text: str, what: str) -> None:
        """Put a text on the clipboard, and say ``what`` it was."""
        self._screen.app.copy_to_clipboard(clean(text))
        self._screen.app.tell(f"Copied {what}.", timeout=3)

    def _start(
        self, work: Callable[[], Awaitable[None]], group: str, *, exclusive: bool = False
    ) -> None:
        self._screen.run_worker(work, group=group, exclusive=exclusive, exit_on_error=False)
