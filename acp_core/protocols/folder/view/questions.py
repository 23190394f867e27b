"""What reviewers ask and what readiness.md has not settled, for the inbox."""

from __future__ import annotations

import zlib

from acp_core.model import Question
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import UNKNOWN_DIALECT
from acp_core.protocols.folder.schema.act_names import ANSWER_QUESTION, SETTLE_QUESTIONS
from acp_core.protocols.folder.schema.documents import OVER, Asked, Item
from acp_core.protocols.folder.view import participants

READINESS, REVIEW = "readiness.md", "review.md"
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
                participant=clean_name(entry.sender, participants.ID),
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
