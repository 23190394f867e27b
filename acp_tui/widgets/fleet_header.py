"""The line on top of the fleet: what is looked at, how many need somebody, and the time."""

from __future__ import annotations

from textual.content import Content
from textual.reactive import reactive
from textual.widget import Widget

from acp_tui import text

GAP = "  "
LEAST = 8  # cells of a text that has to be cut


class FleetHeader(Widget):
    """One line: view, where, counts, clock. What does not fit is left out, the counts last."""

    DEFAULT_CSS = """
    FleetHeader { height: 1; padding: 0 1; background: $panel; color: $text; }
    """

    where: reactive[str] = reactive("")
    """The paths, as a person would write them."""
    view: reactive[str] = reactive("")
    """How the fleet is listed, where that is other than usual."""
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
        first, dot, rest = self.counts.partition(" · ")
        counts = text.join(
            (first + dot[:1], "bold $text-error" if self.urgent else ""), (dot[1:] + rest, "")
        )
        clock = f"  {self.clock}"
        if counts.cell_length + text.width(clock) + len(f"acp{GAP}") > self.content_size.width:
            clock = ""
        right = text.join(counts, (clock, text.MUTED))
        space = self.content_size.width - right.cell_length - len("acp") - 2 * len(GAP)
        view = _at_most(self.view, space)
        space -= text.width(view) + len(GAP) if view else 0
        where = _at_most(self.where, space)
        note = f"({self.note})" if self.note else ""
        note = _at_most(note, space - text.width(where) - len(GAP))
        between = space - text.width(where) - text.width(note)
        return text.join(
            ("acp", "bold $text-accent"),
            GAP if view else "",
            (view, "$text-accent"),
            GAP,
            (where, text.MUTED),
            GAP if note else "",
            (note, "$text-warning"),
            " " * (between + len(GAP) - (len(GAP) if note else 0)),
            right,
        )


def _at_most(words: str, cells: int) -> str:
    """``words``, cut where they are too long, or nothing where hardly any would be left."""
    if text.width(words) <= cells:
        return words
    return text.fit(words, cells) if cells >= LEAST else ""
