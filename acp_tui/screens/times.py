"""Where the time went: who did what when, drawn, and all figures; others beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static

from acp_core.history import chart as charts
from acp_core.history import metrics
from acp_core.history.chart import Chart, chart_lines
from acp_core.history.metrics import NOT_RECORDED, Measured, measured
from acp_core.history.past import Past, chain
from acp_core.history.store import BadRecording
from acp_core.model import Status
from acp_core.model.text import clean_line
from acp_core.person import journal
from acp_core.person.settings import Working
from acp_core.protocols.locations import find
from acp_tui import keys
from acp_tui.screens.choosing import PickScreen
from acp_tui.text import MUTED, fit, join
from acp_tui.widgets.key_line import KeyLine
from acp_tui.widgets.lines import Row
from acp_tui.widgets.log_view import LogView
from acp_tui.widgets.row_list import Item

if TYPE_CHECKING:
    from acp_core.agents.state import RunnerState
    from acp_core.fleet import Batch
    from acp_tui.app import AcpApp

AGAIN = 1.0
"""Seconds after a change until everything is worked out again."""
GROWS = 10.0
"""Seconds after which it is worked out again while somebody is waited for: the waits grow."""
_STYLES = {
    "head": "strong", "dim": "muted", "phase": "accent", "turn": "success", "open": "warning",
    "arrow": "muted", "level": "muted", "bad": "error", "": "",
}  # fmt: skip
_TITLES = 30  # columns of the figures' names


class TimesScreen(Screen[None]):
    """One collaboration's course; with others beside it, or the chain that it belongs to."""

    DEFAULT_CSS = """
    TimesScreen {
        & #about { height: auto; padding: 0 1; background: $surface; }
        &:ansi #about { background: ansi_default; }
    }
    """
    AUTO_FOCUS = "LogView"
    BINDINGS: ClassVar[list[BindingType]] = [*keys.TIMES]
    app: AcpApp

    def __init__(self, key: str) -> None:
        """Make it.

        Args:
            key: The collaboration's.
        """
        super().__init__()
        self.key = key
        self._others: list[str] = []
        self._chained = False
        self._measurements: list[Measured] = []
        self._again: Timer | None = None

    def compose(self) -> ComposeResult:
        """Whose figures, the lines, the keys."""
        yield Static(id="about")
        yield LogView(id="lines")
        yield KeyLine()

    def on_mount(self) -> None:
        """Read the past, and again when something changes."""
        self.view = self.query_one(LogView)
        self.view.wrapped = self.view.follow = False
        self.view.clear("Computing the figures…")
        self.app.snapshots_changed.subscribe(self, self._changed)
        self.watch(self.app, "utc", self._draw, init=False)
        self.set_interval(GROWS, self._grow)
        self._read()

    def _grow(self) -> None:
        if any(each.snapshot.status is Status.ACTIVE for each in self._measurements):
            self._read()

    def _changed(self, batch: Batch) -> None:
        keys = {self.key, *self._others}
        if self._again is None and any(each.key in keys for each in batch.snapshots):
            self._again = self.set_timer(AGAIN, self._read)

    @work(group="times", exclusive=True, exit_on_error=False)
    async def _read(self) -> None:
        self._again = None
        now, working = self.app.now(), Working.of(self.app.settings.working)
        keys, chained = [self.key, *self._others], self._chained
        loops = self.app.fleet.loops

        def read() -> list[Measured]:
            names = _chain(self.key, now) if chained else keys
            return [_measured(key, loops(key), now, working) for key in names]

        try:
            self._measurements = await asyncio.to_thread(read)
        except (BadRecording, OSError, KeyError) as error:
            self.view.clear(clean_line(f"Could not compute the figures: {error}"))
            return
        self._draw()

    # --- what is shown ---------------------------------------------------------------------

    def _draw(self) -> None:
        if not self._measurements:
            return
        names = ", ".join(each.snapshot.name for each in self._measurements)
        story = " (one story)" if self._chained and len(self._measurements) > 1 else ""
        zone = " · times in UTC" if self.app.utc else ""
        self.query_one("#about", Static).update(
            join((clean_line(names, 300), "bold"), (f"  stats{story}{zone}", MUTED))
        )
        rows = [*self._chart(), (), *self._figures()]
        top = self.view.scroll_offset.y
        self.view.clear("")
        self.view.extend([((" ", ""), *row) for row in rows])
        self.view.scroll_to(y=top, animate=False, force=True)

    def _chart(self) -> list[Row]:
        """The chain as one chart, or one chart for each."""
        drawn = [(each.snapshot.name, each.drawn) for each in self._measurements if each.drawn]
        if self._chained and len(drawn) > 1:
            whole = charts.joined(drawn)
            return self._lines(whole) if whole else []
        rows: list[Row] = []
        for name, each in drawn:
            if len(self._measurements) > 1:
                rows += [*([()] if rows else []), ((name, "heading"),)]
            rows += self._lines(each)
        return rows or [(("Nothing to draw: no times are recorded.", "muted"),)]

    def _lines(self, drawn: Chart) -> list[Row]:
        made = chart_lines(drawn, self._room(), utc=self.app.utc, fit=fit)
        return [tuple((text, _STYLES[style]) for text, style in row) for row in made]

    def _room(self) -> int:
        """The cells of a row beside a blank and the scrollbar."""
        return (self.view.size.width or self.size.width) - 2

    def _figures(self) -> list[Row]:
        room = max(16, (self._room() - _TITLES) // len(self._measurements) - 2)
        rows: list[Row] = []
        if len(self._measurements) > 1:
            names = [fit(each.snapshot.name, room) for each in self._measurements]
            rows.append((("".ljust(_TITLES), ""), *((f"  {name}", "strong") for name in names)))
        for figure in metrics.side_by_side([each.metrics for each in self._measurements]):
            title = fit("  " * figure.depth + figure.title, _TITLES)
            if figure.heading:
                rows.append(((title, "heading"),))
                continue
            values = [
                (f"  {fit(value, room) if len(self._measurements) > 1 else value}",
                 "muted" if value in (NOT_RECORDED, metrics.NONE) else "")
                for value in figure.values
            ]  # fmt: skip
            rows.append(((title, ""), *values))
        return rows

    def on_resize(self) -> None:
        """The chart is drawn for its width."""
        self._draw()

    # --- keys ------------------------------------------------------------------------------

    def action_beside(self) -> None:
        """Choose another collaboration of the same kind, to show its figures beside these."""
        own = self.app.fleet.snapshots.get(self.key)
        others = [
            Item(((each.name, ""), (f"  {each.location}", "muted")), key=each.key)
            for each in self.app.fleet.snapshots.values()
            if each.key not in (self.key, *self._others)
            and (own is None or each.protocol == own.protocol)
        ]
        if not others:
            self.app.tell("There is no other collaboration of this kind in the fleet.")
            return
        self.app.push_screen(PickScreen("Show beside it", others), self._picked)

    def _picked(self, key: str | None) -> None:
        if key is not None:
            self._chained = False
            self._others.append(key)
            self._read()

    def action_alone(self) -> None:
        """Show only the collaboration that one came from."""
        self._others, self._chained = [], False
        self._read()

    def action_chain(self) -> None:
        """Show the chain of collaborations that continue each other as one story, or not."""
        self._chained = not self._chained
        self._others = []
        self._read()

    def action_back(self) -> None:
        """Go back to where one came from."""
        self.dismiss()


def _chain(key: str, now: datetime) -> list[str]:
    location = find(key)
    return [each.key for each in chain(location, now)] if location else []


def _measured(key: str, loops: Sequence[RunnerState], now: datetime, working: Working) -> Measured:
    """One collaboration's figures.

    Raises:
        KeyError: there is none any more.
        BadRecording: its recording is damaged.
    """
    location = find(key)
    if location is None:
        raise KeyError(key)
    past = Past(location, now)
    try:
        return measured(past, loops, journal.read(key), now, working)
    finally:
        past.close()
