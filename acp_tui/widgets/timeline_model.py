"""What the timeline shows, as numbers: which events, in which rows. No widgets here.

A *place* is where an event stands in the whole log, a *position* where it stands among
those that the filter admits, a *row* is a line of the view. Rows and positions differ
by at most two insertions (the rule above the unread ones, and the details under the
selected one), so that each is found from the other at once, however long the log is. In a
short log an event may take several rows (`starts`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from acp_core.model import Event
from acp_tui.widgets.timeline_filter import Filter, select

if TYPE_CHECKING:
    from acp_core.person.attention import LastVisit

AT_ONCE = 2_000
"""Up to how many events are filtered or searched without a thread."""


class Growth(Enum):
    """What a new sequence of events is, beside the one before."""

    SAME = "same"
    GROWN = "grown"
    REWRITTEN = "rewritten"


class Part(Enum):
    """What a row belongs to."""

    EVENT = "event"
    DETAIL = "detail"
    RULE = "rule"


class LastSeen(NamedTuple):
    """How many events were seen at the last visit, and when it was."""

    events: int | None
    at: datetime | None


class Spot(NamedTuple):
    """What stands in a row: ``number`` is a position, a detail's number, or 0 for the rule.

    ``line`` says which of the event's rows it is, from 0.
    """

    part: Part
    number: int
    line: int = 0


class Model:
    """The events, the filter on them, the selected one, and the rows that they take."""

    def __init__(self) -> None:
        self.events: Sequence[Event] = ()
        self.filter = Filter()
        self.unread_from: int | None = None
        self.cursor: int | None = None  # a place
        self.details = 0  # rows under the selected event
        self.starts: Sequence[int] = ()  # first row by position, and of one more; empty: one each
        self._matching: array[int] | None = None  # places in order; None: all of them
        self._last: Event | None = None
        self._length = 0

    # --- events and filter -----------------------------------------------------------------

    def take(self, events: Sequence[Event]) -> Growth:
        """Take over the events of a new Snapshot; filtered ones need `admit` or `refilter`."""
        if events is self.events and len(events) == self._length:
            return Growth.SAME
        self.starts = ()
        before = self._length
        length = len(events)
        grown = length >= before and (before == 0 or _same(events[before - 1], self._last))
        self.events, self._length = events, length
        self._last = events[length - 1] if length else None
        if not grown:
            self._matching = array("l") if self.filter else None
            if self.cursor is not None:
                self.cursor = min(self.cursor, length - 1) if length else None
        return Growth.GROWN if grown else Growth.REWRITTEN

    @property
    def length(self) -> int:
        """How many events the log holds."""
        return self._length

    def choose(self, chosen: Filter) -> bool:
        """Set the filter; returns whether `refilter` (slow) is needed to know what shows."""
        self.filter = chosen
        self.starts = ()
        self._matching = array("l") if chosen else None
        return bool(chosen)

    def refilter(self, places: array[int]) -> None:
        """Take over the places that the filter admits, in order."""
        self.starts = ()
        self._matching = places

    def admit(self, span: range) -> bool:
        """Filter the events of ``span``, the newest ones; returns False where that is too slow."""
        if self._matching is None:
            return True
        if len(span) > AT_ONCE:
            return False
        self.starts = ()
        more = select(self.events, span, self.filter, self.unread_from)
        self._matching.extend(more or ())
        return True

    def __len__(self) -> int:
        """How many events show."""
        return self._length if self._matching is None else len(self._matching)

    def place(self, position: int) -> int:
        """The place of the event at a position."""
        return position if self._matching is None else self._matching[position]

    def position(self, place: int) -> int:
        """The position of the first shown event at ``place`` or after it (`len` where none is)."""
        if self._matching is None:
            return min(place, self._length)
        return bisect_left(self._matching, place)

    def at(self, position: int) -> Event:
        """The event at a position."""
        return self.events[self.place(position)]

    @property
    def cursor_position(self) -> int | None:
        """The position of the selected event; None where nothing is selected, or it is hidden."""
        if self.cursor is None:
            return None
        position = self.position(self.cursor)
        visible = position < len(self) and self.place(position) == self.cursor
        return position if visible else None

    @property
    def selected(self) -> Event | None:
        """The selected event, where it shows."""
        position = self.cursor_position
        return None if position is None else self.at(position)

    def nearest(self) -> int | None:
        """The place of the shown event closest to the selected one, looking back first."""
        if not len(self):
            return None
        if self.cursor is None:
            return self.place(len(self) - 1)
        position = self.position(self.cursor)
        if position < len(self) and self.place(position) == self.cursor:
            return self.cursor
        return self.place(max(0, position - 1))

    def is_unread(self, place: int) -> bool:
        """Whether the event at ``place`` is new since the last visit."""
        return self.unread_from is not None and place >= self.unread_from

    # --- rows ------------------------------------------------------------------------------

    @property
    def rule(self) -> int | None:
        """The position above which the rule stands, or None: all is new, or nothing is."""
        if self.unread_from is None:
            return None
        position = self.position(self.unread_from)
        return position if 0 < position < len(self) else None

    @property
    def rows(self) -> int:
        """How many rows all of it takes."""
        details = self.details if self.cursor_position is not None else 0
        return self._start(len(self)) + (self.rule is not None) + details

    def row(self, position: int) -> int:
        """The first row of the event at a position."""
        rule, cursor = self.rule, self.cursor_position
        above = 1 if rule is not None and position >= rule else 0
        if cursor is not None and position > cursor:
            above += self.details
        return self._start(position) + above

    def height(self, position: int) -> int:
        """How many rows the event at a position takes, without details."""
        return self._start(position + 1) - self._start(position)

    def _start(self, position: int) -> int:
        return self.starts[position] if self.starts else position

    def spot(self, row: int) -> Spot:
        """What stands in a row that exists."""
        rule, cursor = self.rule, self.cursor_position
        if cursor is not None and self.details:
            start = self.row(cursor) + self.height(cursor)
            if start <= row < start + self.details:
                return Spot(Part.DETAIL, row - start)
            if row >= start + self.details:
                row -= self.details
        if rule is not None:
            if row == self._start(rule):
                return Spot(Part.RULE, 0)
            if row > self._start(rule):
                row -= 1
        if not self.starts:
            return Spot(Part.EVENT, row)
        position = bisect_right(self.starts, row) - 1
        return Spot(Part.EVENT, position, row - self.starts[position])


def events_seen(events: Sequence[Event], visit: LastVisit) -> int | None:
    """How many of the events were there at a visit; None where the log is another one since."""
    count = visit.event_count
    if count == 0:
        return 0
    if count > len(events):
        return None
    return count if events[count - 1].id == visit.event_id else None


def _same(event: Event, before: Event | None) -> bool:
    """Whether it is the same entry of the log; what is known about it may have changed."""
    return before is not None and (event.id, event.kind, event.actor, event.at, event.summary) == (
        before.id,
        before.kind,
        before.actor,
        before.at,
        before.summary,
    )
