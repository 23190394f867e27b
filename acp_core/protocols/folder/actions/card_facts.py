"""What a person's decision in a folder collaboration depends on, as sections of a card.

Source: folder protocol specification, "Review Format", "Readiness Gate" and "Phases".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from acp_core.files import markdown
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.card import CardDocument, CardSection
from acp_core.model.snapshot import Document, Gate, Row, Severity, Snapshot, Target, Tone
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions.common import OpenFolder
from acp_core.protocols.folder.read.current_state import current_phase
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.folder.schema.deliverables import Content
from acp_core.protocols.folder.schema.documents import Asked
from acp_core.protocols.folder.view import story
from acp_core.protocols.kit.wording import safe

MOST = 50
"""Rows of a section: a person reads no more, and the documents hold the rest."""
RECENT = 2_000
"""Events among which one is looked for."""
PROPOSAL, REVIEW, DECISIONS = "proposal.md", "review.md", "decisions.md"
READINESS, CONCLUSION = "readiness.md", "conclusion.md"
_PARTS = (story.POSITION, *story.PARTS)
_TITLES = ("Positions", "Concerns", "Required changes", "Questions")
_TONES = (Tone.OTHER, Tone.REVIEW, Tone.REVISE, Tone.REVIEW)
_BULLET = re.compile(r"^[-*+][^\S\n]+(\S[^\n]*)$", re.MULTILINE)
_DECISION = re.compile(r"^[^\S\n]*- Decision:[^\S\n]*(\S[^\n]*)$", re.MULTILINE)
_SETTLED = ("resolved", "deferred_nonblocking")
_OF_QUESTIONS = {"Every question is classified", "Nothing blocks", "Deferred items have a reason"}
"""Gates that the section of the questions tells."""


class Matter(NamedTuple):
    """A collaboration as it is judged: read for showing it, and as a writer finds it."""

    here: OpenFolder
    snapshot: Snapshot

    @property
    def facts(self) -> Facts:
        """What its files hold."""
        return self.here.collaboration.facts

    def latest(self, event: str) -> Entry | None:
        """The latest event of a kind."""
        entries = self.facts.history.entries
        recent = entries[max(0, len(entries) - RECENT) :]
        return next((each for each in reversed(recent) if each.event == event), None)

    def target(self, document: str, line: int | None = None) -> Target:
        """A document's line, where there is such a document to read."""
        return Target(document=document, line=line) if self._known(document) else Target()

    def documents(self, *names: str) -> tuple[CardDocument, ...]:
        """The documents that are judged, in the versions in which they lie there."""
        known = (self._known(name) for name in dict.fromkeys(filter(None, names)))
        return tuple(CardDocument(each.id, each.version) for each in known if each)

    def text(self, name: str) -> str:
        """A document's text; "" where it cannot be read, or lies elsewhere."""
        file = self.facts.files.get(name)
        if file is None or file.outside:
            return ""
        try:
            data = read_bounded(self.facts.path(name), schema.MAX_DOCUMENT)
        except Unreadable:
            return ""
        return markdown.normalise(data.decode(errors="replace"))

    @property
    def primary(self) -> str:
        """The primary deliverable's id; "" where there is none."""
        declared = self.facts.primary
        return declared.item.reference if declared else ""

    def _known(self, name: str) -> Document | None:
        found = self.snapshot.document(name)
        return found if found is not None and found.state == "present" else None


def section(title: str, rows: Iterable[Row]) -> CardSection:
    """Facts of one kind, no more of them than a person reads."""
    return CardSection(title, tuple(rows)[:MOST])


def to_read(matter: Matter, *names: str) -> CardSection:
    """The documents that are judged, and what is odd about their versions."""
    rows = []
    for name in dict.fromkeys(filter(None, names)):
        found = matter.snapshot.document(name)
        if found is not None:
            odd = found.late or ("" if found.state == "present" else found.state)
            tone = Tone.REVISE if odd else Tone.OTHER
            rows.append(Row((found.id, odd), tone=tone, target=matter.target(name)))
    return section("Read", rows)


def reviews(matter: Matter, entries: Sequence[Entry]) -> tuple[CardSection, ...]:
    """What reviews say, part by part, each point with its author."""
    known = matter.facts.review
    if known is None or not entries:
        return ()
    headings = {each.line: each.seq for each in known.headings.values()}
    found = story.points(matter.text(REVIEW), headings, _PARTS)
    answered = {(each.seq, safe(each.text)) for each in known.questions if each.answered}
    made = []
    for part, title, tone in zip(_PARTS, _TITLES, _TONES, strict=True):
        rows = []
        for entry in entries:
            for point in found.get(entry.seq or 0, {}).get(part, ()):
                done = (entry.seq, safe(point.text)) in answered
                cells = (safe(entry.sender), safe(point.text), "answered" if done else "")
                target = matter.target(REVIEW, point.line)
                rows.append(Row(cells, tone=Tone.OTHER if done else tone, target=target))
        made.append(section(title, rows))
    return tuple(made)


def latest_reviews(matter: Matter, before: int, after: int = 0) -> list[Entry]:
    """Each reviewer's latest review among the events between two numbers."""
    history = matter.facts.history
    entries = [history.entries[index] for index in history.review_at[-MOST * 2 :]]
    found = {each.sender: each for each in entries if after < (each.seq or 0) < before}
    return sorted(found.values(), key=lambda each: each.seq or 0)


def decisions(matter: Matter) -> CardSection:
    """What decisions.md says is decided: numbered decisions, or the bullets where there are none."""
    text = matter.text(DECISIONS)
    rows = []
    for part in markdown.sections(text, 3):
        words = _DECISION.search(part.body)
        cells = (safe(part.title), safe(words[1]) if words else "")
        cells = cells if not words or words[1].strip() not in part.title else (cells[1], "")
        rows.append(Row(cells, tone=Tone.DECIDE, target=matter.target(DECISIONS, part.line)))
    if not rows:
        lines = markdown.Lines(text)
        rows = [
            Row((safe(each[1]),), tone=Tone.DECIDE,
                target=matter.target(DECISIONS, lines.at(each.start())))
            for each in _BULLET.finditer(text)
        ]  # fmt: skip
    empty = Row(("decisions.md contains no decision",), tone=Tone.REVIEW)
    return section("Decisions", rows or [empty])


def settled(matter: Matter, *, due: bool = True) -> CardSection:
    """The classified questions of readiness.md: settled or not, where they must be."""
    readiness = matter.facts.readiness
    if readiness is None:
        return section("Readiness", ())
    waiting = {*readiness.unresolved, *readiness.unreasoned, *readiness.blocking}
    rows = []
    for item in sorted(readiness.items, key=lambda item: item not in waiting):
        if item in readiness.unresolved and not readiness.awaits(item, due=due):
            continue
        done = item not in waiting and item.word in _SETTLED
        note = "no reason is given" if item in readiness.unreasoned else ""
        word = "deferred" if item.word == "deferred_nonblocking" else item.word
        rows.append(
            Row((safe(item.text), word, note), checked=done if due else None,
                tone=Tone.PASS if done else Tone.REVISE if due else Tone.REVIEW,
                target=matter.target(READINESS, item.line))
        )  # fmt: skip
    return section("Readiness", rows)


def gates(matter: Matter, *, due: bool = True) -> CardSection:
    """The completion gates and the deliverable's freeze: met or not, where they must be."""
    shown = (each for each in matter.snapshot.gates if each.label not in _OF_QUESTIONS)
    return section("Gates", (_gate(matter, each, due) for each in shown))


def _gate(matter: Matter, gate: Gate, due: bool) -> Row:
    target = matter.target(gate.document, gate.line) if gate.document else Target()
    if not due and not gate.met:
        return Row((gate.label,), target=target)
    unchecked = "not checked" if gate.met is False and gate.document == READINESS else ""
    tone = Tone.PASS if gate.met else Tone.REVISE
    return Row((gate.label, gate.evidence or unchecked), checked=gate.met, tone=tone, target=target)


def errors(matter: Matter) -> CardSection:
    """What the validator finds wrong: nothing is passed before that is mended."""
    found = (each for each in matter.snapshot.findings if each.severity is Severity.ERROR)
    return section(
        "Problems",
        (
            Row((each.message,), checked=False, tone=Tone.REVISE,
                target=matter.target(each.document, each.line) if each.document else Target())
            for each in found
        ),
    )  # fmt: skip


def accepted(matter: Matter, name: str) -> CardSection:
    """Who of the others accepted, and who is still to."""
    machine = matter.facts.history.machine
    rows = [
        Row((safe(each), "accepted"), checked=True, tone=Tone.PASS) for each in machine.accepted
    ]
    rows += [Row((safe(each), "has not answered")) for each in machine.waiting if each != name]
    return section("Others", rows)


def deliverable(matter: Matter) -> CardSection:
    """The primary deliverable: which status it declares, what its draft lacks."""
    declared = matter.facts.primary
    if declared is None:
        return section("Deliverable", ())
    content = declared.file.scan
    status = f"Status: {content.status}" if isinstance(content, Content) and content.status else ""
    name = safe(declared.item.reference)
    rows = [Row((name, status or "declares no status"), target=matter.target(name))]
    if isinstance(content, Content):
        rows += [
            Row((safe(title), "empty"), checked=False, tone=Tone.REVISE,
                target=matter.target(name, content.sections.get(title)))
            for title in sorted(content.empty)
        ]  # fmt: skip
    return section("Deliverable", rows)


def blockers(matter: Matter) -> CardSection:
    """Every reason for which it stopped, where there is more than the one that the card asks."""
    entries = matter.facts.history.blockers
    rows = (
        Row(
            (safe(each.sender), safe(each.summary)),
            tone=Tone.BLOCKED,
            target=Target(event=each.name),
        )
        for each in entries[1:]
    )
    return section("Also", rows)


def reached(matter: Matter) -> CardSection:
    """How far it had come."""
    phase = current_phase(matter.facts.history.machine).replace("_", " ")
    round_ = matter.facts.history.machine.round
    number = f"round {round_}" if round_ > 1 else ""
    return section("Phase", [Row((phase, number))] if phase else ())


def question(matter: Matter, asked: Asked) -> CardSection:
    """Where a question stands, and what it is about."""
    place = Row((f"{REVIEW}, line {asked.line}",), target=matter.target(REVIEW, asked.line))
    return section("Read", (place, *to_read(matter, PROPOSAL, matter.primary).rows))


def filled(sections: Iterable[CardSection]) -> Iterator[CardSection]:
    """Those in which something stands."""
    return (each for each in sections if each.rows)
