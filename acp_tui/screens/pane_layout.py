"""How much room each pane of a collaboration's screen gets: as much as it holds.

Two columns: timeline and findings, documents and next. Findings and next are as high as their
rows, timeline and documents take the rest; the timeline is as wide as its summaries, as far as
the documents stay readable. An empty pane is the line of its title.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from acp_tui.widgets.pane import Pane

if TYPE_CHECKING:
    from textual.timer import Timer

    from acp_tui.screens.snapshot_screen import SnapshotScreen

NARROW = 100
"""With fewer columns one pane shows at a time."""
FRAME = 2
SCROLL_BAR = 1
STEP = 6
"""By how many columns the timeline grows: it must not move with each event."""
SPARE, DETAILS = 1, 8
"""Rows beside those that a pane holds; in the one that was gone to, for all about its selected row."""
LEAST = 3
"""Rows that a pane of findings or next has at least, where it is not empty."""
EVENT = 2
"""Rows that an event of the timeline takes, with a summary that goes on in the next row."""
MANY = 1_000
"""Events that leave no row of the timeline to other panes."""
AROUND = 7
"""Rows of the screen that are no panes: sentence, needs, phases, keys."""
CALM = 2.0
"""Seconds without a change after which a pane gives back the rows that it no longer needs."""


class Sizes(NamedTuple):
    """Cells and rows with frames; a height of 1 is the title alone."""

    timeline: int
    findings: int
    next: int

    def grown(self, before: Sizes) -> Sizes:
        """Each as large as it is now or was before."""
        return Sizes(*map(max, self, before))


def sizes(
    columns: int,
    rows: int,
    needed: int,
    findings: Callable[[int], int],
    next: Callable[[int], int],
    front: str = "",
    events: int = MANY,
) -> Sizes:
    """The sizes of the panes, of which documents get what is left.

    Args:
        columns: Of the screen.
        rows: Of the screen.
        needed: The cells that the timeline's rows need to show all of their summaries.
        findings: How many rows the findings take in so many cells.
        next: The same of what comes next.
        front: The pane that the person went to.
        events: How many the timeline shows; what few of them leave is there for findings.
    """
    least, most = columns * 2 // 5, columns * 11 // 20
    wanted = -(-(needed + FRAME + SCROLL_BAR) // STEP) * STEP
    timeline = max(least, min(wanted, most))
    share = max(LEAST, (rows - AROUND) * 2 // 5 - FRAME)
    left = rows - AROUND - 2 * FRAME - EVENT * events - DETAILS

    def height(pane: str, held: int, most: int) -> int:
        spare = DETAILS if pane == front else SPARE
        return FRAME + min(max(LEAST, held + spare), most) if held else 1

    return Sizes(
        timeline,
        height("findings", findings(timeline - FRAME - SCROLL_BAR), max(share, left)),
        height("next", next(columns - timeline - FRAME - SCROLL_BAR), share),
    )


class PaneLayout:
    """Gives the panes of a screen their sizes, and again where what they hold needs others.

    Args:
        screen: The collaboration's.
    """

    def __init__(self, screen: SnapshotScreen) -> None:
        self._screen = screen
        self._sizes: Sizes | None = None
        self._size = (0, 0)
        self._front = ""
        self._shrinking: Timer | None = None

    def go_to(self, pane: str) -> None:
        """Give the pane that a person goes to by its key room for all about its selected row.

        By the mouse nothing moves: the second click of two must hit the same row.
        """
        if pane != self._front:
            self._front = pane
            if self._sizes is not None:
                self.fit(calm=True)

    def fit(self, *, calm: bool = False) -> None:
        """Size the panes by what they hold now.

        The timeline only grows while one looks. Findings and next grow at once, and shrink when
        nothing has changed for a while: panes must not move, nor be drawn again, with every event.

        Args:
            calm: Let them shrink now.
        """
        screen = self._screen
        columns, rows = size = screen.app.size
        screen.timeline.view.wrapped = columns >= NARROW
        if columns < NARROW or screen.has_class("-zoom"):
            self._apply(None)
            return
        needed = screen.timeline.view.needed_width
        held = screen.findings.rows_in, screen.next.rows_in
        events = screen.timeline.view.model.length
        wanted = sizes(columns, rows, needed, *held, self._front, events)
        if self._shrinking is not None:
            self._shrinking.stop()
            self._shrinking = None
        if self._sizes is not None and self._size == size:
            grown = wanted.grown(self._sizes)
            if calm:
                wanted = wanted._replace(timeline=grown.timeline)
            else:
                if grown._replace(timeline=wanted.timeline) != wanted:
                    self._shrinking = screen.set_timer(CALM, partial(self.fit, calm=True))
                wanted = grown
        self._size = (columns, rows)
        self._apply(wanted)

    def _apply(self, sizes: Sizes | None) -> None:
        if sizes == self._sizes:
            return
        self._sizes = sizes
        left = self._screen.query_one("#left")
        if sizes is None:
            left.styles.clear_rule("width")
        else:
            left.styles.width = sizes.timeline
        self._set_height("findings", None if sizes is None else sizes.findings)
        self._set_height("next", None if sizes is None else sizes.next)

    def _set_height(self, name: str, rows: int | None) -> None:
        pane = self._screen.query_one(f"#pane-{name}", Pane)
        pane.set_class(rows == 1, "-empty")
        if rows is None:
            pane.styles.clear_rule("height")
        else:
            pane.styles.height = rows
