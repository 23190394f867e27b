"""The line on top of the fleet: what is looked at, how many need somebody, and the time."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from acp_tui import text


class FleetHeader(Widget):
    """One line: where, the counts, the clock. What does not fit is left out, the counts last."""

    DEFAULT_CSS = """
    FleetHeader { height: 1; padding: 0 1; background: $panel; color: $text; }
    """

    where: reactive[str] = reactive("")
    """The paths, as a person would write them."""
    note: reactive[str] = reactive("")
    """How the files are looked at, where that is out of the ordinary."""
    counts: reactive[str] = reactive("")
    """How many need somebody, are live, are done."""
    urgent: reactive[bool] = reactive(False)
    """Whether any needs somebody."""
    clock: reactive[str] = reactive("")
    """The time."""

    def render(self) -> Content:
        """Draw it in the width there is."""
        space = self.content_size.width
        name, counts, clock = "acp", self.counts, self.clock
        left = space - len(name) - text.width(counts) - text.width(clock) - 6
        where = self.where if text.width(self.where) <= left else text.fit(self.where, left)
        left -= text.width(where) + 2
        note = f"({self.note})" if self.note else ""
        note = note if text.width(note) <= left else text.fit(note, left) if left > 8 else ""
        gap = max(1, left - text.width(note) + 2)
        first, dot, rest = counts.partition(" · ")
        return text.join(
            (name, "bold $text-accent"),
            "  ",
            (where, text.MUTED),
            "  " if note else "",
            (note, "$text-warning"),
            " " * (gap if note else gap + 2),
            (first + dot[:1], "bold $text-error" if self.urgent else ""),
            (dot[1:] + rest, ""),
            "  ",
            (clock, text.MUTED),
        )
