"""A log as read so far: its events, the state they lead to, and what is wrong with each.

Source: folder protocol specification, "Events". Everything here is fed line by line, so that an
appended event costs the same however long the log is. Usual lines, which have the form in which
every tool writes an event that replies to another one, are taken many at a time (`rows`); their
steps of the state machine are learned once and then looked up (`Course`); an event is made of its
line only when it is asked for (`Entries`), so that a log of 100,000 events is little more than its
bytes. All other lines are taken one by one. Standard library only.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from itertools import islice

from acp_core.files.journal import Lines, without_collector
from acp_core.model.light import TYPE_CHECKING, NamedTuple
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import (
    DELIVERABLE_EVENTS,
    BadLine,
    Entry,
    parse_any,
    parse_line,
)
from acp_core.protocols.folder.state import Core, LogCheck, Machine, Wait

if TYPE_CHECKING:
    from typing import overload

    from acp_core.protocols.folder.schema.records import BadLine, Entry, Finding
    from acp_core.protocols.folder.state import Machine

LONG = 1 << 20  # bytes of a log from which on it pays to keep where it stands (see `checkpoint`)

_RECENT = 16  # states that protocol.json may show because it lags a little

_BULK = 500  # lines from which on the garbage collector would only be in the way

_MANY = 20  # lines from which on it pays to compile what takes many of them at one go

_STATES = 4_096  # different states that are remembered

State = tuple[str, str | None, list[str]]
"""Phase, owner and who is waited for, as protocol.json records them."""


def is_full(lines: int, size: int) -> bool:
    """Whether a log is as large as it is read: no event can follow, however short.

    Args:
        lines: its complete lines.
        size: its bytes.
    """
    return lines >= records.MAX_LINES or size > records.MAX_LOG - records.MAX_LINE


class History:
    """The events of one log, in order.

    Attributes:
        entries: the events; only ever appended to.
        machine: the state that they lead to.
        check: what is wrong with single lines and events.
        problems: index in ``entries`` -> why the event is not as it must be.
        deliverables: the ``deliverable_*`` events.
        latest: author -> index in ``entries`` of the last event.
        said: author -> number of events.
        recent: the states after the last few events, oldest first.
    """

    def __init__(self, participants: Sequence[str], dialect: str) -> None:
        self.participants = tuple(participants)
        self.dialect = dialect
        self.entries = Entries()
        self.machine = Machine(participants, dialect)
        self.check = LogCheck(participants, dialect)
        self.problems: dict[int, str] = {}
        self._earlier: Callable[[], History] | None = None
        self._review_at = array("I")
        self.deliverables: list[Entry] = []
        self.latest: dict[str, int] = {}
        self.said: dict[str, int] = {}
        self.recent: deque[State] = deque([("", None, [])], maxlen=_RECENT)
        self._states: set[tuple[str, str | None, tuple[str, ...]]] = {("", None, ())}
        self._course = Course(self.machine, self.check.plain_events)
        self._days = Days()
        self._by_seq: dict[int, list[Entry]] | None = None

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with single lines and events, in their order."""
        return self.check.findings

    @property
    def broken(self) -> Finding | None:
        """Why the log can never become valid again; None where it can."""
        return self.check.broken

    @property
    def review_at(self) -> array[int]:
        """The indexes in ``entries`` of the ``review_submitted`` events."""
        self._derive()
        return self._review_at

    def follow(self, earlier: Callable[[], History]) -> None:
        """Go on from where another history stands, which is asked for what is seldom wanted.

        Args:
            earlier: gives the history of the lines before, the same one each time.
        """
        self._earlier = earlier
        self.machine.follow(lambda: earlier().machine)

    def _derive(self) -> None:
        if self._earlier is not None:
            first = self._earlier()
            self._review_at = first.review_at + self._review_at
            self._states = first._states | self._states
            self._earlier = None

    @property
    def last(self) -> Entry | None:
        """The last event, or None."""
        return self.entries[-1] if self.entries else None

    @property
    def reviews(self) -> list[Entry]:
        """The ``review_submitted`` events."""
        return [self.entries[index] for index in self.review_at]

    @property
    def blockers(self) -> list[Entry]:
        """The ``blocked`` events, the first one first: each keeps its reason."""
        if "blocked" not in self.machine.last:
            return []
        return [entry for entry in self.entries if entry.event == "blocked"]

    def read(self, block: Lines) -> None:
        """Take the next lines of the log."""
        if block.count < _BULK:
            self._read(block)
        else:
            with without_collector():
                self._read(block)

    def feed(self, items: Iterable[Entry | BadLine]) -> None:
        """Take the next lines of the log, each read for itself."""
        for item in items:
            self._take(item)

    def _read(self, block: Lines) -> None:
        many = block.count >= _MANY
        found = rows(block) if many and self.check.regular else None
        parse = parse_line if many else parse_any
        position = 0
        while position < block.count:
            if found is not None and found[position][0] and self.check.is_usual:
                position = self._run(found, block, position)
                if position == block.count:
                    return
            row = found[position] if found is not None else None
            raw = row[5] if row is not None and not row[0] else block.lines[position]
            item = parse(raw, block.first + position)
            if item is not None:
                self._take(item)
            position += 1

    def _run(self, found: list[Row], block: Lines, start: int) -> int:
        """Take usual lines from ``start`` on; returns the position of the first that is not."""
        machine, check, course = self.machine, self.check, self._course
        (starts, reviews), began, last_of = machine.noted(), machine.began, machine.last
        latest, said_by = self.latest, self.said
        remember, note_review = self.recent.append, self._review_at.append
        documents, days, learn = check.plain_documents, self._days, course.learn
        place = course.place(machine)
        steps, before = place.steps, b""
        expected, at_text, rounds = check.expected or 0, check.last_at, machine.round
        last_at, index = at_text.encode(), len(self.entries)
        since, since_at = 0, ""
        for seq, said, at, document, reply_to, _ in islice(found, start, None):
            step = steps.get(said)
            if step is None and seq:
                step = learn(place, said)
                if step is not None:  # whatever else is said of it: this is where it leads
                    self._note_state(step.then.core.waiting, step.then.state)
            if (
                step is None
                or int(seq) != expected
                or (reply_to != before and int(reply_to) >= expected)
                or document not in documents
                or (at != last_at and (at < last_at or not days[at[:10]]))
            ):
                break
            place, sender, event, enters, proposes, is_review, anew = step
            steps = place.steps
            before = seq
            if at != last_at:
                last_at, at_text = at, at.decode()
            if proposes:
                rounds += 1
            if is_review:
                reviews[expected] = sender
                note_review(index)
            if anew:
                since, since_at = expected, at_text
            if enters:
                starts.append((enters, rounds or 1, expected, at_text))
                began[enters] = at_text
            last_of[event] = expected
            latest[sender] = index
            said_by[sender] = said_by.get(sender, 0) + 1
            remember(place.state)
            expected += 1
            index += 1
        taken = index - len(self.entries)
        position = start + taken
        if taken:
            self.entries.extend(block, start, position)
            machine.went(place.core, taken, rounds, Wait(since, since_at) if since else None)
            check.took(taken, at_text)
            self._by_seq = None
        return position

    def _take(self, item: Entry | BadLine) -> None:
        """Take a line that was read for itself."""
        machine, check, entries = self.machine, self.check, self.entries
        if isinstance(item, BadLine):
            check.take_bad_line(item)
            return
        problem = "" if check.is_plain(item) else check.take(item, machine)
        owner = machine.owner
        illegal = machine.feed(item)
        if illegal:
            texts = check.take_illegal(item, illegal)
            if owner is not None and machine.owner != owner:
                check.take_owner(item, owner)
            problem = f"{problem}; {texts}" if problem else texts
        index = len(entries)
        if problem:
            self.problems[index] = problem
        if item.event == "review_submitted":
            self._review_at.append(index)
        elif item.event in DELIVERABLE_EVENTS:
            self.deliverables.append(item)
        entries.append(item)
        self.latest[item.sender] = index
        self.said[item.sender] = self.said.get(item.sender, 0) + 1
        self.recent.append((machine.phase, machine.owner, machine.waiting))
        self._note_state(tuple(machine.waiting), self.recent[-1])
        self._by_seq = None

    def _note_state(self, waiting: tuple[str, ...], state: State) -> None:
        if len(self._states) < _STATES:
            self._states.add((state[0], state[1], waiting))

    def copy(self) -> History:
        """An independent history of the same lines."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.entries = self.entries.copy()
        other.machine = self.machine.copy()
        other.check = self.check.copy()
        other.problems = dict(self.problems)
        other._review_at = self._review_at[:]
        other.deliverables = [*self.deliverables]
        other.latest, other.said = dict(self.latest), dict(self.said)
        other.recent = deque(self.recent, maxlen=_RECENT)
        other._states = set(self._states)
        other._course = Course(other.machine, other.check.plain_events)  # it learns for itself
        return other

    def followed_by(self, items: Iterable[Entry | BadLine]) -> History:
        """This history and more lines; this one stays as it is."""
        other = self.copy()
        other.feed(items)
        return other

    def again(self, participants: Sequence[str], dialect: str) -> History:
        """The same lines in a collaboration of other participants or another dialect."""
        other = History(participants, dialect)
        bad = self.check.bad_lines
        whole = self.entries.block() if not bad else None
        if whole is not None:
            other.read(whole)
            return other
        lines: list[Entry | BadLine] = [*self.entries, *bad]
        lines.sort(key=lambda item: item.line)
        with without_collector():
            other.feed(lines)
        return other

    def with_seq(self, seq: int) -> list[Entry]:
        """The events that bear a seq: one in a sound log, none or several in a broken one."""
        if self.check.regular:
            return self.entries[seq - 1 : seq] if seq >= 1 else []
        if self._by_seq is None:
            self._by_seq = {}
            for entry in self.entries:
                if entry.seq is not None:
                    self._by_seq.setdefault(entry.seq, []).append(entry)
        return self._by_seq.get(seq, [])

    def gap(self) -> tuple[int, Entry] | None:
        """The first event that does not bear the number of its place, and that number."""
        if self.check.regular:
            return None
        numbered = enumerate(self.entries, 1)
        return next(((place, entry) for place, entry in numbered if entry.seq != place), None)

    def was_ever(self, state: State) -> bool:
        """Whether this was the state after some earlier event: what records it lags behind."""
        if state in self.recent:
            return True
        self._derive()
        phase, owner, waiting = state
        try:
            if (phase, owner, tuple(waiting)) in self._states:
                return True
        except TypeError:  # what protocol.json says is no state at all
            return False
        if len(self._states) < _STATES:
            return False
        machine = Machine(self.participants, self.dialect)
        for entry in self.entries:
            if (machine.phase, machine.owner, machine.waiting) == state:
                return True
            machine.feed(entry)
        return False


Row = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
"""Seq, sender and event (see `author_and_event`), time, document ("" for none) and the seq that is
replied to, as they stand in a usual line; of another one the last item is the line, the rest empty."""

_KNOWN = 1_000  # pairs of a sender and an event that are remembered

_FEW = 1_900  # bytes: a shorter line's summary is not too long

_UNUSUAL = bytes({*range(0x20), 0x5C})  # of these, lines without escapes hold their newlines only

_NUMBER = rb"[1-9][0-9]{0,14}+"

_TEXT = rb'[^"\\\x00-\x1f]*+'

_SUMMARY = rb'[^"\\\x00-\x20\x7f-\xff][^"\\\x00-\x1f]*+(?:\\["\\/bfnrt][^"\\\x00-\x1f]*+)*+'

_AT = (
    rb"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
    rb"T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
)

# Where a block holds nothing unusual, a text ends at the next quotation mark: that is found faster.
# A text with a newline takes two lines for one row, which `rows` notices.
_PLAIN_TEXT = rb'[^"]*+'

_PLAIN_SUMMARY = rb'[!#-~][^"]{0,1900}+'


def _row(text: bytes, summary: bytes) -> re.Pattern[bytes]:
    return re.compile(
        rb'\{"seq":(%(n)b),"from":"(%(t)b","event":"%(t)b)","at":"(%(at)b)","summary":"%(s)b"'
        rb'(?:,"doc":"(%(t)b)")?+,"reply_to":(%(n)b)(?:,"key":"%(t)b")?+\}\n|([^\n]*)\n'
        % {b"n": _NUMBER, b"t": text, b"at": _AT, b"s": summary}
    )


def rows(block: Lines) -> list[Row] | None:
    """One row for each line; None where hardly a line, or not the text as a whole, is usual."""
    data = block.data
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return None
        if not records.holds_no_breaker(data):
            return None
    # The only such bytes are the lines' ends: nothing is escaped, and nothing has to be.
    plain = len(data) - len(data.translate(None, _UNUSUAL)) == block.count
    if not plain and max(map(len, block.lines), default=0) > _FEW:
        return None
    pattern = _row(_PLAIN_TEXT, _PLAIN_SUMMARY) if plain else _row(_TEXT, _SUMMARY)
    found: list[Row] = pattern.findall(data)
    unusual = [row[0] for row in found].count(b"")
    return found if unusual * 4 < len(found) and len(found) == block.count else None


def author_and_event(said: bytes) -> tuple[str, str]:
    """The sender and the event of a row."""
    sender, _, event = said.partition(b'","event":"')
    return sender.decode(), event.decode()


class Outlines:
    """Makes the events of usual lines, but for their summaries and keys."""

    def __init__(self) -> None:
        self._said: dict[bytes, tuple[str, str]] = {}
        self._at, self._time = b"", ""

    def of(self, row: Row, line: int) -> records.Entry:
        """The event of a row in the line of this number."""
        seq, said, at, document, reply_to, _ = row
        names = self._said.get(said)
        if names is None:
            names = author_and_event(said)
            if len(self._said) < _KNOWN:
                self._said[said] = names
        if at != self._at:
            self._at, self._time = at, at.decode()
        sender, event = names
        doc = document.decode() if document else None
        return tuple.__new__(  # as Entry(...), at half the cost
            records.Entry,
            (
                line,
                int(seq),
                sender,
                event,
                self._time,
                "",
                doc,
                int(reply_to),
                None,
                None,
                None,
                (),
                "",
            ),
        )


class Days(dict[bytes, bool]):
    """Whether a date exists, for the dates that a log holds."""

    def __missing__(self, day: bytes) -> bool:
        try:
            date.fromisoformat(day.decode())
        except ValueError:
            exists = False
        else:
            exists = True
        if len(self) < 10_000:
            self[day] = exists
        return exists


_MADE = 4_096  # events that are kept once they were made: those near the end are asked for often


class _Block:
    """Lines that follow each other: as one text until one of them is asked for, then each for itself.

    Args:
        held: the text, each line with its newline; or the lines without.
    """

    __slots__ = ("_held",)

    def __init__(self, held: bytes | memoryview | list[bytes]) -> None:
        self._held = held  # replaced in one step: other threads read it too

    @property
    def lines(self) -> list[bytes]:
        """The lines, without their newlines."""
        held = self._held
        if not isinstance(held, list):
            held = bytes(held).split(b"\n")
            held.pop()
            self._held = held
        return held

    @property
    def text(self) -> bytes:
        """The lines, each with its newline."""
        held = self._held
        return b"\n".join([*held, b""]) if isinstance(held, list) else bytes(held)

    def may_hold(self, word: bytes) -> bool:
        """Whether the word may stand in one of them."""
        if isinstance(self._held, list):
            return True
        text = self.text
        return word in text or b"\\" in text


class Entries(Sequence[Entry]):
    """The events of one log, in order; only ever appended to.

    An event that was read for itself is kept as it is; one of many usual lines as its line.
    """

    __slots__ = ("_breaks", "_count", "_made", "_pieces", "_shifts", "_starts")

    def __init__(self) -> None:
        self._count = 0
        # Pieces that follow each other, and the index of the first event of each.
        self._pieces: list[list[Entry] | _Block] = []
        self._starts: list[int] = []
        # From which index on a line's number is how much more than its index.
        self._breaks: list[int] = []
        self._shifts: list[int] = []
        self._made: dict[int, Entry] = {}

    def __len__(self) -> int:
        return self._count

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, index: int) -> Entry: ...
        @overload
        def __getitem__(self, index: slice) -> list[Entry]: ...

    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [self._entry(i) for i in range(*index.indices(self._count))]
        return self._entry(index if index >= 0 else self._count + index)

    def _entry(self, index: int) -> Entry:
        made = self._made.get(index)
        if made is not None:
            return made
        if not 0 <= index < self._count:
            raise IndexError(index)
        number = bisect_right(self._starts, index) - 1
        piece, place = self._pieces[number], index - self._starts[number]
        if isinstance(piece, list):
            return piece[place]
        entry = parse_line(piece.lines[place], self.line_of(index))
        assert isinstance(entry, Entry)  # only such lines are kept
        if len(self._made) >= _MADE:
            self._made.clear()
        self._made[index] = entry
        return entry

    def append(self, entry: Entry) -> None:
        """Add an event that was read for itself."""
        self._note(self._count, entry.line)
        piece = self._pieces[-1] if self._pieces else None
        if isinstance(piece, list):
            piece.append(entry)
        else:
            self._add([entry])
        self._count += 1

    def extend(self, block: Lines, start: int, end: int) -> None:
        """Add lines of a block of which each is known to be an event: from ``start`` up to ``end``."""
        if start < end:
            self._note(self._count, block.first + start)
            whole = end - start == block.count
            self._add(_Block(block.data if whole else block.lines[start:end]))
            self._count += end - start

    def extend_with(self, text: memoryview, lines: int) -> None:
        """Add so many whole lines, none of them blank, of which each is known to be an event.

        They follow the events that are there, which have a line each.
        """
        self._note(self._count, self._count + 1)
        self._add(_Block(text))
        self._count += lines

    def _add(self, piece: list[Entry] | _Block) -> None:
        self._starts.append(self._count)
        self._pieces.append(piece)

    def _note(self, index: int, line: int) -> None:
        if not self._shifts or line - index != self._shifts[-1]:
            self._breaks.append(index)
            self._shifts.append(line - index)

    def outlines(self) -> Iterator[Entry]:
        """Every event in order, one after the other, and none of them kept.

        Those of usual lines come without summary and key: they cost a tenth of whole ones.
        """
        outline = Outlines().of
        for start, piece in zip(self._starts, self._pieces, strict=False):
            if isinstance(piece, list):
                yield from piece
                continue
            found = rows(Lines(piece.text, 1))
            if found is None:
                yield from (self._entry(index) for index in range(start, start + len(piece.lines)))
                continue
            first = self.line_of(start)  # the lines of a piece follow each other
            for index, row in enumerate(found):
                yield outline(row, first + index) if row[0] else self._entry(start + index)

    def naming(self, text: str) -> Iterator[Entry]:
        """The events that may have this text as a field: all others are passed over without being made."""
        written = text.encode(errors="surrogatepass")  # unless it was escaped
        for start, piece in zip(self._starts, self._pieces, strict=False):
            if isinstance(piece, list):
                yield from piece
            elif piece.may_hold(written):
                for index, line in enumerate(piece.lines, start):
                    if written in line or b"\\" in line:
                        yield self._entry(index)

    def line_of(self, index: int) -> int:
        """The number of the line, from 1, in which an event stands.

        Raises:
            IndexError: there is no such event.
        """
        if not 0 <= index < self._count:
            raise IndexError(index)
        return index + self._shifts[bisect_right(self._breaks, index) - 1]

    def at_line(self, line: int, among: int) -> int | None:
        """The index of the event in a line, among the first so many events, or None."""
        found = bisect_left(range(among), line, key=self.line_of)
        return found if found < among and self.line_of(found) == line else None

    def block(self) -> Lines | None:
        """All events as lines that follow each other, where they were kept so."""
        blocks = [piece for piece in self._pieces if isinstance(piece, _Block)]
        if len(blocks) < len(self._pieces) or len(self._breaks) != 1:
            return None
        lines = [line for block in blocks for line in block.lines]
        return Lines(b"\n".join([*lines, b""]), self.line_of(0))

    def copy(self) -> Entries:
        """An independent sequence of the same events."""
        other = Entries()
        other._count, other._starts = self._count, self._starts.copy()
        other._pieces = [each.copy() if isinstance(each, list) else each for each in self._pieces]
        other._breaks, other._shifts = self._breaks.copy(), self._shifts.copy()
        return other


_MOST = 4_096  # steps that are kept: more would be a log in which hardly one comes twice

_BEFORE = Wait(None, "before")


class Step(NamedTuple):
    """What an event does.

    Attributes:
        then: the place that it leads to.
        sender, event: who says what.
        enters: the phase that begins, "" for none.
        proposes: whether a round begins.
        reviews: whether it is a review.
        anew: whether those who are waited for are so from now on.
    """

    then: Place
    sender: str
    event: str
    enters: str
    proposes: bool
    reviews: bool
    anew: bool


class Place:
    """Where a log may stand, and the steps that are known to lead on.

    Attributes:
        core: what decides which events are legal.
        steps: sender and event as a line holds them -> the step; None where it is none to take.
        state: phase, owner and who is waited for.
    """

    __slots__ = ("core", "state", "steps")

    def __init__(self, core: Core) -> None:
        self.core = core
        self.steps: dict[bytes, Step | None] = {}
        self.state = (core.phase, core.owner, list(core.waiting))


class Course:
    """The places and steps of one collaboration.

    Args:
        machine: the state machine from whose rules they are learned.
        events: the events of which nothing beyond legality is to be said.
    """

    def __init__(self, machine: Machine, events: frozenset[str]) -> None:
        self._people, self._dialect = machine.participants, machine.dialect
        self._listed = frozenset(machine.participants)
        self._events = events
        self._places: dict[Core, Place] = {}
        self._learned = 0

    def place(self, machine: Machine) -> Place:
        """Where a machine stands."""
        return self._place(machine.core())

    def _place(self, core: Core) -> Place:
        place = self._places.get(core)
        if place is None:
            if len(self._places) >= _MOST:
                self._places.clear()
            place = self._places[core] = Place(core)
        return place

    def learn(self, place: Place, said: bytes) -> Step | None:
        """The step that an event is from a place; None where it must be looked at for itself."""
        if said in place.steps or self._learned >= _MOST:
            return place.steps.get(said)
        self._learned += 1
        sender, event = author_and_event(said)
        step = None
        if sender in self._listed and event in self._events:
            step = self._tried(place, sender, event)
        place.steps[said] = step
        return step

    def _tried(self, place: Place, sender: str, event: str) -> Step | None:
        core = place.core
        machine = Machine(self._people, self._dialect)
        machine.stand(core)
        machine.count = 2
        machine.waits = dict.fromkeys(core.waiting, _BEFORE)
        entry = Entry(3, 3, sender, event, "now", "-", None, 2, None, None, None)
        if machine.feed(entry):
            return None
        kept = [wait is _BEFORE for wait in machine.waits.values()]
        if any(kept) and not all(kept):
            return None
        return Step(
            then=self._place(machine.core()),
            sender=sender,
            event=event,
            enters=machine.phase if machine.phase != core.phase else "",
            proposes=machine.round > 0,
            reviews=bool(machine.reviews),
            anew=not all(kept) or not kept,
        )


NEWLINES = "convert them to newlines (`tr '\\r' '\\n'`) while no participant is writing"
