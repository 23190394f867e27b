"""The timeline: what happened, in order, with search, filter and an event's details."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import var
from textual.widgets import Input, Static
from textual.worker import get_current_worker

from acp_core.cli.signs import TONE
from acp_core.model import Event
from acp_core.model.clock import utc_now
from acp_core.model.format import age, count, exact, grouped
from acp_tui import keys
from acp_tui.text import MUTED, join, safe_line
from acp_tui.widgets import timeline_model
from acp_tui.widgets.lines import Lines, Piece, Row, wrap
from acp_tui.widgets.pane import FilterSuggester, PaneData, Typed
from acp_tui.widgets.timeline_model import (
    AT_ONCE,
    Filter,
    Growth,
    LastSeen,
    Model,
    Search,
    find_event,
    parse,
)
from acp_tui.widgets.timeline_view import ILLEGAL, TimelineView, tone_style

RECENT = 200
"""How many of the newest events are looked at for the kinds that a filter can name."""


class Timeline(Vertical):
    """Events, a line to type in, a status line, and the details of the selected event."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.TIMELINE[1:]]

    DEFAULT_CSS = """
    Timeline {
        & #timeline-status { height: 1; display: none; }
        & #timeline-empty { height: 1fr; padding: 1 2; color: $text-muted; display: none; }
        & Typed {
            height: 1; border: none; padding: 0 1; display: none; background: transparent;
        }
        & EventDetails { display: none; }
        &.-empty #timeline-empty { display: block; }
        &.-empty TimelineView { display: none; }
        &.-typing Typed { display: block; }
        &.-status #timeline-status { display: block; }
        &.-details EventDetails { display: block; }
    }
    """

    @dataclass
    class SourceWanted(Message):
        """The details of an event are shown: its line in the source is wanted by the details."""

        event: Event

    @dataclass
    class CopyWanted(Message):
        """The user wants an event as JSON in the clipboard."""

        event: Event

    class TitleChanged(Message):
        """What the pane's title says changed (unseen events, a filter)."""

    data: var[PaneData | None] = var(None, always_update=True)
    """What to show."""
    last_seen: var[LastSeen | None] = var(None, init=False)
    """What was seen at the last visit; None: this is the first."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.view = TimelineView(id="timeline-view")
        self.details = EventDetails(id="timeline-details")
        self._typed = Typed(id="timeline-typed", compact=True)
        self._suggester = FilterSuggester(self._names)
        self._status = Static(id="timeline-status", markup=False)
        self._search: Search | None = None
        self._filtering = False
        self._purpose = "search"
        self._opened_event = ""
        self._was_clearable = False
        self._said = Content("")  # in the status line
        self._told = ""  # the title that whoever shows it knows

    def compose(self) -> ComposeResult:
        yield self.view
        yield Static(
            Content("No events yet. Events appear here automatically."),
            id="timeline-empty",
        )
        yield self._status
        yield self._typed
        yield self.details

    # --- what is shown ---------------------------------------------------------------------

    def watch_data(self, data: PaneData | None) -> None:
        """Show the events of a Snapshot as of a time; quick however many there are."""
        if data is None:
            return
        self.view.utc = data.utc
        actors = tuple(person.id for person in data.snapshot.participants)
        self.update_events(data.snapshot.events, actors, data.now)
        self.view.tick(data.now)

    def update_events(self, log: Sequence[Event], actors: tuple[str, ...], now: datetime) -> None:
        model = self.view.model
        before = model.length
        growth = self.view.replace_log(log, actors, now)
        self.set_class(not model.length, "-empty")  # styles all anew: not where there are events
        if growth is Growth.SAME:
            return
        newest = range(before, model.length)
        if growth is Growth.REWRITTEN or not (self._filtering or model.admit(newest)):
            self._refilter()
        else:  # a filter at work takes in the newest when it is done
            self.view.settle()
        self._search_again(newest if growth is Growth.GROWN else None)
        self._told = self.title  # who gave the events asks for it
        self._update_status()

    def go_to(self, event: str) -> bool:
        """Select the event with this id, without the filter where it hides it."""
        model = self.view.model
        place = timeline_model.find_event(model.events, event, limit=model.length)
        if place is None:
            return False
        position = model.position(place)
        if position >= len(model) or model.place(position) != place:
            self.filter(Filter())
        self.view.select(place)
        return True

    def watch_last_seen(self, seen: LastSeen | None) -> None:
        """Mark what is new since the last visit."""
        self.view.model.unread_from, self.view.visited_at = seen or (None, None)
        self.view.settle()
        self._update_status()

    @property
    def title(self) -> str:
        """What the pane is called: with how much of it shows, and what is new."""
        model = self.view.model
        parts = ["Timeline"]
        if self.view.model.filter:
            parts.append(f"{grouped(len(model))} of {grouped(model.length)}")
        elif model.length:
            parts.append(f"{grouped(model.length)}")
        if self.view.day:
            parts.append(self.view.day)
        if self.view.unseen:
            parts.append(f"{grouped(self.view.unseen)} new")
        return " · ".join(parts)

    # --- filter ----------------------------------------------------------------------------

    def filter(self, chosen: Filter) -> None:
        """Show only some events."""
        self._filtering = False
        if self.view.model.choose(chosen):
            self._refilter()
        else:
            self.workers.cancel_group(self, "timeline-filter")
            self.view.settle()
            self._search_again(None)
        self._update_status()

    def _refilter(self) -> None:
        model = self.view.model
        if not model.filter:
            self.view.settle()
            return
        if model.length <= AT_ONCE:
            places = timeline_model.select(
                model.events, range(model.length), model.filter, model.unread_from
            )
            self._filtered(places or array("l"), model.length, model.filter)
            return
        self._filtering = True
        self._filter_in_thread(model, model.length)

    @work(thread=True, exclusive=True, group="timeline-filter", exit_on_error=False)
    def _filter_in_thread(self, model: Model, length: int) -> None:
        worker = get_current_worker()
        chosen = model.filter
        places = timeline_model.select(
            model.events, range(length), chosen, model.unread_from, lambda: not worker.is_cancelled
        )
        if places is not None:
            self.app.call_from_thread(self._filtered, places, length, chosen)

    def _filtered(self, places: array[int], upto: int, chosen: Filter) -> None:
        model = self.view.model
        if chosen is not model.filter:
            return
        self._filtering = False
        model.refilter(places)
        if not model.admit(range(upto, model.length)):
            self._refilter()
            return
        self.view.settle()
        self._search_again(None)
        self._update_status()

    # --- search ----------------------------------------------------------------------------

    def search(self, words: str) -> None:
        """Go to the next event that holds ``words``, and mark them; "" ends the search."""
        self._search = Search(words) if words else None
        self.view.words = words
        self.view.refresh()
        self.workers.cancel_group(self, "timeline-search")
        if self._search is not None:
            self._run(self._search, jump=True)
        self._update_status()

    def _run(self, search: Search, *, jump: bool) -> None:
        model = self.view.model
        start = model.cursor_position or 0
        if len(model) <= AT_ONCE:
            for place in search.run(model, start, lambda: True):
                self._add_match(search, place, jump)
        else:
            self._search_in_thread(search, model, start, jump)

    @work(thread=True, exclusive=True, group="timeline-search", exit_on_error=False)
    def _search_in_thread(self, search: Search, model: Model, start: int, jump: bool) -> None:
        worker = get_current_worker()
        for place in search.run(model, start, lambda: not worker.is_cancelled):
            self.app.call_from_thread(self._add_match, search, place, jump)

    def _add_match(self, search: Search, place: int | None, jump: bool) -> None:
        if search is not self._search:
            return
        if place is not None and jump:
            self.view.select(place)
        if search.complete:
            self._search_again(range(0))
        self._update_status()

    def _search_again(self, newest: range | None) -> None:
        search = self._search
        if search is None:
            return
        if newest is None or (search.complete and not search.extend(self.view.model)):
            self._search = Search(search.words)
            self._run(self._search, jump=False)

    # --- the status line -------------------------------------------------------------------

    def _update_status(self) -> None:
        view, parts = self.view, list[Content]()
        if self._search is not None:
            search = self._search
            if not search.complete:
                state = "searching …"
            elif not search.places:
                state = "not found"
            else:
                here = search.number(view.model.cursor)
                state = f"{grouped(here) if here else '-'}/{grouped(len(search.places))}"
            parts.append(join(("/", MUTED), search.words, (f" {state}", "$text-accent")))
        if view.model.filter:
            state = "filtering …" if self._filtering else count(len(view.model), "event")
            parts.append(
                join(
                    ("filter ", MUTED),
                    str(view.model.filter),
                    (f" {state}", "$text-accent"),
                )
            )
        if view.unseen:
            parts.append(
                join((f"▼ {grouped(view.unseen)} new", "bold $text-accent"), (" · G", MUTED))
            )
        elif not view.follow and view.model.length:
            parts.append(join(("not following · G", MUTED)))
        words = Content("   ").join(parts)
        if not words.is_same(self._said):
            self._said = words
            self._status.update(words, layout=False)
        self.set_class(bool(parts), "-status")
        if self.title != self._told:
            self._told = self.title
            self.post_message(self.TitleChanged())
        if self._clearable != self._was_clearable:  # what escape does is another thing now
            self._was_clearable = self._clearable
            self.refresh_bindings()

    @on(TimelineView.Moved)
    def _moved(self, message: TimelineView.Moved) -> None:
        message.stop()
        self._update_status()

    # --- details ---------------------------------------------------------------------------

    @on(TimelineView.Highlighted)
    def _highlighted(self, message: TimelineView.Highlighted) -> None:
        if message.event is not None and self.has_class("-details"):
            self._show_details(message.event)

    @on(TimelineView.Opened)
    def _opened(self, message: TimelineView.Opened) -> None:
        message.again = self.has_class("-details") and self._opened_event == message.event.id
        self._opened_event = message.event.id
        self.add_class("-details")
        self._show_details(message.event)
        self._update_status()

    def _show_details(self, event: Event) -> None:
        now = self.data.now if self.data is not None else utc_now()
        self.details.subject = Subject(event, self.view.model.events, now, self.view.utc)
        self.post_message(self.SourceWanted(event))

    # --- keys ------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Type words to look for."""
        self._type("search", "words to search for", self._search.words if self._search else "")

    def action_filter(self) -> None:
        """Type what to show."""
        words = str(self.view.model.filter)
        self._type("filter", "from:NAME  event:KIND  is:illegal  is:new  words", words)

    def _names(self) -> tuple[Iterable[str], Iterable[str]]:
        """The participants, and the kinds of the newest events."""
        log = self.view.model.events
        newest = (log[place] for place in range(max(0, len(log) - RECENT), len(log)))
        return self.view.actors, dict.fromkeys(event.kind for event in newest)

    def _type(self, purpose: str, placeholder: str, value: str) -> None:
        self._purpose = purpose
        self._typed.suggester = self._suggester if purpose == "filter" else None
        self._typed.placeholder = f"{purpose}: {placeholder}"
        self._typed.value = value
        self.add_class("-typing")
        self._typed.focus()

    @on(Input.Submitted, "#timeline-typed")
    def _submitted(self, message: Input.Submitted) -> None:
        message.stop()
        self._stop_typing()
        if self._purpose == "search":
            self.search(message.value.strip())
        else:
            self.filter(parse(message.value))

    @on(Typed.Cancelled)
    def _stop_typing(self) -> None:
        self.remove_class("-typing")
        self.view.focus()

    def action_match(self, by: int) -> None:
        """Go to the next, or the previous, event that holds the words."""
        if self._search is not None:
            place = self._search.step(self.view.model.cursor, by)
            if place is not None:
                self.view.select(place)

    def action_toggle_relative(self) -> None:
        """Show when events were, or how long ago."""
        self.view.relative = not self.view.relative
        self.post_message(self.TitleChanged())

    def action_reply(self) -> None:
        """Go to the event that the selected one replies to."""
        event = self.view.selected
        if event is not None and event.reply_to is not None:
            self.go_to(event.reply_to)

    def action_unread(self) -> None:
        """Go to the first event that is new since the last visit."""
        place = self.view.model.unread_from
        if place is not None and place < self.view.model.length:
            self.go_to(self.view.model.events[place].id)

    def action_copy(self) -> None:
        """Copy the selected event as JSON."""
        event = self.view.selected
        if event is not None:
            self.post_message(self.CopyWanted(event))

    def action_clear(self) -> None:
        """Close the details, end the search, drop the filter, in this order, one at a time."""
        if self.has_class("-details"):
            self.remove_class("-details")
            self.view.focus()
            self._update_status()
        elif self._search is not None:
            self.search("")
        elif self.view.model.filter:
            self.filter(Filter())

    @property
    def _clearable(self) -> bool:
        return bool(
            self.has_class("-details") or self._search is not None or self.view.model.filter
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Whether a key means something now: ``escape`` goes back where there is nothing to clear."""
        if action == "clear":
            return self._clearable
        if action == "match":
            return self._search is not None
        return True


LABEL = 12

LONGEST = 20_000
"""How many characters of an event's source are shown at most."""

Field = tuple[str, str, str]
"""A label, a value, and the value's style."""


class Subject(NamedTuple):
    """An event of a log, as of a time, and whether its time is shown in UTC."""

    event: Event
    log: Sequence[Event]
    now: datetime
    utc: bool


class Source(NamedTuple):
    """The line of an event as its source holds it."""

    event: str
    text: str


class EventDetails(Lines):
    """The fields of an event, and its source below."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.SCROLL]

    DEFAULT_CSS = """
    EventDetails {
        height: auto;
        max-height: 50%;
        border-top: solid $foreground 20%;
        &:focus { border-top: solid $accent; }
        &:ansi { border-top: solid ansi_bright_black; }
        &:ansi:focus { border-top: solid $accent; }
    }
    """

    subject: var[Subject | None] = var(None, init=False, always_update=True)
    """What is shown."""
    source: var[Source | None] = var(None, init=False)
    """What shows below the fields, where it is of the same event; it comes later."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._fields: tuple[Field, ...] = ()
        self._rows: list[Row] = []
        self._width = 0

    @property
    def event(self) -> Event | None:
        """The event that is shown."""
        return self.subject.event if self.subject is not None else None

    def watch_subject(self, before: Subject | None, subject: Subject | None) -> None:
        """Show an event, another one from its top."""
        if subject is None:
            return
        if before is None or before.event.id != subject.event.id:
            self.scroll_home(animate=False)
        self._fields = tuple(fields(*subject))
        self._lay_out()

    def watch_source(self, source: Source | None) -> None:
        """Show an event's source, unless another event shows by now."""
        if source is not None and self.event is not None and self.event.id == source.event:
            self._lay_out()

    def row(self, y: int) -> Row:
        return self._rows[y]

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            self._lay_out()

    def _lay_out(self) -> None:
        self._width = self.scrollable_content_region.width
        cells = max(16, self._width - 2)
        rows: list[Row] = []
        for label, value, style in self._fields:
            begin: Piece = (f" {label:<{LABEL}}", "muted")
            for paragraph in value.split("\n"):
                line = safe_line(paragraph)
                for start, end in wrap(line, cells - LABEL):
                    rows.append((begin, (line[start:end], style)))
                    begin = (" " * (LABEL + 1), "")
        for paragraph in self._source_lines():
            for start, end in wrap(paragraph, cells):
                rows.append(((" " + paragraph[start:end], "muted"),))
        self._rows = rows
        self.set_extent(len(rows))
        self.refresh(layout=True)

    def _source_lines(self) -> list[str]:
        source = self.source
        if source is None or self.event is None or source.event != self.event.id:
            return []
        return pretty(source.text).split("\n") if source.text else []


def fields(event: Event, log: Sequence[Event], now: datetime, utc: bool) -> list[Field]:
    """Every field of an event that says something."""
    rows = [("event", f"{TONE[event.tone]} {event.kind}", f"{tone_style(event.tone)} strong")]
    if event.problem:
        rows.append(("illegal", f"{ILLEGAL} {event.problem}", "error"))
    rows.append(("from", event.actor, ""))
    if event.at is None:
        rows.append(("at", "not recorded", "muted"))
    else:
        where = "" if event.at_source in ("", "recorded") else f" ({event.at_source})"
        rows.append(("at", f"{exact(event.at, utc)}, {age(event.at, now)} ago{where}", ""))
    rows.append(("number", str(event.order), ""))
    if event.reply_to is not None:
        rows.append(("replies to", _replied(event.reply_to, log), ""))
    if event.document:
        line = f":{event.line}" if event.line else ""
        rows.append(("document", f"{event.document}{line}", "primary"))
    rows.append(("source", event.source, "muted"))
    if event.summary:
        rows.append(("summary", event.summary, ""))
    return rows


def pretty(source: str) -> str:
    """A line of JSON over several lines; as it is where it is no JSON, or very long."""
    if len(source) > LONGEST:
        return source[:LONGEST] + " …"
    try:
        return json.dumps(json.loads(source), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return source


def _replied(id: str, log: Sequence[Event]) -> str:
    place = find_event(log, id)
    if place is None:
        return id
    event = log[place]
    return f"{id}, {event.actor} {event.kind}: {event.summary}"
