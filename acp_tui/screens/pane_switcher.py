"""Which pane of a collaboration's screen is in front, what each is called, and what takes the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.widget import Widget

from acp_tui.widgets import findings, next_actions
from acp_tui.widgets.document_view import DocumentView
from acp_tui.widgets.pane import Pane
from acp_tui.widgets.tab_strip import NEW, Tab, TabStrip

if TYPE_CHECKING:
    from acp_tui.screens.snapshot_screen import SnapshotScreen

PANES = ("timeline", "documents", "findings", "next")
LEFT = ("timeline", "findings")
"""Those in the column on the left."""


class PaneSwitcher:
    """The panes of a screen, of which a narrow terminal shows one.

    Args:
        screen: The collaboration's.
    """

    def __init__(self, screen: SnapshotScreen) -> None:
        self._screen = screen
        self.active = PANES[0]

    def entitle(self) -> None:
        """Say on the frames and tabs how much is in each pane, and what is new."""
        screen, documents = self._screen, self._screen.documents
        new = any(tab.new for tab in documents.strip.tabs)
        titles = {
            "timeline": screen.timeline.title,
            "documents": f"{documents.title} {NEW}" if new else documents.title,
            "findings": findings.title(screen.snapshot),
            "next": next_actions.title(screen.needs, screen.next.above),
        }
        for name, title in titles.items():
            pane = screen.query_one(f"#pane-{name}", Pane)
            empty = pane.has_class("-empty") and " · " not in title
            where = "at the top" if name == "next" and screen.needs else "none"
            pane.heading = f"{title} · {where}" if empty else title
        bar = screen.query_one("#pane-bar", TabStrip)
        bar.tabs = tuple(Tab(name, f"{n} {titles[name]}") for n, name in enumerate(PANES, 1))
        bar.active = self.active

    def bring_to_front(self, pane: str) -> None:
        """Show a pane where only one shows."""
        if pane != self.active:
            self.active = pane
            for name in PANES:
                self._screen.query_one(f"#pane-{name}").set_class(name == pane, "-shown")
            self._screen.query_one("#left").set_class(pane in LEFT, "-shown")
            self._screen.query_one("#right").set_class(pane not in LEFT, "-shown")
            self.entitle()

    def focus(self, pane: str) -> None:
        """Go to a pane."""
        self.bring_to_front(pane)
        self._screen.layout_of_panes.go_to(pane)
        self._focusable(pane).focus()

    def step(self, by: int) -> None:
        """Go to the pane beside."""
        self.focus(PANES[(PANES.index(self.active) + by) % len(PANES)])

    def focus_next(self, by: int) -> None:
        """Go to the next thing that takes keys: panes, and the details of an event."""
        screen = self._screen
        details = screen.timeline.details
        order = [self._focusable(pane) for pane in PANES]
        if details.display:
            order.insert(1, details)
        here = order.index(screen.focused) if screen.focused in order else 0
        there = order[(here + by) % len(order)]
        if there is details:
            self.bring_to_front("timeline")
            there.focus()
        else:
            self.focus(next(pane for pane in PANES if self._focusable(pane) is there))

    def follow_focus(self, widget: Widget) -> None:
        """A widget took the keys: bring its pane to the front."""
        pane = next((a for a in widget.ancestors_with_self if isinstance(a, Pane)), None)
        if pane is not None and pane.id is not None:
            self.bring_to_front(pane.id.removeprefix("pane-"))

    def _focusable(self, pane: str) -> Widget:
        """What takes the keys in a pane."""
        screen = self._screen
        if pane == "documents":
            active = screen.documents.active_view
            return active.active_view if isinstance(active, DocumentView) else active
        widgets: dict[str, Widget] = {
            "timeline": screen.timeline.view,
            "findings": screen.findings,
            "next": screen.next,
        }
        return widgets[pane]
