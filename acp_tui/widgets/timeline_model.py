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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from acp_core.model import Event

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


CHUNK = 1_000

"""How many events a background search looks at before it asks whether it is still wanted."""

LOOK_BACK = 2_000

"""How many events `find_event` looks at when the id does not say where the event is."""


@dataclass(frozen=True, slots=True)
class Filter:
    """What an event must be to show: any of ``actors``, any of ``kinds``, all of ``words``.

    ``unread`` and ``problems`` restrict to events that are new since the last visit, and to
    events that break a rule. Names match whole, or by a beginning that ends with ``*``.
    """

    actors: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    problems: bool = False
    unread: bool = False

    def __bool__(self) -> bool:
        return bool(self.actors or self.kinds or self.words or self.problems or self.unread)

    def admits(self, event: Event, unread: bool = False) -> bool:
        """Whether ``event`` shows."""
        if self.problems and not event.problem:
            return False
        if self.unread and not unread:
            return False
        if self.actors and not _any(self.actors, event.actor):
            return False
        if self.kinds and not _any(self.kinds, event.kind):
            return False
        if self.words:
            text = searched(event).lower()
            return all(word in text for word in self.words)
        return True

    def __str__(self) -> str:
        """As `parse` reads it."""
        parts = [f"from:{_quoted(actor)}" for actor in self.actors]
        parts += [f"event:{_quoted(kind)}" for kind in self.kinds]
        parts += ["is:illegal"] * self.problems + ["is:new"] * self.unread
        parts += [_quoted(word) for word in self.words]
        return " ".join(parts)


def parse(typed: str) -> Filter:
    """Read what somebody typed: ``from:NAME``, ``event:KIND``, ``is:illegal``, ``is:new``, words.

    ``by:`` is another word for ``from:``, ``kind:`` for ``event:``. Several of one sort are
    alternatives; ``"two words"`` in quotes stay together. Nothing that is typed is an error.
    """
    actors: list[str] = []
    kinds: list[str] = []
    words: list[str] = []
    problems = unread = False
    for word in _split(typed):
        name, colon, value = word.partition(":")
        match name.lower() if colon and value else "":
            case "from" | "by":
                actors.append(value)
            case "event" | "kind":
                kinds.append(value)
            case "is" if value in ("illegal", "problem"):
                problems = True
            case "is" if value in ("new", "unread"):
                unread = True
            case _:
                words.append(word.lower())
    return Filter(tuple(actors), tuple(kinds), tuple(words), problems, unread)


def searched(event: Event) -> str:
    """The text of an event in which words are looked for."""
    return "\n".join(
        (event.summary, event.kind, event.actor, f"#{event.order}", event.document or "",
         event.problem)
    )  # fmt: skip


def chunks(indices: Iterable[range]) -> Iterator[range]:
    """Ranges cut into pieces of at most `CHUNK`."""
    for whole in indices:
        for start in range(whole.start, whole.stop, CHUNK):
            yield range(start, min(start + CHUNK, whole.stop))


def select(
    events: Sequence[Event],
    span: range,
    chosen: Filter,
    unread_from: int | None,
    wanted: Callable[[], bool] = lambda: True,
) -> array[int] | None:
    """The places of the events in ``span`` that show; None when no longer ``wanted``.

    Slow for many events: for a thread.
    """
    places = array("l")
    for chunk in chunks([span]):
        if not wanted():
            return None
        for index in chunk:
            unread = unread_from is not None and index >= unread_from
            if chosen.admits(events[index], unread):
                places.append(index)
    return places


def find_event(events: Sequence[Event], id: str | None, limit: int = LOOK_BACK) -> int | None:
    """Where the event with this ``id`` is, or None.

    A sequence with a method ``find`` is asked. Else: logs mostly number their events from 1, so that the id says where to look; otherwise the
    last ``limit`` events are looked at (quick enough for the interface's thread).
    """
    if id is None:
        return None
    known = getattr(events, "find", None)  # a protocol's own sequence may know at once
    if callable(known):
        place: int | None = known(id)
        return place
    if id.isdecimal() and len(id) < 10:
        for index in (int(id) - 1, int(id)):
            if index < len(events) and events[index].id == id:
                return index
    for index in range(len(events) - 1, max(-1, len(events) - 1 - limit), -1):
        if events[index].id == id:
            return index
    return None


def _any(names: tuple[str, ...], name: str) -> bool:
    return any(
        name.startswith(wanted[:-1]) if wanted.endswith("*") else name == wanted for wanted in names
    )


def _split(typed: str) -> Iterator[str]:
    word, quoted = "", False
    for letter in typed:
        if letter == '"':
            quoted = not quoted
        elif letter.isspace() and not quoted:
            if word:
                yield word
            word = ""
        else:
            word += letter
    if word:
        yield word


def _quoted(word: str) -> str:
    return f'"{word}"' if any(letter.isspace() for letter in word) else word


class Search:
    """The shown events that hold some words.

    ``places`` are in order once ``complete``; before, only what was found so far.
    """

    def __init__(self, words: str) -> None:
        self.words = words
        self.places = array("l")
        self.complete = False
        self._wanted = words.lower()
        self._upto = 0

    def run(self, model: Model, start: int, wanted: Callable[[], bool]) -> Iterator[int | None]:
        """Look at every shown event, from position ``start`` on and around; slow.

        Yields the first place found as soon as it is (at most once), and then None when all
        is done. Yields nothing more once it is no longer ``wanted``.
        """
        places = array("l")
        reported = False
        self._upto = model.length
        length = len(model)
        start = min(max(0, start), length)
        for chunk in chunks([range(start, length), range(start)]):
            if not wanted():
                return
            for position in chunk:
                try:
                    place = model.place(position)
                    held = self._holds(model, place)
                except IndexError:  # the log or the filter changed meanwhile: not wanted anymore
                    return
                if held:
                    places.append(place)
                    if not reported:
                        reported = True
                        yield place
        self.places = array("l", sorted(places))
        self.complete = True
        yield None

    def extend(self, model: Model) -> bool:
        """Look at the events that came since, too; returns False where they are too many."""
        span = range(self._upto, model.length)
        if len(span) > AT_ONCE:
            return False
        self._upto = model.length
        for place in span:
            position = model.position(place)
            visible = position < len(model) and model.place(position) == place
            if visible and self._holds(model, place):
                self.places.append(place)
        return True

    def step(self, place: int | None, by: int) -> int | None:
        """The next (``by`` 1) or previous (-1) found place, around the ends; None without any."""
        if not self.places:
            return None
        if place is None:
            return self.places[0 if by > 0 else -1]
        if by > 0:
            index = bisect_right(self.places, place) % len(self.places)
        else:
            index = bisect_left(self.places, place) - 1
        return self.places[index]

    def number(self, place: int | None) -> int:
        """Which of the found ones ``place`` is, from 1; 0 where it is none."""
        if place is None:
            return 0
        index = bisect_left(self.places, place)
        return index + 1 if index < len(self.places) and self.places[index] == place else 0

    def _holds(self, model: Model, place: int) -> bool:
        return self._wanted in searched(model.events[place]).lower()
