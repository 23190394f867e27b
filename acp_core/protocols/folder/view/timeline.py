"""The log as the timeline shows it: events made when they are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple, overload

from acp_core.model import (
    Document,
    Event,
    Matter,
    NextAction,
    Participant,
    Phase,
    PhaseState,
    Tone,
    Turn,
    Visit,
)
from acp_core.model.matter import remark
from acp_core.model.past import Mark
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder.prompts import next_actions as prompts
from acp_core.protocols.folder.read import current_state
from acp_core.protocols.folder.read.current_state import PHASES, current_phase
from acp_core.protocols.folder.read.facts import (
    INFERRED,
    README,
    TOLERANCE,
    Facts,
    File,
    trusted_after,
)
from acp_core.protocols.folder.read.log import Entries, History
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import LOG_FILE, UNKNOWN_DIALECT, Entry, list_in
from acp_core.protocols.folder.state import Machine, leads_out

TONES = {
    "initialized": Tone.START,
    "proposal_submitted": Tone.SUBMIT,
    "review_submitted": Tone.REVIEW,
    "proposal_revised": Tone.REVISE,
    "question_classified": Tone.DECIDE,
    "decision_proposed": Tone.DECIDE,
    "decision_accepted": Tone.ACCEPT,
    "readiness_passed": Tone.PASS,
    "completed": Tone.DONE,
    "blocked": Tone.BLOCKED,
    "deliverable_drafted": Tone.SUBMIT,
    "deliverable_revised": Tone.REVISE,
    "deliverable_frozen": Tone.PASS,
}

_SPEAKS_OF = {
    "initialized": records.PROTOCOL_FILE,
    "proposal_submitted": "proposal.md",
    "review_submitted": "review.md",
    "proposal_revised": "proposal.md",
    "question_classified": "readiness.md",
    "decision_proposed": "decisions.md",
    "decision_accepted": "decisions.md",
    "readiness_passed": "readiness.md",
    "completed": "conclusion.md",
}

_SUMMARY = 2_000

_KEPT = 1_000
"""Events that are kept once they were made: those that screens look at again and again."""


class EventLog(Sequence[Event]):
    """The events of a log, in order; each is made when it is asked for.

    Several of them share one list of entries, of which each shows the first ``count``.

    Args:
        entries: the log's entries; only ever appended to.
        problems: index -> why the event is not as it must be.
        headings: seq of a review -> the line of its heading in review.md.
        before: an earlier one of the same entries, whose events are taken over.
    """

    __slots__ = ("_count", "_entries", "_headings", "_made", "_marks", "_problems")

    def __init__(
        self,
        entries: Entries,
        problems: Mapping[int, str],
        headings: Mapping[int, int],
        before: EventLog | None = None,
    ) -> None:
        self._entries = entries
        self._count = len(entries)
        self._problems = problems
        self._headings = headings
        self._marks: tuple[Mark, ...] | None = None
        self._made: dict[int, Event] = {} if before is None else before._made

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return tuple(self._event(i) for i in range(*index.indices(self._count)))
        if not -self._count <= index < self._count:
            raise IndexError(index)
        return self._event(index % self._count)

    def find(self, id: str) -> int | None:
        """The index of the event with this id, or None."""
        number, _, line = id.partition("@")
        if line:
            found = self._at_line(int(line)) if line.isdecimal() else None
        else:
            found = int(number) - 1 if number.isdecimal() and len(number) < 16 else None
        return found if found is not None and self._id_at(found) == id else None

    def id_of(self, index: int) -> str | None:
        """The id of the event at an index, or None."""
        return self._id_at(index)

    def id_at_line(self, line: int) -> str | None:
        """The id of the event in a line of the log, or None."""
        found = self._at_line(line)
        return None if found is None else self._id_at(found)

    def line_of(self, index: int) -> int:
        """The line of the log in which an event stands."""
        return self._entries.line_of(index)

    def marks(self) -> Sequence[Mark]:
        """Who did what when, of each event: a tenth of what the events cost."""
        if self._marks is None:
            self._marks = tuple(self._read_marks())
        return self._marks

    def _read_marks(self) -> Iterator[Mark]:
        written, at = "", None
        actors: dict[str, str] = {}
        kinds: dict[str, str] = {}
        for index, entry in enumerate(islice(self._entries.outlines(), self._count)):
            if entry.at != written:
                written, at = entry.at, records.parse_time(entry.at)
            actor = actors.get(entry.sender)
            if actor is None:
                actor = _learned(actors, entry.sender, _actor(entry))
            kind = kinds.get(entry.event)
            if kind is None:
                kind = _learned(kinds, entry.event, _kind(entry))
            regular = entry.seq == index + 1
            name = str(index + 1) if regular else clean_line(_id(entry, index))
            yield Mark(name, LOG_FILE, actor, kind, at)

    def _at_line(self, line: int) -> int | None:
        return self._entries.at_line(line, self._count)

    def _id_at(self, index: int) -> str | None:
        if not 0 <= index < self._count:
            return None
        return _id(self._entries[index], index)

    def _event(self, index: int) -> Event:
        made = self._made.get(index)
        if made is None or self._moved(made, index):
            if len(self._made) >= _KEPT:
                self._made.clear()
            made = self._made[index] = self._make(index)
        return made

    def _moved(self, made: Event, index: int) -> bool:
        """Whether what an event announces stands elsewhere since it was made."""
        review = made.kind == "review_submitted"
        return review and made.line != self._line_in_review(self._entries[index])

    def _line_in_review(self, entry: Entry) -> int | None:
        """Where review.md holds the review that an event announces."""
        is_review = entry.event == "review_submitted"
        return self._headings.get(entry.seq or 0) if is_review else None

    def _make(self, index: int) -> Event:
        entry = self._entries[index]
        event = entry.event
        return Event(
            id=clean_line(self._id_at(index) or ""),
            order=entry.seq if entry.seq is not None else index + 1,
            source=LOG_FILE,
            kind=_kind(entry),
            tone=TONES.get(event, Tone.OTHER),
            actor=_actor(entry),
            at=records.parse_time(entry.at),
            at_source="recorded",
            summary=clean_line(entry.summary, _SUMMARY),
            reply_to=self._replied(entry, index),
            document=document_of(entry),
            line=self._line_in_review(entry),
            problem=clean_line(self._problems.get(index, "")),
        )

    def _replied(self, entry: Entry, index: int) -> str | None:
        """The id of the event that is answered: the latest before it that bears the number."""
        if entry.reply_to is None:
            return None
        usual = entry.reply_to - 1
        if 0 <= usual < index and self._entries[usual].seq == entry.reply_to:
            return self._id_at(usual)
        return clean_line(str(entry.reply_to))


def _id(entry: Entry, index: int) -> str:
    return str(entry.seq) if entry.seq == index + 1 else f"{entry.name}@{entry.line}"


def _kind(entry: Entry) -> str:
    return clean_line(entry.event, 100) or "?"


def _actor(entry: Entry) -> str:
    return clean_name(entry.sender, 200) or "?"


def _learned(known: dict[str, str], text: str, shown: str) -> str:
    """``shown``, which is kept for the text where not too many are."""
    if len(known) < _KEPT:
        known[text] = shown
    return shown


def document_of(entry: Entry) -> str | None:
    """The document that an event speaks of: the one that it names, or its kind's own."""
    doc = entry.doc
    if doc is None:
        return _SPEAKS_OF.get(entry.event)
    if leads_out(doc):
        return None
    return clean_line(doc.removeprefix("./"), 300)


ID = 200  # characters of a participant's id that are shown

_KINDS = ("agent", "human")


def kinds(facts: Facts, humans: frozenset[str]) -> dict[str, str]:
    """Participant -> ``human`` or ``agent`` where protocol.json or the settings say so."""
    found: dict[str, str] = {}
    for item in list_in(facts.protocol or {}, "participants"):
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            kind = item.get("kind")
            found[item["id"]] = kind if kind in _KINDS else "unknown"
    return found | dict.fromkeys(humans, "human")


def participants(
    facts: Facts, kinds: Mapping[str, str], last: Mapping[str, int], events: EventLog
) -> tuple[Participant, ...]:
    """Everybody in the list, and whoever wrote to the log without being in it."""
    history = facts.history
    listed = list(history.participants)
    known = set(listed)
    ghosts = [name for name in last if name not in known][: records.MAX_PARTICIPANTS]
    shown = []
    for name in (*listed, *ghosts):
        index = last.get(name)
        entry = None if index is None else history.entries[index]
        if name not in known:
            role = "not listed"
        else:
            role = "proposal owner" if name == history.machine.owner else "reviewer"
        shown.append(
            Participant(
                id=clean_name(name, ID) or "?",
                kind=kinds.get(name, "unknown"),
                role=role,
                last_event=None if index is None else events.id_of(index),
                last_seen=records.parse_time(entry.at) if entry else None,
            )
        )
    return tuple(shown)


def turns(facts: Facts, now: datetime) -> tuple[Turn, ...]:
    """Who is waited for, to do what, and since which event; nobody in an unknown dialect.

    Where a wrong clock dated the event in the future, the turn began when the log was last changed.
    """
    machine = facts.history.machine
    if facts.dialect == UNKNOWN_DIALECT:
        return ()
    log = facts.others[records.LOG_FILE]
    changed = None if log.modified is None else datetime.fromtimestamp(log.modified, UTC)

    def began(at: str) -> datetime | None:
        time = records.parse_time(at)
        wrong = time is not None and (time - now).total_seconds() > records.CLOCKS_DIFFER
        return changed if wrong else time

    what = current_state.duty(machine)
    return tuple(
        Turn(
            participant=clean_name(name, ID) or "?",
            what=what,
            since=began(wait.at),
            since_event=None if wait.seq is None else str(wait.seq),
        )
        for name, wait in machine.waits.items()
    )


def next_actions(facts: Facts, now: datetime) -> tuple[NextAction, ...]:
    """What each participant should do now; nothing in an unknown dialect."""
    machine = facts.history.machine
    if facts.dialect == UNKNOWN_DIALECT:
        return ()
    said: dict[tuple[bool, bool], str] = {}  # the sentence depends on no more than this
    shown = []
    for name in machine.participants:
        waited = name in machine.waits
        kind = (name == machine.owner, waited)
        if kind not in said:
            said[kind] = prompts.next_action(machine, facts, name, now.timestamp())
        shown.append(NextAction(clean_name(name, ID) or "?", said[kind], waited))
    return tuple(shown)


def names(listed: tuple[str, ...]) -> str:
    """Names as a sentence has them: ``a``, ``a and b``, ``a, b and 3 more``."""
    if len(listed) > 3:
        return f"{', '.join(listed[:2])} and {len(listed) - 2} more"
    return " and ".join(filter(None, (", ".join(listed[:-1]), listed[-1]))) if listed else "nobody"


LABELS = {name: name for name in PHASES} | {
    "decision_review": "decision review",
    "readiness_check": "readiness",
}

_ORDER = PHASES


class Ended:
    """The stays in one phase that ended; only ever appended to.

    A `Visit` is made when it is looked at: 100,000 of them take longer than the log does.

    Attributes:
        seconds: how long they lasted together; None where of none that is known.
    """

    __slots__ = ("entered", "left", "made", "rounds", "seconds")

    def __init__(self) -> None:
        self.entered: list[datetime | None] = []
        self.left: list[datetime | None] = []
        self.rounds: list[int] = []
        self.made: dict[int, Visit] = {}
        self.seconds: float | None = None

    def visit(self, index: int) -> Visit:
        """The stay at an index; the same object every time."""
        made = self.made.get(index)
        if made is None:
            made = Visit(self.entered[index], self.left[index], self.rounds[index])
            made = self.made.setdefault(index, made)
        return made


class Stays(Sequence[Visit]):
    """The stays in one phase, in order.

    Several of them share what ended, of which each shows the first ``count``: a copy for each
    Snapshot of a long log would be 100,000 entries at every event.

    Args:
        ended: the stays that ended.
        lasting: the one that lasts, after them.
    """

    __slots__ = ("_count", "_ended", "_lasting")

    def __init__(self, ended: Ended, lasting: Visit | None) -> None:
        self._ended = ended
        self._count = len(ended.rounds)
        self._lasting = lasting

    def __len__(self) -> int:
        return self._count + (self._lasting is not None)

    @overload
    def __getitem__(self, index: int) -> Visit: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Visit]: ...
    def __getitem__(self, index: int | slice) -> Visit | Sequence[Visit]:
        if isinstance(index, slice):
            return tuple(self._visit(i) for i in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        return self._visit(index % len(self))

    def _visit(self, index: int) -> Visit:
        if index == self._count and self._lasting is not None:
            return self._lasting
        return self._ended.visit(index)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stays):
            return NotImplemented
        if len(self) != len(other) or self._lasting != other._lasting:
            return False
        return self._ended is other._ended or tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash((len(self), self._lasting))


class Rail:
    """Makes the phases of a Snapshot; each time only what is new in the log is looked at."""

    def __init__(self) -> None:
        self._machine: Machine | None = None
        self._begin()

    def _begin(self) -> None:
        self._taken = 0
        self._ended = {name: Ended() for name in _ORDER}
        self._phases: dict[str, Phase] = {}
        self._last: tuple[str, Visit] | None = None  # the phase that lasts, and its visit
        self._at: tuple[str, datetime | None] = ("", None)  # a time as written, and what it is

    def phases(self, machine: Machine) -> tuple[Phase, ...]:
        """The phases in their order, with every stay in each."""
        if machine is not self._machine:
            self._machine = machine
            self._begin()
        touched = self._take_new(machine)
        current = current_phase(machine)
        position = _ORDER.index(current) if current else -1
        made = []
        for index, name in enumerate(_ORDER):
            stays = Stays(self._ended[name], self._lasting(name))
            if name == current:
                state = PhaseState.CURRENT
            elif index > position:
                state = PhaseState.AHEAD
            else:
                state = PhaseState.DONE if stays else PhaseState.SKIPPED
            known = self._phases.get(name)
            if known is None or known.state is not state or name in touched:
                spent = self._ended[name].seconds
                self._phases[name] = Phase(name, LABELS[name], state, stays, spent)
            made.append(self._phases[name])
        return tuple(made)

    def _lasting(self, name: str) -> Visit | None:
        return self._last[1] if self._last is not None and self._last[0] == name else None

    def _take_new(self, machine: Machine) -> set[str]:
        """Take the stays that began since the last time; returns the phases concerned."""
        starts, every = machine.starts, self._ended
        if self._taken == len(starts):
            return set()
        counts = {name: len(ended.rounds) for name, ended in every.items()}
        touched = {self._last[0]} if self._last is not None else set()
        name, entered, rounds = "", None, 0
        if self._last is not None:
            name, entered, rounds = self._last[0], self._last[1].entered, self._last[1].round
        written, moment = self._at
        for phase, number, _, at in starts[self._taken :]:
            if at != written:
                written, moment = at, records.parse_time(at)
            ended = every.get(name)
            if ended is not None:
                ended.entered.append(entered)
                ended.left.append(moment)
                ended.rounds.append(rounds)
                if entered is not None and moment is not None:
                    seconds = 0.0 if moment is entered else (moment - entered).total_seconds()
                    ended.seconds = (ended.seconds or 0.0) + max(0.0, seconds)
            name, entered, rounds = phase, moment, number
        self._last = (name, Visit(entered, None, rounds)) if name in every else None
        self._taken, self._at = len(starts), (written, moment)
        touched.update(each for each, count in counts.items() if len(every[each].rounds) != count)
        return touched | {name}


_TITLES = {
    "proposal.md": "Proposal",
    "review.md": "Review",
    "decisions.md": "Decisions",
    "readiness.md": "Readiness",
    "conclusion.md": "Conclusion",
    README: "Readme",
    records.PROTOCOL_FILE: "State",
    records.LOG_FILE: "Log",
}

LINK_NOTE = "a symbolic link that points outside the folder: its text is not shown"

REVIEWED = "during the review"

UNDER_REVIEW = ("proposal.md", "decisions.md", "readiness.md")

STATE = (records.PROTOCOL_FILE,)

OUTCOME = ("conclusion.md", "decisions.md")
"""The documents that say what came out and what was decided."""


class Settled(NamedTuple):
    """Until when a document could change: the words for it, the event's time, and its place."""

    words: str
    at: datetime
    events: int | None = None


def documents(facts: Facts) -> tuple[Document, ...]:
    """The five documents, the deliverables, README.md where there is one, and the state files."""
    last = facts.history.last
    trust = trusted_after(facts, records.parse_time(last.at) if last else None)
    settled = _settled(facts.history)
    shown = [
        _document(file, _TITLES[name], "markdown", "document", settled.get(name), trust)
        for name, file in facts.files.items()
    ]
    readme = facts.others[README]
    if not readme.missing:
        shown.append(_document(readme, _TITLES[README], "markdown", "document", None, trust))
    for declared in facts.deliverables:
        item = declared.item
        title = item.file.rpartition("/")[2] or item.file
        kind = "markdown" if item.file.endswith(".md") else "text"
        when = settled.get("deliverables")
        shown.append(_document(declared.file, title, kind, "deliverable", when, trust))
    for name, kind in ((records.PROTOCOL_FILE, "json"), (records.LOG_FILE, "jsonl")):
        when = settled.get(name)
        shown.append(_document(facts.others[name], _TITLES[name], kind, "state", when, trust))
    once: dict[str, Document] = {}
    for document in shown:  # a declaration may name a document, or one file twice
        once.setdefault(document.id, document)
    return tuple(once.values())


def _document(
    file: File[Any],
    title: str,
    kind: str,
    group: str,
    settled: Settled | None,
    trust: float,
) -> Document:
    changed = moment(file.modified)
    late = ""
    if settled and changed and not file.missing:
        after = changed.timestamp() - settled.at.timestamp()
        if after > TOLERANCE and changed.timestamp() > trust:
            late = f"changed {settled.words} ({INFERRED})"
    note = LINK_NOTE if file.outside else "" if file.missing else file.problem
    return Document(
        id=clean_line(file.name, 300),
        title=clean_line(title, 100),
        kind=kind,
        group=group,
        path=file.path,
        size=file.stamp.size if file.stamp else None,
        changed=changed,
        version=file.version,
        state="missing" if file.missing else "unreadable" if file.problem else "present",
        note=clean_line(note),
        late=late,
        settled=settled.words if settled else "",
        settled_after=settled.events if settled else None,
    )


def _settled(history: History) -> dict[str, Settled]:
    """For each document, the last event after which it must no longer change."""
    machine = history.machine
    found: dict[str, Settled] = {}

    def settle(words: str, began: Began | None, *names: str) -> None:
        at = records.parse_time(began[1]) if began else None
        if began and at is not None:
            found.update(dict.fromkeys(names, Settled(words, at, began[0])))

    if machine.phase == "reviewing":
        settle(REVIEWED, _began(history, "reviewing"), *UNDER_REVIEW, "deliverables")
        last = history.last  # every event brings protocol.json up to date
        settle(REVIEWED, (_place(history, last.seq), last.at) if last else None, *STATE)
    accepted = _began(history, "readiness_check")
    if accepted and machine.accepted_ever:
        settle("after it was accepted", accepted, "proposal.md", "decisions.md")
    if "completed" in machine.last:
        settle(
            "after completed",
            _began(history, "completed"),
            *records.DOCUMENTS,
            "deliverables",
        )
    return found


Began = tuple[int | None, str]
"""How many events there were, where that is known, and the time of the last of them as written."""


def _began(history: History, phase: str) -> Began | None:
    """When the latest stay in a phase began."""
    if phase not in history.machine.began:
        return None
    for name, _, seq, at in reversed(history.machine.starts):
        if name == phase:
            return (_place(history, seq), at) if at else None
    return None


def _place(history: History, seq: int | None) -> int | None:
    """How many events a log holds up to one; None where its numbers do not say so."""
    return seq if history.check.regular else None


def notices(shown: tuple[Document, ...]) -> tuple[Matter, ...]:
    """A headline for each document that changed too late."""
    return tuple(
        remark("late", f"{document.id} {document.late}", document.id, document.changed)
        for document in shown
        if document.late
    )


def moment(seconds: float | None) -> datetime | None:
    """A file time as a moment; None where it is none that a calendar knows."""
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, OSError, ValueError):
        return None
