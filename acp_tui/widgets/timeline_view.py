"""The lines of the timeline: draws events, moves a cursor over them, follows the newest."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import datetime
from itertools import accumulate
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive, var

from acp_core.model import Event
from acp_core.model.clock import utc_now
from acp_tui import keys
from acp_tui.widgets import timeline_rows as rows
from acp_tui.widgets.lines import Lines, Row, find, mark, text_of
from acp_tui.widgets.timeline_filter import find_event
from acp_tui.widgets.timeline_model import Growth, Model, Part, Spot

FULL = 200
"""Cells that a row is measured for."""
NEWEST = 40
"""Of how many of the newest events the texts are measured, where there are many."""
SMALL = 200
"""In a log of at most so many events all are measured, and long summaries may be wrapped."""


class _Made(NamedTuple):
    """The rows of an event, and what they were made of; ``marks``: whether unread, and selected."""

    event: Event
    form: rows.Columns
    marks: tuple[bool, bool]
    rows: tuple[Row, ...]


class TimelineView(Lines):
    """Events, one line each; the selected one shows more lines.

    The newest event is followed until the user moves away from it; `unseen` counts what
    came since then.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*keys.LIST, *keys.TIMELINE[:1]]

    relative = reactive(False)
    """Show how long ago, and not when."""
    utc = reactive(False)
    """Show UTC, and not local time."""
    wrapped = var(False, init=False)
    """Let summaries that are too long for their rows go on below them."""
    follow = var(True)
    """Whether the newest event stays in view."""

    class Highlighted(Message):
        """Another event is selected (or none)."""

        def __init__(self, view: TimelineView, event: Event | None) -> None:
            super().__init__()
            self.view = view
            self.event = event

        @property
        def control(self) -> TimelineView:
            return self.view

    class Opened(Message):
        """The user wants to see everything about an event; ``again``: it is shown already."""

        def __init__(self, view: TimelineView, event: Event) -> None:
            super().__init__()
            self.view = view
            self.event = event
            self.again = False

        @property
        def control(self) -> TimelineView:
            return self.view

    class Moved(Message):
        """What the status line says changed: following, unseen events, the selected one."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model = Model()
        self.words = ""  # the words that are highlighted
        self.visited_at: datetime | None = None
        self._now = utc_now()
        self.actors: tuple[str, ...] = ()
        self._form: rows.Columns | None = None
        self._last_form: rows.Columns | None = None  # the very object, while it is the same
        self._made: dict[int, _Made] = {}
        self._measured: list[Event] | None = None
        self._details: tuple[Row, ...] = ()
        self._paused_at = 0
        self._moving = False
        self._times: tuple[str, ...] = ()

    # --- what is shown ---------------------------------------------------------------------

    def replace_log(self, log: Sequence[Event], actors: tuple[str, ...], now: datetime) -> Growth:
        """Take over the events of a new Snapshot. A filter must be applied by the caller."""
        self._now = now
        growth = self.model.take(log)
        if growth is Growth.SAME:
            return growth
        if growth is Growth.REWRITTEN:
            self._paused_at = min(self._paused_at, self.model.length)
        self.actors = actors
        self._form = self._measured = None
        return growth

    def settle(self) -> None:
        """Draw what the model holds now, and follow the newest event where that is on.

        Who calls it says what follows from that: there is no `Moved`.
        """
        if self.follow and len(self.model):
            self.model.cursor = self.model.place(len(self.model) - 1)
        else:
            self.model.cursor = self.model.nearest() if self.model.cursor is not None else None
        with self.vertical_scrollbar.as_one() if self.show_vertical_scrollbar else nullcontext():
            self._arrange()
            self._stick()

    def tick(self, now: datetime) -> None:
        """The time went on: redraw where that changes what is shown."""
        self._now = now
        if not self.relative:
            return
        top = round(self.scroll_offset.y)
        bottom = min(self.model.rows, top + self.size.height)
        times = tuple(text_of(self.row(y)[:2]) for y in range(top, bottom))
        if times != self._times:
            self._times = times
            self.refresh()

    @property
    def unseen(self) -> int:
        """How many events came while the newest was not followed."""
        return 0 if self.follow else max(0, self.model.length - self._paused_at)

    @property
    def selected(self) -> Event | None:
        """The selected event."""
        return self.model.selected

    def select(self, place: int, *, top: bool = False) -> None:
        """Select the event at a place of the log, and scroll to it. Nothing where it is hidden."""
        model = self.model
        position = model.position(place)
        if position >= len(model) or model.place(position) != place:
            return
        model.cursor = place
        self._set_follow(position == len(model) - 1)
        self._arrange()
        row = model.row(position)
        self._move_to(row + model.height(position) - 1 + model.details, context=0)
        self._move_to(row, context=self.size.height if top else 1)
        self.post_message(self.Highlighted(self, model.selected))
        self.post_message(self.Moved())

    @property
    def form(self) -> rows.Columns:
        """The columns for the present width."""
        if self._form is None:
            form = self._columns(max(20, self.scrollable_content_region.width))
            self._form = self._last_form = self._last_form if form == self._last_form else form
        return self._form

    @property
    def needed_width(self) -> int:
        """How many cells the rows of the newest events need to show all of their summaries."""
        return (
            rows.needed_width(self._measured_events(), self._columns(FULL))
            if self.model.length
            else 0
        )

    def _columns(self, cells: int) -> rows.Columns:
        model = self.model
        first = model.events[0] if model.length else None
        last = model.events[model.length - 1] if model.length else None
        return rows.columns(
            cells,
            events=self._measured_events(),
            last_order=max(last.order, model.length) if last else 0,
            actors=self.actors,
            first=first.at if first else None,
            last=last.at if last else None,
            relative=self.relative,
            utc=self.utc,
            wrapped=self.wrapped and model.length <= SMALL,
        )

    @property
    def day(self) -> str:
        """The day of all events, where the rows do not bear it."""
        model = self.model
        if not model.length or self.relative:
            return ""
        first, last = model.events[0].at, model.events[model.length - 1].at
        return rows.one_day(first, last, self._now, self.utc)

    def _measured_events(self) -> list[Event]:
        """The events whose texts the columns are made for."""
        if self._measured is None:
            model = self.model
            first = 0 if model.length <= SMALL else model.length - NEWEST
            self._measured = [model.events[place] for place in range(first, model.length)]
        return self._measured

    def _place_rows(self) -> None:
        """Say in which row each event begins, where some take more than one."""
        model, form = self.model, self.form
        if not form.wrapped:
            model.starts = ()
            return
        heights = (rows.event_height(model.at(each), form) for each in range(len(model)))
        model.starts = array("l", accumulate(heights, initial=0))

    def row(self, y: int) -> Row:
        return self._row(self.model.spot(y))

    def _row(self, spot: Spot) -> Row:
        model, form = self.model, self.form
        if spot.part is Part.DETAIL:
            row = self._details[spot.number]
        elif spot.part is Part.RULE:
            unread = model.length - (model.unread_from or 0)
            return rows.rule_row(form, unread, self.visited_at, self._now)
        else:
            row = self._event_rows(model.place(spot.number))[spot.line]
        return mark(row, find(text_of(row), self.words), "match") if self.words else row

    def _event_rows(self, place: int) -> tuple[Row, ...]:
        """The rows of an event: those of the last time where it would look the same."""
        model, form = self.model, self.form
        event, unread, selected = model.events[place], model.is_unread(place), place == model.cursor
        known = self._made.get(place)
        if (
            known is not None
            and known.event is event
            and known.form is form
            and known.marks == (unread, selected)
        ):
            return known.rows
        made = rows.event_rows(event, form, self._now, unread=unread, selected=selected)
        if not form.relative:  # ages go on
            if len(self._made) >= rows.KEPT:
                self._made.clear()
            self._made[place] = _Made(event, form, (unread, selected), made)
        return made

    def row_style(self, y: int) -> str:
        return self._style_of(self.model.spot(y))

    def _style_of(self, spot: Spot) -> str:
        if spot.part is Part.EVENT and spot.number == self.model.cursor_position:
            return "cursor" if self.has_focus else "cursor-blurred"
        return ""

    def _key(self, y: int) -> tuple[Row, str] | None:
        if y >= self.virtual_size.height:
            return None
        spot = self.model.spot(y)
        return self._row(spot), self._style_of(spot)

    def _arrange(self) -> None:
        """Make the selected event's details, and tell how many rows there are."""
        self._place_rows()
        event = self.model.selected
        if event is None:
            self._details = ()
        else:
            answered = find_event(self.model.events, event.reply_to)
            replied = None if answered is None else self.model.events[answered]
            self._details = rows.detail_rows(event, self.form, replied)
        self.model.details = len(self._details)
        self.set_extent(self.model.rows)

    def redraw(self) -> None:
        """Draw all rows: whatever comes, they move. None of them is compared, nor made anew."""
        _, _, wide, high = self.scrollable_content_region
        self.refresh(Region(0, 0, wide, high))

    # --- following -------------------------------------------------------------------------

    def _stick(self) -> None:
        if self.follow:
            self._moving = True
            self.scroll_to(y=self.max_scroll_y, animate=False, force=True)
            self._moving = False

    def _move_to(self, row: int, context: int) -> None:
        self._moving = True
        self.jump(row, context=context)
        self._moving = False

    def _set_follow(self, follow: bool) -> None:
        if follow != self.follow:
            self.follow = follow
            self._paused_at = self.model.length
            self.post_message(self.Moved())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._moving or round(old_value) == round(new_value):
            return
        at_end = round(new_value) >= self.max_scroll_y
        if new_value > old_value and at_end:
            self._set_follow(True)
        elif new_value < old_value and not at_end:  # at the end: rows went away, nobody scrolled
            self._set_follow(False)

    def _size_updated(
        self, size: Size, virtual_size: Size, container_size: Size, layout: bool = True
    ) -> bool:
        """Arrange the rows for a new width at once, so that the picture that follows has them.

        Textual draws first, and tells of the size after that: the first picture would have none.
        """
        changed = super()._size_updated(size, virtual_size, container_size, layout)
        if changed and self.model.length:
            self.on_resize()
        return changed

    def on_resize(self) -> None:
        self._form = None
        self._arrange()
        self._stick()

    def watch_relative(self) -> None:
        self._form = None
        self._arrange()

    def watch_wrapped(self) -> None:
        self._form = None
        self._arrange()
        self._stick()

    def watch_utc(self) -> None:
        self._form = None
        self._arrange()

    # --- keys and mouse --------------------------------------------------------------------

    def action_cursor(self, by: int) -> None:
        """Select another event; beyond the ends nothing happens."""
        model = self.model
        if not len(model):
            return
        position = model.cursor_position
        if position is None:
            position = len(model) - 1 if by < 0 else 0
        else:
            position = min(len(model) - 1, max(0, position + by))
        self.select(model.place(position))

    def action_page(self, by: int) -> None:
        """Select the event a screen further."""
        self.action_cursor(by * max(1, self.size.height - 2 - self.model.details))

    def action_first(self) -> None:
        """Select the oldest event."""
        self.action_cursor(-len(self.model))

    def action_last(self) -> None:
        """Select the newest event, and follow it."""
        self.action_cursor(len(self.model))
        self._set_follow(True)
        self._stick()

    def action_open(self) -> None:
        """Show everything about the selected event."""
        event = self.model.selected
        if event is not None:
            self.post_message(self.Opened(self, event))

    def on_click(self, event: events.Click) -> None:
        event.prevent_default()  # a double click must not select all of the text
        y = event.y + round(self.scroll_offset.y)
        if not 0 <= y < self.model.rows:
            return
        spot = self.model.spot(y)
        if spot.part is Part.DETAIL:
            self.action_open()
        elif spot.part is Part.EVENT:
            again = spot.number == self.model.cursor_position
            self.select(self.model.place(spot.number))
            if again or event.chain == 2:
                self.action_open()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()
