"""A log as read so far: its events, the state they lead to, and what is wrong with each.

Source: folder protocol specification, "Events". Everything here is fed event by event, so
that an appended event costs the same however long the log is. Standard library only.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from copy import copy
from typing import TYPE_CHECKING

from acp_core.files.journal import without_collector
from acp_core.protocols.folder.rules.log_lines import LogCheck
from acp_core.protocols.folder.schema import DELIVERABLE_EVENTS, BadLine, Entry
from acp_core.protocols.folder.state import Machine

if TYPE_CHECKING:
    from acp_core.protocols.folder.rules.finding import Finding

_RECENT = 16  # states that protocol.json may show because it lags a little
_BULK = 2_000  # events from which on the garbage collector would only be in the way

State = tuple[str, str | None, list[str]]
"""Phase, owner and who is waited for, as protocol.json records them."""


class History:
    """The events of one log, in order.

    Attributes:
        entries: the events; only ever appended to.
        machine: the state that they lead to.
        check: what is wrong with single lines and events.
        problems: index in ``entries`` -> why the event is not as it must be.
        reviews: the ``review_submitted`` events.
        deliverables: the ``deliverable_*`` events.
        recent: the states after the last few events, oldest first.
    """

    def __init__(self, participants: Sequence[str], dialect: str) -> None:
        self.participants = tuple(participants)
        self.dialect = dialect
        self.entries: list[Entry] = []
        self.machine = Machine(participants, dialect)
        self.check = LogCheck(participants, dialect)
        self.problems: dict[int, str] = {}
        self.reviews: list[Entry] = []
        self.deliverables: list[Entry] = []
        self.recent: deque[State] = deque([("", None, [])], maxlen=_RECENT)
        self._by_seq: dict[int, list[Entry]] | None = None

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with single lines and events, in their order."""
        return self.check.findings

    @property
    def last(self) -> Entry | None:
        """The last event, or None."""
        return self.entries[-1] if self.entries else None

    def feed(self, items: Sequence[Entry | BadLine]) -> None:
        """Take the next lines of the log."""
        if len(items) < _BULK:
            self._feed(items)
        else:
            with without_collector():
                self._feed(items)

    def _feed(self, items: Iterable[Entry | BadLine]) -> None:
        machine, check, entries = self.machine, self.check, self.entries
        feed, is_plain, remember = machine.feed, check.is_plain, self.recent.append
        for item in items:
            if isinstance(item, BadLine):
                check.take_bad_line(item)
                continue
            problem = "" if is_plain(item) else check.take(item, machine)
            illegal = feed(item)
            if illegal:
                texts = check.take_illegal(item, illegal)
                problem = f"{problem}; {texts}" if problem else texts
            if problem:
                self.problems[len(entries)] = problem
            entries.append(item)
            if item.event == "review_submitted":
                self.reviews.append(item)
            elif item.event in DELIVERABLE_EVENTS:
                self.deliverables.append(item)
            remember((machine.phase, machine.owner, machine.waiting))
        self._by_seq = None

    def followed_by(self, items: Sequence[Entry | BadLine]) -> History:
        """This history and more lines; this one stays as it is."""
        other = copy(self)
        other.entries = [*self.entries]
        other.machine = self.machine.copy()
        other.check = self.check.copy()
        other.problems = dict(self.problems)
        other.reviews = [*self.reviews]
        other.deliverables = [*self.deliverables]
        other.recent = deque(self.recent, maxlen=_RECENT)
        other.feed(items)
        return other

    def again(self, participants: Sequence[str], dialect: str) -> History:
        """The same lines in a collaboration of other participants or another dialect."""
        other = History(participants, dialect)
        lines: list[Entry | BadLine] = [*self.entries, *self.check.bad_lines]
        lines.sort(key=lambda item: item.line)
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

    def was_ever(self, state: State) -> bool:
        """Whether this was the state after some earlier event: what records it lags behind."""
        if state in self.recent:
            return True
        machine = Machine(self.participants, self.dialect)
        for entry in self.entries:
            if (machine.phase, machine.owner, machine.waiting) == state:
                return True
            machine.feed(entry)
        return False
