"""What the command palette offers on a collaboration's screen: its documents, panels and panes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from acp_tui.palette import Offer, OffersProvider
from acp_tui.screens.collaboration import PANES, CollaborationScreen


class PlacesProvider(OffersProvider):
    """Where one can go on the screen."""

    def offers(self) -> Iterable[Offer]:
        """Documents and panels first, then the panes."""
        screen = self.screen
        if not isinstance(screen, CollaborationScreen):
            return
        for tab in screen.documents.all_tabs:
            yield Offer(f"Go to {tab.label}", tab.id, partial(screen.show_tab, tab.id))
        for pane in PANES:
            yield Offer(f"Pane: {pane}", "", partial(screen.action_pane, pane))
        yield Offer("Zoom this pane", "Give it the whole space", screen.action_zoom)
