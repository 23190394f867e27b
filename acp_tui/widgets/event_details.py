"""Everything about one event: its fields, and the line that its source holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from acp_core.format import age, exact
from acp_core.model import Event
from acp_core.signs import TONE
from acp_tui import collaboration_keys
from acp_tui.text import join, line, plain
from acp_tui.theme import TONE_COLOURS
from acp_tui.widgets.timeline_filter import find_event

LABEL = 12
LONGEST = 20_000
"""How many characters of an event's source are shown at most."""


class EventDetails(VerticalScroll, can_focus=True, inherit_bindings=False):
    """The fields of an event, one per line, and its source below."""

    BINDINGS: ClassVar[list[BindingType]] = [*collaboration_keys.SCROLL]

    DEFAULT_CSS = """
    EventDetails {
        height: auto;
        max-height: 50%;
        border-top: solid $foreground 20%;
        padding: 0 1;
        scrollbar-size-vertical: 1;
        & > Static { height: auto; }
        &:ansi { border-top: solid ansi_bright_black; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.event: Event | None = None

    def compose(self) -> ComposeResult:
        yield Static(id="event-fields", markup=False)
        yield Static(id="event-source", markup=False)

    def show(self, event: Event, log: Sequence[Event], now: datetime, utc: bool) -> None:
        """Show an event; its source follows with `show_source`."""
        same = self.event is not None and self.event.id == event.id
        self.event = event
        self.query_one("#event-fields", Static).update(fields(event, log, now, utc))
        if not same:
            self.query_one("#event-source", Static).update(Content(""))
            self.scroll_home(animate=False)

    def show_source(self, event: str, source: str) -> None:
        """Show an event's line as its source holds it; nothing where another is shown by now."""
        if self.event is not None and self.event.id == event:
            self.query_one("#event-source", Static).update(plain(pretty(source), "dim"))


def fields(event: Event, log: Sequence[Event], now: datetime, utc: bool) -> Content:
    """Every field of an event, one per line."""
    rows: list[Content] = []

    def add(label: str, value: Content) -> None:
        rows.append(join((label.ljust(LABEL), "dim"), value))

    colour = f"${TONE_COLOURS[event.tone]}"
    add("event", join((f"{TONE[event.tone]} ", colour), line(event.kind, "bold")))
    if event.problem:
        add("illegal", join(("✗ ", "$text-error"), plain(event.problem, "$text-error")))
    add("from", line(event.actor))
    if event.at is None:
        add("at", line("not recorded", "dim"))
    else:
        where = "" if event.at_source in ("", "recorded") else f" ({event.at_source})"
        add("at", line(f"{exact(event.at, utc)}, {age(event.at, now)} ago{where}"))
    add("number", line(str(event.order)))
    if event.reply_to is not None:
        add("replies to", line(_replied(event.reply_to, log)))
    if event.document:
        at_line = f":{event.line}" if event.line else ""
        add("document", line(f"{event.document}{at_line}", "$text-primary"))
    add("source", line(event.source))
    add("summary", plain(event.summary))
    return Content("\n").join(rows)


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
    return f"{id}: {event.actor} {event.kind}, {event.summary}"
