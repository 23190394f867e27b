"""What a person decides in a folder collaboration, as cards: each turn that judges something, the questions
of reviews, what readiness.md leaves open, and how it goes on once it is blocked.

Source: folder protocol specification, "Phases", "Review Format" and "Readiness Gate". Turns that only
write (a first proposal, a draft) keep their forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.files import markdown
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.card import Card, CardDocument, CardSection, CardVerdict
from acp_core.model.errors import Refused
from acp_core.model.snapshot import Document, Gate, Row, Severity, Snapshot, Target, Tone
from acp_core.protocols.folder.acts.documents import (
    is_due,
    is_unsettled,
    open_gates,
    open_questions,
)
from acp_core.protocols.folder.acts.opened import OpenFolder, ReadFolder, open_folder, who_may
from acp_core.protocols.folder.read.current_state import current_phase, event_of_turn
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import documents, records
from acp_core.protocols.folder.schema.deliverables import Content
from acp_core.protocols.folder.schema.documents import OVER, Asked
from acp_core.protocols.folder.schema.records import (
    ANSWER_QUESTION,
    BLOCK,
    CHECK_GATES,
    CONTINUE,
    SETTLE_QUESTIONS,
    Entry,
)
from acp_core.protocols.folder.view import story
from acp_core.protocols.kit.starting import starter
from acp_core.protocols.kit.wording import safe

KEYS = 9
"""Verdicts that have a key."""
_LABEL = 60
Sections = Iterable[CardSection]


def cards(collaboration: ReadFolder, now: datetime) -> tuple[Card, ...]:
    """What waits for a person's decision now, the most urgent first.

    Args:
        collaboration: a folder collaboration; its Snapshot says who is a person.
        now: the time as of which it is read.
    """
    try:
        here = open_folder(collaboration, now)
    except (Refused, OSError):  # nothing can be decided before that is repaired
        return ()
    matter = Matter(here, collaboration.refresh(now))
    turns = [*_turns(matter)]
    made = (*_blocked(matter), *turns, *_unsettled(matter, turns), *_gates(matter, turns))
    return (*made, *_questions(matter))


def _card(
    matter: Matter,
    id: str,
    title: str,
    claim: str = "",
    by: str = "",
    since: datetime | None = None,
    *,
    sections: Sections = (),
    verdicts: Iterable[CardVerdict],
    judged: tuple[str, ...] = (),
    replaces: tuple[str, ...] = (),
) -> Card:
    """A card; of its sections those in which something stands, of its verdicts those with a key."""
    return Card(
        id, safe(title), safe(claim), safe(by), since,
        tuple(filled(sections)), tuple(verdicts)[:KEYS], matter.documents(*judged),
        replaces=replaces,
    )  # fmt: skip


# --- a person's turn -------------------------------------------------------------------------


def _turns(matter: Matter) -> Iterator[Card]:
    """A card for each person who is waited for and judges something."""
    make = _TURNS.get(event_of_turn(matter.facts))
    waiting = matter.here.opened.machine.waiting
    for name in waiting if make else ():
        if make is not None and name in matter.here.humans:
            yield make(matter, name)


def _turn(
    matter: Matter,
    name: str,
    event: str,
    title: str,
    *,
    asked_by: str = "",
    sections: Sections,
    verdicts: Iterable[CardVerdict],
    judged: tuple[str, ...],
) -> Card:
    """The card of a turn, in the words of the event that asks for it; anybody may block instead."""
    asking = matter.latest(asked_by) if asked_by else None
    asking = asking if asking and asking.sender != name else None
    wait = matter.here.opened.machine.waits.get(name)
    stop = CardVerdict("Block, with a reason", BLOCK, _as(name), ("reason",))
    return _card(
        matter, f"turn:{event}:{safe(name)}:{wait.seq if wait else ''}", title,
        asking.summary if asking else "", asking.sender if asking else "", records.parse_time(wait.at) if wait else None,
        sections=sections, verdicts=(*verdicts, stop), judged=judged, replaces=(event,),
    )  # fmt: skip


def _as(name: str, **given: str) -> tuple[tuple[str, str], ...]:
    return (("participant", name), *given.items())


def _review(matter: Matter, name: str) -> Card:
    machine, event = matter.here.opened.machine, "review_submitted"
    submitted = machine.last.get("proposal_submitted", 0)
    others = latest_reviews(matter, matter.here.opened.next_seq, submitted)
    before = others or latest_reviews(matter, submitted)
    read = (PROPOSAL, matter.primary)
    again = f" again (round {machine.round})" if machine.round > 1 else ""
    asks = ("position",)
    return _turn(
        matter, name, event,
        f"{machine.owner} asks {name} to review the proposal{again}", asked_by="proposal_submitted",
        sections=(
            to_read(matter, *read),
            *reviews(matter, before),
            settled(matter, due=False),
            gates(matter, due=False),
        ),
        verdicts=(
            CardVerdict("Agree", event, _as(name), asks),
            CardVerdict("Require changes", event, _as(name), (*asks, "changes")),
            CardVerdict("Ask a question", event, _as(name), (*asks, "questions")),
        ),
        judged=read,
    )  # fmt: skip


def _revise(matter: Matter, name: str) -> Card:
    machine, event = matter.here.opened.machine, "proposal_revised"
    submitted = machine.last.get("proposal_submitted", 0)
    made = latest_reviews(matter, matter.here.opened.next_seq, submitted)
    read = (PROPOSAL, REVIEW, matter.primary)
    asks = ("proposal",)
    verdicts = [CardVerdict("Submit the revision", event, _as(name), asks, blank=asks)]
    if name in who_may(matter.here.opened, "proposal_submitted"):
        verdicts.append(
            CardVerdict("Ask for another review", "proposal_submitted", _as(name), asks, blank=asks)
        )
    return _turn(
        matter, name, event,
        f"{len(made)} {'review waits' if len(made) == 1 else 'reviews wait'} for {name}'s revision",
        sections=(to_read(matter, *read), *reviews(matter, made)),
        verdicts=verdicts,
        judged=read,
    )  # fmt: skip


def _classify(matter: Matter, name: str) -> Card:
    event, proposing = "question_classified", "decision_proposed"
    open_now = is_unsettled(matter.here.opened)
    label = "Resolve and classify" if open_now else "Confirm: all are classified"
    verdicts = [
        CardVerdict(label, event, _as(name), ("questions",) if open_now else ()),
        CardVerdict("Add decisions", proposing, _as(name), ("decisions",)),
    ]
    return _turn(
        matter, name, event, f"{name} must classify the open questions",
        sections=(settled(matter), decisions(matter)),
        verdicts=verdicts,
        judged=(READINESS, DECISIONS),
    )  # fmt: skip


def _accept(matter: Matter, name: str) -> Card:
    opened, event = matter.here.opened, "decision_accepted"
    verdicts = []
    if is_unsettled(opened):  # every acceptance is refused
        verdicts.append(_settling())
    else:
        verdicts.append(CardVerdict("Accept", event, _as(name, read="true")))
    if name in who_may(opened, "decision_proposed"):
        verdicts.append(
            CardVerdict("Add a decision", "decision_proposed", _as(name), ("decisions",))
        )
    owner = opened.machine.owner
    asks = f"{name} must" if name == owner else f"{owner} asks {name} to"
    return _turn(
        matter, name, event, f"{asks} accept the decisions", asked_by="question_classified",
        sections=(
            decisions(matter),
            settled(matter),
            accepted(matter, name),
            to_read(matter, PROPOSAL, matter.primary),
        ),
        verdicts=verdicts,
        judged=(DECISIONS, READINESS, PROPOSAL, matter.primary),
    )  # fmt: skip


# --- a person's turn at the end: freeze, pass, conclude -----------------------------------------


def _end(
    matter: Matter, name: str, event: str, title: str, verdicts: list[CardVerdict], due: bool = True
) -> Card:
    """A turn after all accepted: what it depends on is the same for each."""
    return _turn(
        matter, name, event, title,
        sections=(
            errors(matter),
            deliverable(matter),
            gates(matter, due=due),
            settled(matter),
            decisions(matter),
        ),
        verdicts=verdicts,
        judged=(READINESS, DECISIONS, PROPOSAL, CONCLUSION, matter.primary),
    )  # fmt: skip


def _freeze(matter: Matter, name: str) -> Card:
    event, declared = "deliverable_frozen", matter.facts.primary
    content = declared.file.scan if declared else None
    frozen = isinstance(content, Content) and content.status == "Frozen"
    given = _as(name) if frozen else _as(name, set_status="true")
    label = "Freeze it" if frozen else "Set Status: Frozen, then freeze it"
    title = f"{name} must freeze {matter.primary}; it cannot change afterwards"
    return _end(matter, name, event, title, [CardVerdict(label, event, given)], due=False)


def _pass(matter: Matter, name: str) -> Card:
    event, opened = "readiness_passed", matter.here.opened
    if is_unsettled(opened):
        verdicts = [_settling()]
    else:
        unmet = open_gates(opened)
        label = "All gates are met: pass readiness" if unmet else "Pass readiness"
        given = _as(name, **dict.fromkeys(unmet, "true"))
        verdicts = [CardVerdict(label, event, given)]
        if any(gate != documents.READY for gate in unmet.values()):  # they must be met in the end
            ready = _as(name, ready="true") if "ready" in unmet else _as(name)
            verdicts.append(CardVerdict("Pass readiness, leave gates open", event, ready))
        verdicts += _met(unmet)
    return _end(matter, name, event, f"{name} must confirm readiness", verdicts)


def _conclude(matter: Matter, name: str) -> Card:
    event, opened = "completed", matter.here.opened
    if is_unsettled(opened):
        verdicts = [_settling()]
    else:
        unmet = open_gates(opened)
        met = dict.fromkeys(unmet, "true")
        also = ", all gates are met" if unmet else ""
        verdicts = [
            CardVerdict(f"{label}{also}", event, _as(name, outcome=word, **met), ("rationale",))
            for word, label in _OUTCOMES
        ]
        verdicts += _met(unmet)
    return _end(matter, name, event, f"{name} must write the conclusion", verdicts)


_OUTCOMES = (("proceed", "Proceed"), ("do_not_proceed", "Do not proceed"), ("defer", "Defer"))


def _settling() -> CardVerdict:
    return CardVerdict("Resolve the questions", SETTLE_QUESTIONS, asks=("questions",))


def _met(unmet: dict[str, str]) -> list[CardVerdict]:
    """A verdict for each gate that is not checked, in the order of the card's rows.

    There is one for all of them besides.
    """
    ordered = sorted(unmet.items(), key=lambda each: each[1] == documents.READY)
    return [CardVerdict(f"Met: {_short(gate)}", CHECK_GATES, ((name, "true"),))
            for name, gate in ordered][: KEYS - len(_OUTCOMES) - 1]  # fmt: skip


def _short(text: str) -> str:
    shown = safe(text)
    return shown if len(shown) <= _LABEL else f"{shown[: _LABEL - 1].rstrip()}…"


_TURNS: dict[str, Callable[[Matter, str], Card]] = {
    "review_submitted": _review,
    "proposal_revised": _revise,
    "question_classified": _classify,
    "decision_accepted": _accept,
    "deliverable_frozen": _freeze,
    "readiness_passed": _pass,
    "completed": _conclude,
}


# --- whoever's turn it is ------------------------------------------------------------------------


def _blocked(matter: Matter) -> Iterator[Card]:
    """What stopped the collaboration: answered, it goes on in a new folder."""
    if not any(each.code == "blocked" for each in matter.snapshot.needs):
        return
    first, *_ = matter.facts.history.blockers
    begin = starter()
    ran = begin.ran(matter.here.key) if begin else ()
    label = "Answer, and continue in a new folder"
    yield _card(
        matter, f"blocked:{safe(first.name)}", f"{first.sender} stopped the collaboration",
        first.summary, first.sender, records.parse_time(first.at),
        sections=(
            blockers(matter),
            reached(matter),
            decisions(matter),
            settled(matter, due=False),
            to_read(matter, PROPOSAL, REVIEW, matter.primary),
        ),
        verdicts=(CardVerdict(f"{label} with the same agents" if ran else label, CONTINUE, asks=("answer", "start")),),
        judged=(PROPOSAL, DECISIONS),
    )  # fmt: skip


def _unsettled(matter: Matter, turns: Iterable[Card]) -> Iterator[Card]:
    """What readiness.md leaves open, where nothing goes on before it is settled."""
    opened = matter.here.opened
    shown = any(card.verdict(SETTLE_QUESTIONS) is not None for card in turns)
    if shown or not is_due(opened) or not is_unsettled(opened):
        return
    yield _card(
        matter, f"settle:{opened.machine.last.get('question_classified')}",
        "readiness.md contains unresolved questions; they must be resolved first",
        since=_since(matter),
        sections=(settled(matter), decisions(matter)),
        verdicts=(_settling(),),
        judged=(READINESS, DECISIONS),
    )  # fmt: skip


def _gates(matter: Matter, turns: Iterable[Card]) -> Iterator[Card]:
    """Gates that keep the owner, who is no person, from going on."""
    opened = matter.here.opened
    if any(True for _ in turns) or opened.machine.phase != "readiness_check":
        return
    wanted = open_gates(opened)
    if not opened.machine.passed:
        wanted = {name: gate for name, gate in wanted.items() if gate == documents.READY}
    if not wanted:
        return
    number = f"{len(wanted)} gates" if len(wanted) > 1 else "a gate"
    yield _card(
        matter, f"gates:{opened.machine.last.get('readiness_passed')}",
        f"{opened.machine.owner} cannot continue until {number} in readiness.md "
        f"{'are' if len(wanted) > 1 else 'is'} checked",
        since=_since(matter),
        sections=(gates(matter), settled(matter), decisions(matter)),
        verdicts=_met(wanted),
        judged=(READINESS, DECISIONS, PROPOSAL, matter.primary),
    )  # fmt: skip


def _since(matter: Matter) -> datetime | None:
    waits = matter.here.opened.machine.waits.values()
    times = (records.parse_time(each.at) for each in waits)
    return min((at for at in times if at is not None), default=None)


def _questions(matter: Matter) -> Iterator[Card]:
    """What reviews ask, one card for each question."""
    opened, review = matter.here.opened, matter.facts.review
    if opened.machine.phase in OVER or review is None:
        return
    waiting: dict[tuple[tuple[str, str], ...], Asked] = {
        (("question", name),): each for name, each in open_questions(opened, review).items()
    }
    made = latest_reviews(matter, opened.next_seq)
    for question in matter.snapshot.questions[:MOST]:
        asked = waiting.get(question.given) if question.remedy == ANSWER_QUESTION else None
        if asked is None:
            continue
        entry = [each for each in made if each.seq == asked.seq]
        yield _card(
            matter, question.key, f"{question.about.participant} asks a question", asked.text,
            question.about.participant or "", question.since,
            sections=(question_section(matter, asked), *reviews(matter, entry)[:3]),
            verdicts=(CardVerdict("Answer", ANSWER_QUESTION, question.given, ("answer",)),),
        )  # fmt: skip


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
            data = read_bounded(self.facts.path(name), records.MAX_DOCUMENT)
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


def question_section(matter: Matter, asked: Asked) -> CardSection:
    """Where a question stands, and what it is about."""
    place = Row((f"{REVIEW}, line {asked.line}",), target=matter.target(REVIEW, asked.line))
    return section("Read", (place, *to_read(matter, PROPOSAL, matter.primary).rows))


def filled(sections: Iterable[CardSection]) -> Iterator[CardSection]:
    """Those in which something stands."""
    return (each for each in sections if each.rows)
