"""Everything about one event: its fields, and the line that its source holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, NamedTuple

from textual.binding import BindingType
from textual.reactive import var

from acp_core.cli.signs import TONE
from acp_core.model import Event
from acp_core.model.format import age, exact
from acp_tui import keys
from acp_tui.text import safe_line
from acp_tui.widgets.lines import Lines, Piece, Row
from acp_tui.widgets.timeline_filter import find_event
from acp_tui.widgets.timeline_rows import ILLEGAL, tone_style
from acp_tui.widgets.wrap import wrap

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
