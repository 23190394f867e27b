"""Which points reviews raised, by whom, how each was answered, and which are still open.

Derived from the documents' own structure alone: the parts of a review, an answer below a question,
an item of readiness.md or a decision that begins with the words of a point, and the events that
follow a review. What cannot be matched is listed as unmatched, never guessed.

Source: folder protocol specification, "Review Format" and "Readiness Gate". Pure functions.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice, takewhile
from operator import is_, itemgetter
from typing import Generic, NamedTuple, TypeVar

from acp_core.files import markdown
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.snapshot import Panel, Row, Target, Tone
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema.documents import TEMPLATE, Item, ReviewHeading
from acp_core.protocols.folder.state import Machine
from acp_core.protocols.folder.view import story
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


REVIEW, DECISIONS, READINESS = "review.md", "decisions.md", "readiness.md"

COLUMNS = ("state", "point", "raised by", "kind", "round", "answer")

MOST = 500

"""Rows of the panel."""

_POINT_TEXT, _POINT_NAME = 1_000, 200

_BULLET = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)]|#{1,6})\s+(?:Decision:\s*)?(\S.*)$")


class ReviewPoints:
    """The panel of one collaboration."""

    def __init__(self) -> None:
        self._documents: tuple[object, ...] = ()
        self._written = Documents({}, {})
        self._events: tuple[object, ...] = ()
        self._panels: tuple[Panel, ...] = ()

    def panels(self, facts: Facts) -> tuple[Panel, ...]:
        """The panel, where a review raises anything; the same object while nothing changed.

        Documents are read again only where one of them changed, not with every event.
        """
        machine = facts.history.machine
        documents = (facts.review, facts.readiness, facts.decisions)
        events = (
            *(len(machine.reviews), len(machine.starts), *machine.accepted),
            *map(machine.last.get, ("proposal_revised", "question_classified")),
        )
        same = len(self._documents) == len(documents) and all(map(is_, self._documents, documents))
        if not same:
            self._documents, self._written = documents, _written(facts)
        if not same or events != self._events:
            self._events, self._panels = events, _panels(self._written, machine)
        return self._panels


def _written(facts: Facts) -> Documents:
    """What the documents say now."""
    review = facts.review
    if review is None or not review.headings:
        return Documents({}, {})
    text = _text(facts, REVIEW)
    if not story.may_raise(text):
        return Documents({}, {})
    lines = {each.line: seq for seq, each in review.headings.items()}
    raised = story.points(text, lines)
    return Documents(
        review.headings,
        {seq: parts for seq, parts in raised.items() if parts},
        frozenset(each.line for each in review.questions if each.answered),
        facts.readiness.items if facts.readiness else (),
        _decisions(_text(facts, DECISIONS)),
    )


def _panels(written: Documents, machine: Machine) -> tuple[Panel, ...]:
    if not written.raised:
        return ()
    found = disagreement(written, _course(machine))
    return (panel(found),) if found.points else ()


def panel(found: Disagreement) -> Panel:
    """The panel of what was derived."""
    rows = [*islice(chain(map(_row, found.points), map(_unmatched, found.unmatched)), MOST)]
    more = len(found.points) + len(found.unmatched) - len(rows)
    if more:
        rows.append(Row(("", f"… {more} more", "", "", "", "")))
    return Panel("points", "Review points", "table", COLUMNS, tuple(rows), disagreement=True)


def _row(point: Point) -> Row:
    rounds = ", ".join(map(str, point.rounds))
    answers = " · ".join(each.place for each in point.answers)
    cells = (
        point.state, clean_line(point.text, _POINT_TEXT), clean_name(point.by, _POINT_NAME), point.kind,
        rounds, clean_line(answers, _POINT_TEXT),
    )  # fmt: skip
    is_open = point.state == OPEN
    return Row(
        cells,
        checked=not is_open,
        tone=Tone.REVIEW if is_open else Tone.OTHER,
        target=Target(document=REVIEW, line=point.line),
    )


def _unmatched(item: Item) -> Row:
    """An item of readiness.md that begins with the words of no point."""
    state = OF_ITEMS.get(item.word, item.word)
    cells = (state, clean_line(item.text, _POINT_TEXT), "unmatched", "readiness item", "",
             f"{READINESS}:{item.line}")  # fmt: skip
    is_open = state == OPEN
    target = Target(document=READINESS, line=item.line)
    return Row(
        cells, checked=not is_open, tone=Tone.REVIEW if is_open else Tone.OTHER, target=target
    )


def _course(machine: Machine) -> Course:
    reviewing = [
        (seq, number) for phase, number, seq, _ in machine.starts if phase == "reviewing" and seq
    ]
    begins = [seq for seq, _ in reviewing]
    rounds = {
        seq: reviewing[place - 1][1]
        for seq in machine.reviews
        if (place := bisect_right(begins, seq))
    }
    last = machine.last
    return Course(
        rounds,
        last.get("proposal_revised", 0),
        tuple(machine.accepted),
        last.get("question_classified", 0),
    )


def _decisions(text: str) -> list[tuple[str, int]]:
    """What decisions.md lists, with its lines."""
    bullets = ((_BULLET.match(line), number) for number, line in enumerate(text.split("\n"), 1))
    return [(found[1], number) for found, number in bullets if found is not None]


def _text(facts: Facts, name: str) -> str:
    """A document's text; "" where it cannot be read, or lies elsewhere."""
    file = facts.files.get(name)
    if file is None or file.outside:
        return ""
    try:
        data = read_bounded(facts.path(name), schema.MAX_DOCUMENT)
    except Unreadable:
        return ""
    return markdown.normalise(data.decode(errors="replace"))
