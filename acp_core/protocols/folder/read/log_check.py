"""Rules about the lines of the log, as they come: each by itself and after the ones before it.

Source: folder protocol specification, "Events". Standard library only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime

from acp_core.model.light import TYPE_CHECKING
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.schema import LOG_FILE, BadLine, Entry
from acp_core.protocols.folder.schema.finding import ADVICE, ERROR, SHOWN, Finding

if TYPE_CHECKING:
    from acp_core.protocols.folder.state import Illegal, Machine

_ADVISED = ("ACP901", "ACP902", "ACP954")  # faults of a line that every other reader accepts

_TO_LOOK_AT = frozenset(
    {"initialized", "readiness_passed", "completed", *schema.DELIVERABLE_EVENTS}
)

_NAMED = (*schema.DOCUMENTS, schema.PROTOCOL_FILE, "")

_PLAIN_DOCUMENTS = frozenset({*_NAMED[:-1], None})


class LogCheck:
    """Checks each line of a log by itself and against the ones before it.

    Of each code only the first findings are kept; `left_out` counts the rest.

    Attributes:
        findings: in the order of the lines.
        bad_lines: the lines that are no events.
        regular: whether the events bear the seqs 1, 2, 3 and so on, without a bad line.
        unread: the bad lines since the last event.
        expected: the seq that comes next, None where that cannot be said.
        last_at: the time of the last event, in the one form that sorts as text, else "".
        plain_events: the events of which the state machine says all there is to say.
        plain_documents: likewise, documents as a line names them.
    """

    plain_documents = frozenset(name.encode() for name in _NAMED)

    def __init__(self, participants: Sequence[str], dialect: str) -> None:
        self.findings: list[Finding] = []
        self.bad_lines: list[BadLine] = []
        self.regular = True
        self.unread = 0
        self.count = 0
        self.left_out: Counter[str] = Counter()
        self._kept: Counter[str] = Counter()
        self._participants = frozenset(participants)
        self._events = frozenset(schema.events_of(dialect))
        self._delivers = dialect == schema.V2
        self.plain_events = self._events - _TO_LOOK_AT
        self.expected: int | None = 1
        self._ended = False  # whether something was completed: whatever follows is odd
        self._seen: set[int] | None = None  # only once the seqs are irregular
        self.last_at = ""
        self._last_time: datetime | None = None

    def copy(self) -> LogCheck:
        """An independent check in the same state."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in ("findings", "bad_lines", "left_out", "_kept", "_seen"):
            value = getattr(self, name)
            setattr(other, name, None if value is None else value.copy())
        return other

    @property
    def broken(self) -> Finding | None:
        """The first line that can never be right again, since earlier events are not rewritten."""
        return next((each for each in self.findings if each.severity == ERROR), None)

    @property
    def is_usual(self) -> bool:
        """Whether of a usual next line (see `lines`) nothing may have to be said."""
        return self.regular and not self._ended and bool(self.last_at)

    def took(self, events: int, at: str) -> None:
        """So many usual events were taken, the last one at this time: nothing is said of them."""
        assert self.expected is not None
        self.expected += events
        self.count += events
        self.last_at = at

    def stand(self, events: int, at: str, ended: bool) -> None:
        """Stand where so many events have led of which nothing is to be said.

        Args:
            events: how many.
            at: the time of the last one.
            ended: whether one of them was ``completed``.
        """
        self.took(events, at)
        self._ended = ended

    def is_plain(self, entry: Entry) -> bool:
        """Take an event of which nothing is to be said; False leaves it to `take`."""
        _, seq, sender, event, at, summary, doc, reply_to, _, _, _, faults, _ = entry
        if (
            seq is None
            or seq != self.expected
            or faults
            or reply_to is None
            or reply_to >= seq
            or not self.regular
            or self._ended
            or event not in self.plain_events
            or sender not in self._participants
            or doc not in _PLAIN_DOCUMENTS
            or len(summary) > schema.MAX_SUMMARY
            or not summary.strip()
            or not _is_canonical(at)
            or not self.last_at
            or at < self.last_at
        ):
            return False
        self.expected = seq + 1
        self.last_at = at
        self.count += 1
        return True

    def take_bad_line(self, bad: BadLine) -> None:
        """Take a line that is no event."""
        if len(self.bad_lines) < 10 * SHOWN:
            self.bad_lines.append(bad)
        self._add(bad.code, bad.text, bad.line, None)
        self.unread += 1
        self.expected = None
        self._become_irregular()

    def take_illegal(self, entry: Entry, illegal: Sequence[Illegal]) -> str:
        """Note the rules of the state machine that an event breaks; returns them as one text."""
        for rule in illegal:
            self._add(rule.code, rule.text, entry.line, entry.seq)
        return "; ".join(rule.text for rule in illegal)

    def take_owner(self, entry: Entry, before: str) -> None:
        """Note that an event of somebody else made its author the proposal's owner."""
        text = f"seq {entry.name}: {entry.sender!r} owns the proposal from here on, no longer {before!r}"
        self._add("ACP953", text, entry.line, entry.seq, ADVICE)

    def take(self, entry: Entry, before: Machine) -> str:
        """Take an event, ``before`` being the state before it; returns what is wrong with it."""
        wrong = [
            *self._wrong_fields(entry),
            *self._wrong_seq(entry),
            *self._wrong_reply(entry),
            *self._wrong_time(entry),
            *self._wrong_deliverable(entry),
        ]
        for code, text in wrong:
            self._add(code, text, entry.line, entry.seq)
        for code, text in _advice(entry, before):
            self._add(code, text, entry.line, entry.seq, ADVICE)
        self.count += 1
        self.unread = 0
        self._ended = self._ended or entry.event == "completed"
        if self._seen is not None and entry.seq is not None:
            self._seen.add(entry.seq)
        return "; ".join(text for _, text in wrong)

    def _add(self, code: str, text: str, line: int, seq: int | None, severity: str = ERROR) -> None:
        if self._kept[code] >= SHOWN:
            self.left_out[code] += 1
            return
        self._kept[code] += 1
        self.findings.append(Finding(code, text, severity, LOG_FILE, line, seq))

    def _wrong_fields(self, entry: Entry) -> Iterator[tuple[str, str]]:
        name = entry.name
        for fault in entry.faults:
            if fault.code not in _ADVISED:
                yield fault.code, f"seq {name}: {fault.text}"
        if entry.event not in self._events and not _is_said(entry, "ACP211", "event"):
            yield "ACP211", f"seq {name}: unknown event {entry.event!r}"
        unlisted = entry.sender not in self._participants
        if entry.event == "initialized":
            unlisted = False  # the state machine says so
        if unlisted and not _is_said(entry, "ACP212", "from"):
            text = f"participant {entry.sender!r} is not listed in protocol.json"
            yield "ACP212", f"seq {name}: {text}"

    def _wrong_seq(self, entry: Entry) -> Iterator[tuple[str, str]]:
        expected, seq = self.expected, entry.seq
        missing = seq is None and not entry.label
        if expected is not None and seq != expected:
            self._become_irregular()
            if not missing:  # a missing one has been said
                yield "ACP215", f"{LOG_FILE}: expected seq {expected}, found {entry.name}"
        elif expected is None and seq is None and not missing:
            yield "ACP215", f"{LOG_FILE}: found seq {entry.name}"
        if seq is not None:
            self.expected = seq + 1
        elif expected is not None:
            self.expected = expected + 1

    def _become_irregular(self) -> None:
        if self.regular:
            self.regular = False
            self._seen = set(range(1, self.count + 1))

    def _wrong_reply(self, entry: Entry) -> Iterator[tuple[str, str]]:
        reply_to, seq, name = entry.reply_to, entry.seq, entry.name
        if reply_to is None:
            said = _is_said(entry, "ACP213", "reply_to")
            if entry.event != "initialized" and not said:
                yield "ACP216", f"seq {name}: reply_to is required after initialized"
            return
        if self._seen is None:
            exists = seq is not None and reply_to < seq
        else:
            exists = reply_to in self._seen and reply_to != seq
        if not exists:
            yield "ACP213", f"seq {name}: reply_to must point to an earlier event"

    def _wrong_time(self, entry: Entry) -> Iterator[tuple[str, str]]:
        if _is_said(entry, "ACP214", "at"):
            return
        moment = schema.parse_time(entry.at)
        if moment is None or not _has_zone(entry.at):
            yield "ACP214", f"seq {entry.name}: at must be an ISO-8601 timestamp"
            return
        last = schema.parse_time(self.last_at) if self.last_at else self._last_time
        if last is not None and moment < last:
            yield "ACP217", f"seq {entry.name}: at must not be earlier than the previous event"
        self.last_at = entry.at if _is_canonical(entry.at) else ""
        self._last_time = moment

    def _wrong_deliverable(self, entry: Entry) -> Iterator[tuple[str, str]]:
        """A deliverable's event that does not say of which, in which role, or frozen as what."""
        if not self._delivers or entry.event not in schema.DELIVERABLE_EVENTS:
            return
        name = entry.name
        if entry.role not in ("primary", "supporting"):
            yield "ACP501", f"seq {name}: deliverable events require role"
        if not entry.doc:
            yield "ACP502", f"seq {name}: deliverable events require doc"
        if entry.event == "deliverable_frozen" and not schema.is_digest(entry.sha256):
            yield "ACP503", f"seq {name}: deliverable_frozen requires sha256"


def _is_said(entry: Entry, code: str, field: str) -> bool:
    """Whether reading the line has found the field missing or of a wrong type."""
    missing = f"missing required field {field}"
    return any(fault.code == code or fault.text == missing for fault in entry.faults)


def _is_canonical(at: str) -> bool:
    """Whether a time has the form that every tool writes, in which order is that of text."""
    if len(at) != 20 or at[4::3] != "--T::Z":  # YYYY-MM-DDTHH:MM:SSZ
        return False
    try:
        datetime.fromisoformat(at)
    except ValueError:
        return False
    return True


def _advice(entry: Entry, before: Machine) -> Iterator[tuple[str, str]]:
    """What every other reader accepts, but is a sign of trouble."""
    name = entry.name
    for fault in entry.faults:
        if fault.code in _ADVISED:
            yield fault.code, f"seq {name}: {fault.text}"
    if len(entry.summary) > schema.MAX_SUMMARY:
        yield "ACP903", f"seq {name}: the summary is longer than {schema.MAX_SUMMARY} characters"
    elif not entry.summary.strip() and not _is_said(entry, "ACP902", "summary"):
        yield "ACP903", f"seq {name}: the summary is empty"
    if entry.doc is not None and leads_out(entry.doc):
        yield "ACP904", f"seq {name}: doc {entry.doc!r} points outside the folder"
    readable = schema.parse_time(entry.at) is not None and _has_zone(entry.at)
    if readable and not _is_canonical(entry.at):
        yield "ACP905", f"seq {name}: at {entry.at!r} is not UTC with whole seconds and Z"
    if "completed" in before.last:
        yield "ACP907", f"seq {name}: {entry.event} after completed"
    elif entry.event == "readiness_passed" and before.passed:
        yield "ACP908", f"seq {name}: readiness was passed before"


def leads_out(doc: str) -> bool:
    """Whether a ``doc`` names something outside the collaboration's folder."""
    if doc.startswith("external:"):
        return ".." in doc.removeprefix("external:").replace("\\", "/").split("/")
    parts = doc.replace("\\", "/").split("/")
    return doc.startswith(("/", "\\", "~")) or ".." in parts or "\0" in doc or doc[1:2] == ":"


def _has_zone(at: str) -> bool:
    """Whether a time that can be read names its offset from UTC."""
    return at.endswith("Z") or datetime.fromisoformat(at).tzinfo is not None
