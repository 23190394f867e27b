"""Which points reviews raised, by whom, how each was answered, and which are still open.

Derived from the documents' own structure alone: the parts of a review, an answer below a question,
an item of readiness.md or a decision that begins with the words of a point, and the events that
follow a review. What cannot be matched is listed as unmatched, never guessed.

Source: folder protocol specification, "Review Format" and "Readiness Gate". Pure functions.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from operator import itemgetter
from typing import Generic, NamedTuple, TypeVar

from acp_core.protocols.folder.schema.documents import TEMPLATE, Item, ReviewHeading
from acp_core.protocols.folder.view.story import PARTS, Asked

T = TypeVar("T")

OPEN, ANSWERED, DECIDED = "open", "answered", "decided"
ACCEPTED, REVISED = "accepted", "revised since"
KINDS = dict(zip(PARTS, ("concern", "required change", "question"), strict=True))
"""What a point is called, by the part of the review in which it stands."""
OF_ITEMS = {
    "resolved": "resolved",
    "deferred_nonblocking": "deferred",
    "blocking": OPEN,
    "unresolved": OPEN,
}
"""What an item of readiness.md makes of the point that it begins with, by its word."""
_MARKS = re.compile(r"[*_`]")
_END = " .?!:;,"


class Answer(NamedTuple):
    """Where a point is answered: the words of the place, and the document's line."""

    place: str
    document: str = ""
    line: int | None = None


class Point(NamedTuple):
    """What a reviewer raised, in however many rounds.

    Attributes:
        kind: one of `KINDS`.
        text: in the words of the review that raised it first.
        by: the reviewer.
        rounds: the rounds of review in which it was raised; empty where the log has no such review.
        line: of review.md, where it was raised last.
        state: whether it is open, or how it was answered.
        answers: where.
    """

    kind: str
    text: str
    by: str
    rounds: tuple[int, ...]
    line: int
    state: str
    answers: tuple[Answer, ...] = ()


class Course(NamedTuple):
    """What the log says of the reviews.

    Attributes:
        rounds: the seq of each review -> its round.
        revised: the seq of the latest revision of the proposal; 0 where there is none.
        accepted: who accepted the decisions since they were last classified.
        classified: the seq of that classification.
    """

    rounds: Mapping[int, int]
    revised: int = 0
    accepted: Sequence[str] = ()
    classified: int = 0


class Documents(NamedTuple):
    """What the documents say: headings and points of reviews, answers, items and decisions.

    ``answered`` are the lines of questions that have an answer below them; ``decisions`` are lines
    of decisions.md with their numbers.
    """

    headings: Mapping[int, ReviewHeading]
    raised: Asked
    answered: frozenset[int] = frozenset()
    items: Sequence[Item] = ()
    decisions: Sequence[tuple[str, int]] = ()


class Disagreement(NamedTuple):
    """Every point once, the open ones first, and the items of readiness.md that match none."""

    points: tuple[Point, ...] = ()
    unmatched: tuple[Item, ...] = ()


class _Raising(NamedTuple):
    """A point as one review raises it."""

    seq: int
    text: str
    line: int


def disagreement(documents: Documents, course: Course) -> Disagreement:
    """What was raised, how it was answered, and what is open."""
    items = [item for item in documents.items if item.text and item.text != TEMPLATE]
    of_items = _Beginnings((item.text, item) for item in items)
    of_decisions = _Beginnings(documents.decisions)
    matched: set[Item] = set()
    found = []
    for (by, part, words), raisings in _gathered(documents).items():
        own = of_items.matching(words)
        matched.update(own)
        answers = [
            *_in_readiness(own),
            *_in_review(raisings[-1], documents),
            *_in_decisions(of_decisions.matching(words)),
            *_in_log(by, raisings[-1].seq, course),
        ]
        found.append(_point(by, part, raisings, answers, course))
    found.sort(key=lambda point: (point.state != OPEN, point.line))
    return Disagreement(tuple(found), tuple(item for item in items if item not in matched))


def _gathered(documents: Documents) -> dict[tuple[str, str, str], list[_Raising]]:
    """The points by reviewer, part and folded words: what is raised again is the same point."""
    found: dict[tuple[str, str, str], list[_Raising]] = {}
    for seq in sorted(documents.raised):
        heading = documents.headings.get(seq)
        if heading is None:
            continue
        for part, points in documents.raised[seq].items():
            for point in points:
                key = (heading.participant, part, folded(point.text))
                found.setdefault(key, []).append(_Raising(seq, point.text, point.line))
    return found


def _point(
    by: str,
    part: str,
    raisings: Sequence[_Raising],
    answers: Sequence[tuple[str, Answer]],
    course: Course,
) -> Point:
    states = [state for state, _ in answers]
    rounds = (course.rounds[each.seq] for each in raisings if each.seq in course.rounds)
    return Point(
        kind=KINDS[part],
        text=raisings[0].text,
        by=by,
        rounds=tuple(dict.fromkeys(rounds)),
        line=raisings[-1].line,
        state=OPEN if OPEN in states or not states else states[0],
        answers=tuple(answer for _, answer in answers),
    )


def _in_readiness(items: Iterable[Item]) -> Iterator[tuple[str, Answer]]:
    for item in items:
        place = f"readiness.md:{item.line} [{item.word}]"
        yield OF_ITEMS.get(item.word, OPEN), Answer(place, "readiness.md", item.line)


def _in_review(raised: _Raising, documents: Documents) -> Iterator[tuple[str, Answer]]:
    if raised.line in documents.answered:
        yield ANSWERED, Answer(f"review.md:{raised.line} (answer)", "review.md", raised.line)


def _in_decisions(lines: Iterable[int]) -> Iterator[tuple[str, Answer]]:
    for line in lines:
        yield DECIDED, Answer(f"decisions.md:{line}", "decisions.md", line)


def _in_log(by: str, seq: int, course: Course) -> Iterator[tuple[str, Answer]]:
    if by in course.accepted and course.classified > seq:
        yield ACCEPTED, Answer(f"{by} accepted the decisions")
    if course.revised > seq:
        yield REVISED, Answer(f"proposal revised (seq {course.revised})")


class _Beginnings(Generic[T]):
    """Texts in their order, so that those that begin with a point are found at once."""

    def __init__(self, texts: Iterable[tuple[str, T]]) -> None:
        self._texts = sorted(((folded(text), what) for text, what in texts), key=itemgetter(0))

    def matching(self, words: str) -> list[T]:
        """What stands for the texts that begin with the words of a point, as `folded` gives them."""
        start = bisect_left(self._texts, words, key=itemgetter(0))
        near = takewhile(lambda each: each[0].startswith(words), islice(self._texts, start, None))
        return [what for whole, what in near if _begins(whole, words)]


def begins_with(text: str, point: str) -> bool:
    """Whether a text begins with the words of a point: they end there, or at a mark."""
    return _begins(folded(text), folded(point))


def _begins(whole: str, words: str) -> bool:
    rest = whole[len(words) :]
    return bool(words) and whole.startswith(words) and (not rest or rest[0] in _END[1:])


def folded(text: str) -> str:
    """A text without what carries no meaning: case, emphasis, blanks, marks at its end."""
    return " ".join(_MARKS.sub("", text).casefold().split()).rstrip(_END)
