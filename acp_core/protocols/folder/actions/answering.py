"""A person answers what a review asks: the answer stands below the question in review.md.

Source: folder protocol specification, "Review Format". The format leaves room below a question;
whoever takes the next turn reads it there.
"""

from __future__ import annotations

from datetime import datetime

from acp_core.model import Action
from acp_core.model.errors import Refused
from acp_core.protocols.folder.actions.changing import changing
from acp_core.protocols.folder.actions.common import open_folder
from acp_core.protocols.folder.actions.table_turns import ANSWER_QUESTION
from acp_core.protocols.folder.schema import documents
from acp_core.protocols.folder.schema.documents import ANSWER, OVER, Asked, Review
from acp_core.protocols.folder.view.build import named
from acp_core.protocols.folder.write.opened import Opened
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.values import Values

REVIEW = "review.md"


def answering(context: Context, now: datetime) -> Action:
    """Answer a review's question, whoever's turn it is.

    Raises:
        Refused: none is open, or the collaboration cannot be read.
    """
    here = open_folder(context, now)
    review = here.collaboration.facts.review
    over = here.opened.machine.phase in OVER
    waiting = {} if over or review is None else open_questions(here.opened, review)
    if not waiting:
        raise Refused("there is no open review question")

    def change(text: str, values: Values) -> str:
        asked = open_questions(here.opened, documents.scan_review(text)).get(values.question)
        if asked is None:
            raise Refused("the question was answered or removed from review.md")
        return with_answer(text, asked, values.answer)

    narrowed = {"question": {"choices": tuple(waiting), "default": next(iter(waiting))}}
    return changing(ANSWER_QUESTION, here, REVIEW, change, narrowed=narrowed)


def open_questions(opened: Opened, review: Review) -> dict[str, Asked]:
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
