"""The log as the timeline shows it: events made when they are looked at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import overload

from acp_core.model import Event, Tone
from acp_core.model.marks import Mark
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.log import Entries
from acp_core.protocols.folder.read.log_check import leads_out
from acp_core.protocols.folder.schema import LOG_FILE, Entry

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
    "initialized": schema.PROTOCOL_FILE,
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
                written, at = entry.at, schema.parse_time(entry.at)
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
            at=schema.parse_time(entry.at),
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
