"""A log as read so far: its events, the state they lead to, and what is wrong with each.

Source: folder protocol specification, "Events". Everything here is fed line by line, so that
an appended event costs the same however long the log is. Usual lines are taken many at a time
(see `lines` and `course`), all others one by one. Standard library only.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from acp_core.files.journal import Lines, without_collector
from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.entries import Entries
from acp_core.protocols.folder.read.lines import Days, Row, rows
from acp_core.protocols.folder.read.transitions import Course
from acp_core.protocols.folder.rules.log_lines import LogCheck
from acp_core.protocols.folder.schema import (
    DELIVERABLE_EVENTS,
    BadLine,
    Entry,
    parse_any,
    parse_line,
)
from acp_core.protocols.folder.state import Machine, Wait

if TYPE_CHECKING:
    from acp_core.protocols.folder.rules.finding import Finding

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
    return lines >= schema.MAX_LINES or size > schema.MAX_LOG - schema.MAX_LINE


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
