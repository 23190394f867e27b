"""A person answers what a review asks: the answer stands below the question in review.md.

Source: folder protocol specification, "Review Format". The format leaves room below a question;
whoever takes the next turn reads it there.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from acp_core.model import Action
from acp_core.protocols.folder.actions.changing import changing
from acp_core.protocols.folder.actions.names import ANSWERING
from acp_core.protocols.folder.schema import documents
from acp_core.protocols.folder.schema.documents import Review
from acp_core.protocols.folder.schema.questions import ANSWER, OVER, Asked
from acp_core.protocols.folder.view.questions import named
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.folder.write.opened import Opened

REVIEW = "review.md"


def answer_question(opened: Opened, review: Review | None) -> Action | None:
    """Answer a review's question, whoever's turn it is; None where none is open.

    ``review`` is review.md, None where it cannot be read.
    """
    if opened.machine.phase in OVER or review is None:
        return None
    open_ones = _open(opened, review)
    if not open_ones:
        return None
    choice = Literal[tuple(open_ones)]  # type: ignore[valid-type]
    first = next(iter(open_ones))
    fields: dict[str, Any] = {
        "question": (choice, Field(first, title="Question")),
        "answer": (
            str,
            Field(
                min_length=1,
                title="Answer",
                description="Stands below the question in review.md.",
                json_schema_extra={"format": "multiline"},
            ),
        ),
    }

    def change(text: str, answers: Any) -> str:
        asked = _open(opened, documents.scan_review(text)).get(answers.question)
        if asked is None:
            raise Refused("the question no longer stands in review.md, or is answered")
        return with_answer(text, asked, answers.answer)

    return changing(
        opened,
        REVIEW,
        ANSWERING,
        "Answer a question",
        "Answer what a review asks: your answer is put below the question in review.md.",
        fields,
        change,
    )


def _open(opened: Opened, review: Review) -> dict[str, Asked]:
    """The questions of this round that nobody answered, by the name that a choice has."""
    revised = opened.machine.last.get("proposal_revised") or 0
    known = opened.machine.reviews
    return {
        named(each): each
        for each in review.questions
        if not each.answered and each.seq > revised and each.seq in known
    }


def with_answer(text: str, asked: Asked, answer: str) -> str:
    """review.md with an answer below a question; its lines are indented, as the question's own.

    Raises:
        Refused: there is no answer.
    """
    words = [line.strip() for line in answer.splitlines() if line.strip()]
    if not words:
        raise Refused("write an answer")
    added = [f"  {ANSWER} {words[0]}", *(f"  {line}" for line in words[1:])]
    lines = text.split("\n")
    return "\n".join((*lines[: asked.end], *added, *lines[asked.end :]))
