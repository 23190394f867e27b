"""What reviewers ask and what readiness.md has not settled, for the inbox."""

from __future__ import annotations

import zlib

from acp_core.model import Gate, Question
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.rules.checks import nearest
from acp_core.protocols.folder.schema import UNKNOWN_DIALECT, V2
from acp_core.protocols.folder.schema.act_names import ANSWER_QUESTION, SETTLE_QUESTIONS
from acp_core.protocols.folder.schema.documents import OVER, READY, Asked, Item, Readiness
from acp_core.protocols.folder.view import timeline

READINESS = "readiness.md"

REVIEW = "review.md"

RECENT = 2_000  # events among which a review's time is looked for

_TEXT = 500

_NAME = 160  # characters of a question in its name


def questions(facts: Facts) -> tuple[Question, ...]:
    """Blocking items first, then unresolved ones, then what the latest reviews ask.

    A review's questions are open until they are answered, or the proposal is revised after it.
    """
    machine = facts.history.machine
    if facts.dialect == UNKNOWN_DIALECT or machine.phase in OVER:
        return ()
    return (*_unsettled(facts), *_asked(facts))


def _unsettled(facts: Facts) -> tuple[Question, ...]:
    readiness = facts.readiness
    if readiness is None:
        return ()
    machine = facts.history.machine
    due = machine.phase in ("decision_review", "readiness_check")
    return (
        *(_item(item, "blocking") for item in readiness.blocking),
        *(
            _item(item, "unresolved")
            for item in readiness.unresolved
            if item.text and readiness.awaits(item, due=due)
        ),
    )


def _item(item: Item, kind: str) -> Question:
    return Question(
        key=f"{kind}:{_digest(item.text)}",
        kind=kind,
        text=clean_line(item.text, _TEXT),
        document=READINESS,
        line=item.line,
        action=SETTLE_QUESTIONS,
    )


def _asked(facts: Facts) -> tuple[Question, ...]:
    review, machine = facts.review, facts.history.machine
    if review is None or not review.questions:
        return ()
    revised = machine.last.get("proposal_revised") or 0
    happened = {
        entry.seq: entry
        for entry in facts.history.entries[-RECENT:]
        if entry.event == "review_submitted"
    }
    shown = []
    for asked in review.questions:
        entry = happened.get(asked.seq)
        if entry is None or asked.seq <= revised or asked.answered:
            continue
        shown.append(
            Question(
                key=f"question:{asked.seq}:{_digest(asked.text)}",
                kind="question",
                text=clean_line(asked.text, _TEXT),
                participant=clean_name(entry.sender, timeline.ID),
                since=schema.parse_time(entry.at),
                document=REVIEW,
                line=asked.line,
                event=str(asked.seq),
                action=ANSWER_QUESTION,
                given=(("question", named(asked)),),
            )
        )
    return tuple(shown)


def named(asked: Asked) -> str:
    """What a question is called where one is chosen among several."""
    return f"{asked.seq}: {clean_line(asked.text, _NAME)}"


def _digest(text: str) -> str:
    return f"{zlib.crc32(text.encode(errors='replace')):08x}"


_MANY = 200  # gates that are shown

_LABEL = 300


def gates(facts: Facts) -> tuple[Gate, ...]:
    """Completion gates first, each with the line where it is met or the nearest one."""
    readiness = facts.readiness
    texts = schema.gate_texts(facts.protocol or {})[:_MANY]
    shown = [_completion(text, readiness) for text in texts]
    shown += _readiness(readiness)
    if facts.dialect == V2 and facts.primary is not None:
        reference = clean_line(facts.primary.item.reference, _LABEL)
        frozen = facts.history.machine.frozen
        shown.append(Gate(f"{reference} is frozen", frozen, reference))
    return tuple(shown)


def _completion(text: str, readiness: Readiness | None) -> Gate:
    label = clean_line(text, _LABEL)
    if readiness is None:
        return Gate(label, None, READINESS, evidence="readiness.md cannot be read")
    line = readiness.checked.get(text)
    if line is not None:
        return Gate(label, True, READINESS, line)
    box = nearest(text, readiness.boxes)
    if box is None:
        return Gate(label, False, READINESS, evidence="not in readiness.md")
    if box.text == text and not box.checked:
        return Gate(label, False, READINESS, box.line)
    evidence = f"nearest: {clean_line(box.text, _LABEL)}"
    return Gate(label, False, READINESS, box.line, evidence)


def _readiness(readiness: Readiness | None) -> list[Gate]:
    if readiness is None:
        labels = ("Every question is classified", "Nothing blocks", "Deferred items have a reason")
        return [Gate(label, None, READINESS) for label in (*labels, READY)]
    return [
        _none_of("Every question is classified", readiness.unresolved),
        _none_of("Nothing blocks", readiness.blocking),
        _none_of("Deferred items have a reason", readiness.unreasoned),
        _ready(readiness),
    ]


def _ready(readiness: Readiness) -> Gate:
    if readiness.ready is not None:
        return Gate(READY, True, READINESS, readiness.ready)
    box = nearest(READY, readiness.boxes)
    if box is None:
        return Gate(READY, False, READINESS, evidence="not in readiness.md")
    return Gate(READY, False, READINESS, box.line)


def _none_of(label: str, items: tuple[Item, ...]) -> Gate:
    if not items:
        return Gate(label, True, READINESS)
    more = f" and {len(items) - 1} more" if len(items) > 1 else ""
    evidence = f"[{items[0].word}] {clean_line(items[0].text, _LABEL)}{more}"
    return Gate(label, False, READINESS, items[0].line, evidence)
