"""Tabs in one row: names to click on, a mark on those that have something new."""

from __future__ import annotations

from dataclasses import dataclass

from textual import events
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from acp_tui.text import MUTED, fit, join, width

GAP = "  "
NEW = "●"
LONGEST = 28


@dataclass(frozen=True, slots=True)
class Tab:
    """A tab: ``note`` stands after its name (a number, say), ``new`` marks it."""

    id: str
    label: str
    note: str = ""
    new: bool = False

    @property
    def text(self) -> str:
        """What it shows, without the mark."""
        label = fit(self.label, LONGEST).rstrip() if width(self.label) > LONGEST else self.label
        return f"{label} {self.note}" if self.note else label

    @property
    def cells(self) -> int:
        """How wide it is."""
        return width(self.text) + (2 if self.new else 0)


class TabStrip(Widget):
    """One row of tabs; scrolls so that the active one shows."""

    DEFAULT_CSS = """
    TabStrip { height: 1; padding: 0 1; }
    """

    @dataclass
    class Chosen(Message):
        """A tab was clicked."""

        strip: TabStrip
        tab: str

        @property
        def control(self) -> TabStrip:
            return self.strip

    tabs: reactive[tuple[Tab, ...]] = reactive(())
    """What there is, from left to right."""
    active: reactive[str] = reactive("")
    """The id of the tab that always shows."""

    def render(self) -> Content:
        space = self.content_size.width
        tabs, more_before, more_after = self._visible(space)
        parts: list[Content] = []
        for tab in tabs:
            active = tab.id == self.active
            style = "bold underline $text-accent" if active else MUTED
            mark = (f" {NEW}", "$text-accent") if tab.new else ""
            parts.append(join((tab.text, style), mark))
        before = join(("‹ ", MUTED)) if more_before else Content("")
        after = join((" ›", MUTED)) if more_after else Content("")
        return Content.assemble(before, Content(GAP).join(parts), after)

    def _visible(self, space: int) -> tuple[list[Tab], bool, bool]:
        """The tabs that fit, the active one among them, and whether there are more on the sides."""
        tabs = self.tabs
        active = next((i for i, tab in enumerate(tabs) if tab.id == self.active), 0)

        def taken(start: int, stop: int) -> int:
            cells = sum(tab.cells for tab in tabs[start:stop]) + len(GAP) * (stop - start - 1)
            return cells + 2 * (start > 0) + 2 * (stop < len(tabs))

        start = 0
        while start < active and taken(start, active + 1) > space:
            start += 1
        stop = active + 1
        while stop < len(tabs) and taken(start, stop + 1) <= space:
            stop += 1
        return list(tabs[start:stop]), start > 0, stop < len(tabs)

    def tab_at(self, x: int) -> str | None:
        """The tab in column ``x``; beyond the ends the next one that does not fit."""
        tabs, more_before, more_after = self._visible(self.content_size.width)
        column = 2 if more_before else 0
        if more_before and x < column:
            return self.tabs[self.tabs.index(tabs[0]) - 1].id
        for tab in tabs:
            if column <= x < column + tab.cells:
                return tab.id
            column += tab.cells + len(GAP)
        if more_after and x >= column - len(GAP):
            return self.tabs[self.tabs.index(tabs[-1]) + 1].id
        return None

    def on_click(self, event: events.Click) -> None:
        offset = event.get_content_offset(self)
        tab = self.tab_at(offset.x) if offset is not None else None
        if tab is not None:
            event.stop()
            self.post_message(self.Chosen(self, tab))
