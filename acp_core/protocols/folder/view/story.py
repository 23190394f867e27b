"""What a folder collaboration tells of its past: turns from its log, points and counts from its documents.

Which points reviews raised, by whom, how each was answered, and which are still open is derived from
the documents' own structure alone: the parts of a review, an answer below a question, an item of
readiness.md or a decision that begins with the words of a point, and the events that follow a review.
What cannot be matched is listed as unmatched, never guessed.
Source: folder protocol specification, "Phases", "Review Format" and "Readiness Gate".
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import chain, islice, takewhile
from operator import is_, itemgetter
from typing import Generic, NamedTuple, TypeVar

from acp_core.files import markdown
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.past import Count, PastTurn, Request, Story, summed
from acp_core.model.snapshot import Panel, Row, Target, Tone
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.documents import ANSWER, TEMPLATE, Item, ReviewHeading
from acp_core.protocols.folder.schema.records import Entry
from acp_core.protocols.folder.state import Machine

REQUIRED = "Required Changes"

PARTS = ("Concerns", REQUIRED, "Questions")

POSITION = "Position"

_ID = 200  # characters of a participant's id

_PART = re.compile(r"[*_]{0,3}([A-Z][A-Za-z ]{1,40})[*_]{0,3}:[*_]{0,3}\s*(.*)")

_BULLET = re.compile(r"(?:[-*+]|\d{1,3}[.)])\s+(\S.*)")

_NOTHING = re.compile(r"(?:none|nothing|n/a|no \w+)\b[^?]{0,60}|[-–—.…]*", re.I)


class Written(NamedTuple):
    """A point of a review, and the line of review.md at which it begins."""

    text: str
    line: int


Asked = dict[int, dict[str, list[Written]]]


class _Open(NamedTuple):
    since: datetime | None
    event: str | None
    phase: str
    round: int


def story(facts: Facts, review: str | None, decisions: str | None) -> Story:
    """The turns, the counts and what reviews ask for.

    Args:
        facts: what was read of the collaboration.
        review: the text of review.md, None where it cannot be read.
        decisions: that of decisions.md, likewise.
    """
    asked = _asked(facts, review)
    return Story(
        tuple(_turns(facts.history)),
        tuple(_counts(facts, asked, decisions)),
        tuple(_requests(facts, asked)),
    )


class Totals:
    """What the counts of a story come to, worked out again and again of a log that grows.

    What the documents say is kept as long as they stay the same.
    """

    def __init__(self) -> None:
        self._review: object = None
        self._asked: Asked = {}

    def of(
        self, facts: Facts, review: Callable[[], str | None], decisions: str | None
    ) -> dict[str, int | None]:
        """The sums of `Story.counts`.

        Args:
            facts: what was read of the collaboration.
            review: gives the text of review.md, None where it cannot be read.
            decisions: that of decisions.md, likewise.
        """
        if facts.review is not self._review or facts.review is None:
            text = review() if facts.review is not None else None
            self._asked = _asked(facts, text)
            self._review = facts.review
        history, asked = facts.history, self._asked
        if not history.check.regular:
            return summed(_counts(facts, asked, decisions))
        reviews = history.machine.reviews  # each event bears the number of its place
        found: dict[str, int | None] = {}
        if reviews:
            known = reviews.keys() <= asked.keys()
            for part in PARTS:
                points = (len(asked[seq].get(part, ())) for seq in reviews) if known else ()
                found[part.lower()] = sum(points) if known else None
        return found | summed(_of_documents(facts, decisions))


def _turns(history: History) -> list[PastTurn]:
    """One for each time that a participant was waited for, in the order in which they ended."""
    machine = Machine(history.participants, history.dialect)
    open_turns: dict[str, _Open] = {}
    found: list[PastTurn] = []
    written, at = "", None
    for entry in history.entries.outlines():
        machine.feed(entry)
        if entry.at != written:
            written, at = entry.at, records.parse_time(entry.at)
        waiting = machine.waiting
        own = open_turns.pop(entry.sender, None)
        if own is not None:
            found.append(_turn(entry.sender, own, at, entry))
        for name in [name for name in open_turns if name not in waiting]:
            found.append(_turn(name, open_turns.pop(name), at, None))
        for name in machine.waiting:
            if name not in open_turns:
                round_ = machine.round or 1
                open_turns[name] = _Open(at, entry.name, machine.phase, round_)
    found += [_turn(name, own, None, None) for name, own in open_turns.items()]
    return found


def _turn(name: str, own: _Open, at: datetime | None, entry: Entry | None) -> PastTurn:
    return PastTurn(
        clean_name(name, _ID),
        own.since,
        own.event,
        at,
        entry.name if entry else None,
        clean_line(entry.event, 100) if entry else "",
        own.phase,
        own.round,
    )


def _asked(facts: Facts, review: str | None) -> Asked:
    """What each review that review.md holds asks for."""
    if review is None or facts.review is None:
        return {}
    headings = {heading.line: seq for seq, heading in facts.review.headings.items()}
    return points(review, headings)


def _counts(facts: Facts, asked: Asked, decisions: str | None) -> list[Count]:
    return [*_of_reviews(facts, asked), *_of_documents(facts, decisions)]


def _of_documents(facts: Facts, decisions: str | None) -> list[Count]:
    found = [Count("decisions", _decisions(facts, decisions))]
    readiness = facts.readiness
    for word in ("resolved", "deferred_nonblocking", "unresolved", "blocking"):
        value = sum(item.word == word for item in readiness.items) if readiness else None
        found.append(Count(f"readiness: {word.partition('_')[0]}", value))
    return found


def _decisions(facts: Facts, text: str | None) -> int | None:
    """The numbered ones; in dialect v1, where none is, the bullets of the first level."""
    if facts.decisions is None or text is None:
        return None
    if facts.decisions.decisions or facts.dialect == records.V2:
        return len(facts.decisions.decisions)
    points = (_BULLET.fullmatch(line.rstrip()) for line in text.split("\n"))
    return sum(point is not None and not _NOTHING.fullmatch(point[1].strip()) for point in points)


def _of_reviews(facts: Facts, asked: Asked) -> list[Count]:
    """What each review asks for; None where review.md does not hold it."""
    return [
        Count(
            part.lower(),
            len(asked[entry.seq].get(part, ())) if entry.seq in asked else None,
            entry.name,
            clean_name(entry.sender, _ID),
        )
        for entry in _reviews(facts.history)
        if entry.seq is not None
        for part in PARTS
    ]


def _reviews(history: History) -> Iterator[Entry]:
    if not history.review_at:
        return iter(())
    return (each for each in history.entries.outlines() if each.event == "review_submitted")


def _requests(facts: Facts, asked: Asked) -> list[Request]:
    """The required changes of each review, in its order."""
    return [
        Request(clean_line(point.text), entry.name, clean_name(entry.sender, _ID))
        for entry in (_reviews(facts.history) if asked else ())
        if entry.seq in asked
        for point in asked[entry.seq].get(REQUIRED, ())
    ]


def may_raise(text: str) -> bool:
    """Whether a review can make a point at all: it names one of the parts. Much faster than `points`."""
    folded = text.lower()
    return any(part.lower() in folded for part in PARTS)


def points(text: str, headings: dict[int, int], parts: Sequence[str] = PARTS) -> Asked:
    """The points that each review makes in each part, by the review's seq.

    A part's text on its own line, or without bullets, is one point; "none" is no point. An answer
    below a question does not belong to the point.

    Args:
        text: review.md.
        headings: the line of each review's heading -> the review's seq.
        parts: those that are read.
    """
    found: Asked = {}
    seq, part, loose, answered = None, "", False, False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("#"):
            if number in headings:
                seq = headings[number]
                found[seq] = {}
            elif line.startswith("## "):
                seq = None
            part = ""
            continue
        if not line or seq is None or (part not in parts and ":" not in line):
            continue  # nothing that is read, and no title of a part
        title = _PART.fullmatch(line.rstrip()[:400])
        bullet = _BULLET.fullmatch(line.strip()) if not line.startswith(("    ", "\t")) else None
        if title is not None and bullet is None:
            part, loose = title[1].strip().title(), False
            point = title[2]
        elif bullet is not None:
            point = bullet[1]
        else:
            point = "" if loose or line.startswith((" ", "\t")) else line.strip()
            loose = loose or bool(point)
        known = found[seq].get(part)
        if known and not point and line.startswith((" ", "\t")):
            answered = answered or line.strip().startswith(ANSWER)
            if answered:
                continue
            whole = f"{known[-1].text} {line.strip()}"  # a point goes on
            known[-1] = known[-1]._replace(text=whole)
        if part in parts and point and not _NOTHING.fullmatch(point.strip()):
            found[seq].setdefault(part, []).append(Written(point.strip(), number))
            answered = False
    return found


_LOOKED = 1_000  # events from the end that are looked at

_KEPT = 15  # turns of a participant that count


class Pace:
    """The latest turns of participants; worked out again only when the log grew."""

    def __init__(self) -> None:
        self._for: tuple[History | None, int] = (None, 0)
        self._took: dict[str, tuple[float, ...]] = {}

    def of(self, history: History, participant: str) -> tuple[float, ...]:
        """Seconds that a participant's turns took, oldest first (an id as Snapshots show it)."""
        key = (history, len(history.entries))
        if self._for[0] is not key[0] or self._for[1] != key[1]:
            self._for, self._took = key, {}
        if participant not in self._took:
            latest = islice(_newest_first(history.entries, participant), _KEPT)
            self._took[participant] = tuple(reversed([*latest]))
        return self._took[participant]


def _newest_first(entries: Sequence[Entry], participant: str) -> Iterator[float]:
    """How long each turn took; no more of the log is looked at than is asked for."""
    back = (entries[i] for i in range(len(entries) - 1, max(0, len(entries) - _LOOKED) - 1, -1))
    looked: list[Entry] = []
    by_seq: dict[int, Entry] = {}  # of those; the latest where a seq is there twice

    def read_one() -> bool:
        entry = next(back, None)
        if entry is None:
            return False
        looked.append(entry)
        if entry.seq is not None:
            by_seq.setdefault(entry.seq, entry)
        return True

    position = 0
    while position < len(looked) or read_one():
        entry = looked[position]
        position += 1
        if entry.reply_to is None or clean_name(entry.sender, 200) != participant:
            continue
        while entry.reply_to not in by_seq and read_one():
            pass
        answered = by_seq.get(entry.reply_to)
        seconds = _between(answered, entry) if answered else None
        if seconds is not None:
            yield seconds


def _between(first: Entry, second: Entry) -> float | None:
    """Seconds from one event to the other; None where they are not known."""
    began, ended = records.parse_time(first.at), records.parse_time(second.at)
    if began is None or ended is None or ended < began:
        return None
    return (ended - began).total_seconds()


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

_DECISION_LINE = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)]|#{1,6})\s+(?:Decision:\s*)?(\S.*)$")


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
    if not may_raise(text):
        return Documents({}, {})
    lines = {each.line: seq for seq, each in review.headings.items()}
    raised = points(text, lines)
    return Documents(
        review.headings,
        {seq: parts for seq, parts in raised.items() if parts},
        frozenset(each.line for each in review.questions if each.answered),
        facts.readiness.items if facts.readiness else (),
        _decision_lines(_text(facts, DECISIONS)),
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


def _decision_lines(text: str) -> list[tuple[str, int]]:
    """What decisions.md lists, with its lines."""
    bullets = (
        (_DECISION_LINE.match(line), number) for number, line in enumerate(text.split("\n"), 1)
    )
    return [(found[1], number) for found, number in bullets if found is not None]


def _text(facts: Facts, name: str) -> str:
    """A document's text; "" where it cannot be read, or lies elsewhere."""
    file = facts.files.get(name)
    if file is None or file.outside:
        return ""
    try:
        data = read_bounded(facts.path(name), records.MAX_DOCUMENT)
    except Unreadable:
        return ""
    return markdown.normalise(data.decode(errors="replace"))
