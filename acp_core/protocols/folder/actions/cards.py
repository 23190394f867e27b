"""What a person decides in a folder collaboration, as cards: each turn that judges something, the questions
of reviews, what readiness.md leaves open, and how it goes on once it is blocked.

Source: folder protocol specification, "Phases", "Review Format" and "Readiness Gate". Turns that only
write (a first proposal, a draft) keep their forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.errors import Refused
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions import card_facts as facts
from acp_core.protocols.folder.actions.answering import open_questions
from acp_core.protocols.folder.actions.card_facts import Matter
from acp_core.protocols.folder.actions.common import open_folder, who_may
from acp_core.protocols.folder.actions.readiness import is_due, is_unsettled, open_gates
from acp_core.protocols.folder.read.current_state import event_of_turn
from acp_core.protocols.folder.schema import documents
from acp_core.protocols.folder.schema.act_names import (
    ANSWER_QUESTION,
    BLOCK,
    CHECK_GATES,
    CONTINUE,
    SETTLE_QUESTIONS,
)
from acp_core.protocols.folder.schema.deliverables import Content
from acp_core.protocols.folder.schema.documents import OVER, Asked
from acp_core.protocols.kit.starting import starter
from acp_core.protocols.kit.wording import safe

if TYPE_CHECKING:
    from acp_core.protocols.folder.collaboration import FolderCollaboration

KEYS = 9
"""Verdicts that have a key."""
_LABEL = 60
Sections = Iterable[CardSection]


def cards(collaboration: FolderCollaboration, now: datetime) -> tuple[Card, ...]:
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
        tuple(facts.filled(sections)), tuple(verdicts)[:KEYS], matter.documents(*judged),
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
        asking.summary if asking else "", asking.sender if asking else "", schema.parse_time(wait.at) if wait else None,
        sections=sections, verdicts=(*verdicts, stop), judged=judged, replaces=(event,),
    )  # fmt: skip


def _as(name: str, **given: str) -> tuple[tuple[str, str], ...]:
    return (("participant", name), *given.items())


def _review(matter: Matter, name: str) -> Card:
    machine, event = matter.here.opened.machine, "review_submitted"
    submitted = machine.last.get("proposal_submitted", 0)
    others = facts.latest_reviews(matter, matter.here.opened.next_seq, submitted)
    before = others or facts.latest_reviews(matter, submitted)
    read = (facts.PROPOSAL, matter.primary)
    again = f" again (round {machine.round})" if machine.round > 1 else ""
    asks = ("position",)
    return _turn(
        matter, name, event,
        f"{machine.owner} asks {name} to review the proposal{again}", asked_by="proposal_submitted",
        sections=(
            facts.to_read(matter, *read),
            *facts.reviews(matter, before),
            facts.settled(matter, due=False),
            facts.gates(matter, due=False),
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
    made = facts.latest_reviews(matter, matter.here.opened.next_seq, submitted)
    read = (facts.PROPOSAL, facts.REVIEW, matter.primary)
    asks = ("proposal",)
    verdicts = [CardVerdict("Submit the revision", event, _as(name), asks, blank=asks)]
    if name in who_may(matter.here.opened, "proposal_submitted"):
        verdicts.append(
            CardVerdict("Ask for another review", "proposal_submitted", _as(name), asks, blank=asks)
        )
    return _turn(
        matter, name, event,
        f"{len(made)} {'review waits' if len(made) == 1 else 'reviews wait'} for {name}'s revision",
        sections=(facts.to_read(matter, *read), *facts.reviews(matter, made)),
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
        sections=(facts.settled(matter), facts.decisions(matter)),
        verdicts=verdicts,
        judged=(facts.READINESS, facts.DECISIONS),
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
            facts.decisions(matter),
            facts.settled(matter),
            facts.accepted(matter, name),
            facts.to_read(matter, facts.PROPOSAL, matter.primary),
        ),
        verdicts=verdicts,
        judged=(facts.DECISIONS, facts.READINESS, facts.PROPOSAL, matter.primary),
    )  # fmt: skip


# --- a person's turn at the end: freeze, pass, conclude -----------------------------------------


def _end(
    matter: Matter, name: str, event: str, title: str, verdicts: list[CardVerdict], due: bool = True
) -> Card:
    """A turn after all accepted: what it depends on is the same for each."""
    return _turn(
        matter, name, event, title,
        sections=(
            facts.errors(matter),
            facts.deliverable(matter),
            facts.gates(matter, due=due),
            facts.settled(matter),
            facts.decisions(matter),
        ),
        verdicts=verdicts,
        judged=(facts.READINESS, facts.DECISIONS, facts.PROPOSAL, facts.CONCLUSION, matter.primary),
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
        first.summary, first.sender, schema.parse_time(first.at),
        sections=(
            facts.blockers(matter),
            facts.reached(matter),
            facts.decisions(matter),
            facts.settled(matter, due=False),
            facts.to_read(matter, facts.PROPOSAL, facts.REVIEW, matter.primary),
        ),
        verdicts=(CardVerdict(f"{label} with the same agents" if ran else label, CONTINUE, asks=("answer", "start")),),
        judged=(facts.PROPOSAL, facts.DECISIONS),
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
        sections=(facts.settled(matter), facts.decisions(matter)),
        verdicts=(_settling(),),
        judged=(facts.READINESS, facts.DECISIONS),
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
        sections=(facts.gates(matter), facts.settled(matter), facts.decisions(matter)),
        verdicts=_met(wanted),
        judged=(facts.READINESS, facts.DECISIONS, facts.PROPOSAL, matter.primary),
    )  # fmt: skip


def _since(matter: Matter) -> datetime | None:
    waits = matter.here.opened.machine.waits.values()
    times = (schema.parse_time(each.at) for each in waits)
    return min((at for at in times if at is not None), default=None)


def _questions(matter: Matter) -> Iterator[Card]:
    """What reviews ask, one card for each question."""
    opened, review = matter.here.opened, matter.facts.review
    if opened.machine.phase in OVER or review is None:
        return
    waiting: dict[tuple[tuple[str, str], ...], Asked] = {
        (("question", name),): each for name, each in open_questions(opened, review).items()
    }
    made = facts.latest_reviews(matter, opened.next_seq)
    for question in matter.snapshot.questions[: facts.MOST]:
        asked = waiting.get(question.given) if question.action == ANSWER_QUESTION else None
        if asked is None:
            continue
        entry = [each for each in made if each.seq == asked.seq]
        yield _card(
            matter, question.key, f"{question.participant} asks a question", asked.text,
            question.participant or "", question.since,
            sections=(facts.question(matter, asked), *facts.reviews(matter, entry)[:3]),
            verdicts=(CardVerdict("Answer", ANSWER_QUESTION, question.given, ("answer",)),),
        )  # fmt: skip
