"""The lines of the timeline: draws events, moves a cursor over them, follows the newest.

How one event looks is made by pure functions from an `Event` to rows (`event_rows`).
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from itertools import accumulate, islice
from typing import ClassVar, NamedTuple

from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive, var

from acp_core.cli.signs import TONE
from acp_core.model import Event, Tone
from acp_core.model.clock import utc_now
from acp_core.model.format import age, clock, count, exact, grouped, zoned
from acp_tui import keys
from acp_tui.text import fit, width
from acp_tui.widgets.lines import CURSOR, UNREAD, Lines, Row, find, mark, text_of, wrap, wrap_path
from acp_tui.widgets.timeline_model import Growth, Model, Part, Spot, find_event

FULL = 200
"""Cells that a row is measured for."""

NEWEST = 40
"""Of how many of the newest events the texts are measured, where there are many."""

SMALL = 200
"""In a log of at most so many events all are measured, and long summaries may be wrapped."""


class _Made(NamedTuple):
    """The rows of an event, and what they were made of; ``marks``: whether unread, and selected."""

    event: Event
    form: Columns
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

    @dataclass
    class Highlighted(Message):
        """Another event is selected (or none)."""

        event: Event | None

    @dataclass
    class Opened(Message):
        """The user wants to see everything about an event; ``again``: it is shown already."""

        event: Event
        again: bool = False

    class Moved(Message):
        """What the status line says changed: following, unseen events, the selected one."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.model = Model()
        self.words = ""  # the words that are highlighted
        self.visited_at: datetime | None = None
        self._now = utc_now()
        self.actors: tuple[str, ...] = ()
        self._form: Columns | None = None
        self._last_form: Columns | None = None  # the very object, while it is the same
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
        self.post_message(self.Highlighted(model.selected))
        self.post_message(self.Moved())

    @property
    def form(self) -> Columns:
        """The columns for the present width."""
        if self._form is None:
            form = self._columns(max(20, self.scrollable_content_region.width))
            self._form = self._last_form = self._last_form if form == self._last_form else form
        return self._form

    @property
    def needed_width(self) -> int:
        """How many cells the rows of the newest events need to show all of their summaries."""
        return (
            needed_width(self._measured_events(), self._columns(FULL)) if self.model.length else 0
        )

    def _columns(self, cells: int) -> Columns:
        model = self.model
        first = model.events[0] if model.length else None
        last = model.events[model.length - 1] if model.length else None
        return columns(
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
        return one_day(first, last, self._now, self.utc)

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
        heights = (event_height(model.at(each), form) for each in range(len(model)))
        model.starts = array("l", accumulate(heights, initial=0))

    def row(self, y: int) -> Row:
        return self._row(self.model.spot(y))

    def _row(self, spot: Spot) -> Row:
        model, form = self.model, self.form
        if spot.part is Part.DETAIL:
            row = self._details[spot.number]
        elif spot.part is Part.RULE:
            unread = model.length - (model.unread_from or 0)
            return rule_row(form, unread, self.visited_at, self._now)
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
        made = event_rows(event, form, self._now, unread=unread, selected=selected)
        if not form.relative:  # ages go on
            if len(self._made) >= KEPT:
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
            self._details = detail_rows(event, self.form, replied)
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
            self.post_message(self.Opened(event))

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


ILLEGAL = "✗"

REPLY = "↳"

GUTTER = 2

REPLY_WIDTH = 5
"""How wide the column of replies is at most."""

KIND_WIDTH = 24
"""How wide the column of kinds is at most."""

SUMMARY_WIDTH = 14
"""How wide the column of summaries is at least: with less room there is none."""

WRAPPED_WIDTH = 30
"""How wide it is at least where the longer ones are wrapped within it; with less room these stand
below their events, over the whole width."""

SUMMARY_LINES = 4
"""How many lines the summary of the selected event takes at most."""

EVENT_LINES = 3
"""How many lines the summary of any event takes at most, where summaries are wrapped."""

KEPT = 1024
"""Of how many events is kept how they are shown: with each new one, all on the screen are asked for."""

TONE_COLOURS: Mapping[Tone, str] = {
    Tone.START: "muted",
    Tone.SUBMIT: "primary",
    Tone.REVIEW: "accent",
    Tone.REVISE: "primary",
    Tone.DECIDE: "accent",
    Tone.ACCEPT: "success",
    Tone.PASS: "success",
    Tone.DONE: "success",
    Tone.BLOCKED: "error",
    Tone.OTHER: "muted",
}
"""The colours of states, by the names of the theme's own variables: with these every theme of Textual, and
the sixteen colours of the terminal, work alike. A state shows as a sign (`acp_core.cli.signs`) first."""


@dataclass(frozen=True, slots=True)
class Columns:
    """How wide each column is, in cells; ``width`` is the whole row.

    ``wrapped``: a summary that is too long for its row goes on below it; ``below``: stands there.
    """

    width: int
    time: int
    order: int
    actor: int
    kind: int
    reply: int
    relative: bool = False
    dated: bool = False
    utc: bool = False
    wrapped: bool = False
    below: bool = False

    @property
    def indent(self) -> int:
        """Where the lines under an event begin: below its actor."""
        return GUTTER + self.time + 1 + self.order + 3

    @property
    def summary_column(self) -> int:
        """Where the column of summaries begins."""
        return self.indent + self.actor + 1 + self.kind + self.reply + 2

    @property
    def summary(self) -> int:
        """What the summary gets on the row of its event; 0 where it has no room there."""
        left = self.width - self.summary_column
        return left if left >= SUMMARY_WIDTH else 0

    @property
    def lines_column(self) -> int:
        """Where the lines of a wrapped summary begin."""
        return self.summary_column if self.summary and not self.below else self.indent

    @property
    def lines_width(self) -> int:
        """How wide the lines of a wrapped summary are."""
        return max(10, self.width - self.lines_column)


def columns(
    width: int,
    *,
    events: Collection[Event],
    last_order: int,
    actors: Iterable[str],
    first: datetime | None,
    last: datetime | None,
    relative: bool,
    utc: bool,
    wrapped: bool = False,
) -> Columns:
    """The columns for rows of ``width`` cells.

    Args:
        width: The whole row.
        events: Those whose texts the columns are made for.
        last_order: The highest number that an event bears.
        actors: Further names that will stand in the column of actors.
        first: When the first event was.
        last: When the last event was; where that is another day, each event bears its own.
        relative: Show how long ago, and not when.
        utc: Show UTC, and not local time.
        wrapped: Let a summary that is too long for its row go on below it.
    """
    dated = not relative and days_differ(first, last, utc)
    time = 4 if relative else (12 if dated else 5) + utc
    order = max(2, len(str(last_order)))
    names = (*actors, *(event.actor for event in events))
    actor = min(14 if width >= 60 else 9, max([6, *(len(name) for name in names)]))
    rest = width - GUTTER - time - 1 - order - 3 - actor - 1
    widest = max([4, *(len(event.kind) for event in events)])
    kind = max(4, min(widest, KIND_WIDTH, rest))
    reply = min(REPLY_WIDTH, max([0, *(len(_reply(event)) for event in events)]))
    form = Columns(width, time, order, actor, kind, reply, relative, dated, utc, wrapped)
    return replace(form, below=True) if wrapped and form.summary < WRAPPED_WIDTH else form


def needed_width(events: Iterable[Event], form: Columns) -> int:
    """How wide a row must be for the longest summary of these events to stand on it whole."""
    return form.summary_column + max((width(_summary_text(event)) for event in events), default=0)


def event_rows(
    event: Event, form: Columns, now: datetime, *, unread: bool = False, selected: bool = False
) -> tuple[Row, ...]:
    """The rows of an event: when, number, sign, who, what, and the summary where there is room."""
    style = "error" if event.problem else TONE_COLOURS[event.tone]
    sign = ILLEGAL if event.problem else TONE[event.tone]
    pieces = [
        ((CURSOR if selected else UNREAD if unread else " ") + " ", "accent"),
        (_time(event.at, form, now) + " ", "muted"),
        (fit(str(event.order), form.order, right=True) + " ", "muted"),
        (sign + " ", style),
        (fit(event.actor, form.actor) + " ", ""),
    ]
    rest = form.width - sum(width(text) for text, _ in pieces)
    text = _summary_text(event)
    lines = _summary_lines(text, form, cut=not selected)
    aside = "error" if event.problem else "muted"
    if form.summary:
        pieces.append((fit(event.kind, form.kind), style))
        pieces.append((fit(_reply(event), form.reply) + "  ", "muted"))
        if _begins_on_row(text, form):
            pieces.append((fit(lines.pop(0), form.summary), aside))
    else:
        reply = _reply(event)
        kind = event.kind + (" illegal" if event.problem else "")
        room = rest - width(reply) if rest - width(reply) >= 8 else rest
        pieces.append((fit(kind, min(room, width(kind))), style))
        if room < rest:
            pieces.append((reply, "muted"))
    indent = " " * form.lines_column
    return (tuple(pieces), *(((indent, ""), (line, aside)) for line in lines))


def event_height(event: Event, form: Columns) -> int:
    """How many rows `event_rows` makes."""
    return _height(_summary_text(event), form) if form.wrapped else 1


@lru_cache(KEPT)
def _height(text: str, form: Columns) -> int:
    if form.summary and width(text) <= form.summary:
        return 1
    lines = len(_summary_lines(text, form))
    return lines if _begins_on_row(text, form) else 1 + lines


def _begins_on_row(text: str, form: Columns) -> bool:
    """Whether a summary begins on the row of its event."""
    fits = not form.below or width(text) <= form.summary
    return bool(form.summary) and fits


def _reply(event: Event) -> str:
    return f" {REPLY}{event.reply_to}" if event.reply_to is not None else ""


def _summary_text(event: Event) -> str:
    """What an event says beside who did what."""
    if event.problem:
        return f"illegal: {event.problem}"
    return _without_subject(event.actor, event.kind, event.summary)


@lru_cache(KEPT)
def _without_subject(actor: str, kind: str, summary: str) -> str:
    text = " ".join(summary.split())
    for known in (f"{actor} {kind}", kind.replace("_", " ")):
        if text.lower() == known.lower():
            return ""
        if text.lower().startswith(f"{known.lower()}, "):
            return text[len(known) + 2 :]
    return text


def _summary_lines(text: str, form: Columns, *, cut: bool = True) -> list[str]:
    """What shows of the summary of an event; ``cut``: it ends in "…" where there is more."""
    if form.summary and (not form.wrapped or width(text) <= form.summary):
        return [text]
    if not form.wrapped or not text:
        return []
    if cut:
        return _lines(text, form.lines_width, EVENT_LINES)
    return [text[start:stop] for start, stop in wrap(text, form.lines_width)[:EVENT_LINES]]


def detail_rows(event: Event, form: Columns, replied: Event | None) -> tuple[Row, ...]:
    """The rows under the selected event: the rest of its summary, what it answers, its document."""
    indent = " " * form.indent
    cells = max(10, form.width - form.indent - 2)
    rows = _rest_rows(event, form)
    if event.reply_to is not None:
        what = f"{REPLY} replies to {event.reply_to}"
        if replied is not None:
            what += f" {replied.actor} {replied.kind}"
        rows += _wrapped(what, cells, indent, "muted")
    if event.problem and not form.wrapped:
        rows += _wrapped(f"{ILLEGAL} illegal: {event.problem}", cells, indent, "error")
    cut = not form.wrapped and width(event.summary) > form.summary
    if event.summary and (event.problem or cut):
        rows += _wrapped(event.summary, cells, indent, "")
    if event.at is not None and event.at_source not in ("", "recorded"):
        when = f"time: {event.at_source}, {exact(event.at, form.utc)}"
        rows += _wrapped(when, cells, indent, "muted")
    if event.document:
        where = event.document + (f":{event.line}" if event.line else "")
        rows += _path_rows(where, cells, indent)
    return tuple(rows)


def _rest_rows(event: Event, form: Columns) -> list[Row]:
    """What of a wrapped summary had no room in the rows of its event."""
    text = _summary_text(event)
    if not form.wrapped:
        return []
    rest = [text[start:stop] for start, stop in wrap(text, form.lines_width)[EVENT_LINES:]]
    indent, style = " " * form.lines_column, "error" if event.problem else "muted"
    return _wrapped(" ".join(rest), form.lines_width, indent, style) if rest else []


def _path_rows(path: str, cells: int, indent: str) -> list[Row]:
    """A path behind an arrow; a long one goes on below, behind one of its slashes."""
    rows: list[Row] = []
    room, lead = cells - 2, "→ "
    for start, stop in islice(wrap_path(path, room), SUMMARY_LINES):
        last = len(rows) == SUMMARY_LINES - 1
        piece = fit(path[start:], room).rstrip() if last else path[start:stop]
        rows.append(((indent, ""), (lead + piece, "primary")))
        lead = "  "
    return rows


def rule_row(form: Columns, unread: int, since: datetime | None, now: datetime) -> Row:
    """The rule between what was there at the last visit and what is new."""
    ago = f", {age(since, now)} ago" if since is not None else ""
    text = f"─ {count(unread, 'new event')} since your last visit{ago} "
    if width(text) > form.width - 1:
        text = f"─ {grouped(unread)} new{ago} "
    return ((fit(text + "─" * max(0, form.width - width(text)), form.width), "accent"),)


def _time(at: datetime | None, form: Columns, now: datetime) -> str:
    if at is None:
        return fit("-", form.time, right=True)
    if form.relative:
        return fit(age(at, now), form.time, right=True)
    if not form.dated:
        return fit(clock(at, form.utc), form.time, right=True)
    local = zoned(at, form.utc)
    return fit(f"{local.day} {local.strftime('%b')} {clock(at, form.utc)}", form.time, right=True)


def one_day(first: datetime | None, last: datetime | None, now: datetime, utc: bool) -> str:
    """The day of all events, where it is the same and not today."""
    if last is None or days_differ(first, last, utc) or not days_differ(last, now, utc):
        return ""
    local = zoned(last, utc)
    year = f" {local.year}" if local.year != zoned(now, utc).year else ""
    return f"{local.day} {local.strftime('%b')}{year}"


def days_differ(first: datetime | None, last: datetime | None, utc: bool) -> bool:
    """Whether two times are on different days."""
    if first is None or last is None:
        return False
    return zoned(first, utc).date() != zoned(last, utc).date()


def _wrapped(text: str, cells: int, indent: str, style: str) -> list[Row]:
    lines = _lines(" ".join(text.split()), cells, SUMMARY_LINES)
    return [((indent, ""), (line, style)) for line in lines]


def _lines(text: str, cells: int, most: int) -> list[str]:
    """A text in at most so many lines; the last one ends in "…" where there is more."""
    spans = wrap(text, cells)
    lines = [text[start:stop] for start, stop in spans[:most]]
    if len(spans) > most:
        lines[-1] = fit(text[spans[most - 1][0] :], cells).rstrip()
    return lines


def tone_style(tone: Tone) -> str:
    """The name of the style in which an event of this tone is drawn."""
    return TONE_COLOURS[tone]
