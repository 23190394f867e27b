"""The panel of what reviews raised and how it was answered; made anew only where something changed."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import chain, islice
from operator import is_

from acp_core.files import markdown
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.snapshot import Panel, Row, Target, Tone
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema.documents import Item
from acp_core.protocols.folder.state import Machine
from acp_core.protocols.folder.view import disagreement as derived
from acp_core.protocols.folder.view import story
from acp_core.protocols.folder.view.disagreement import Course, Disagreement, Documents, Point

REVIEW, DECISIONS, READINESS = "review.md", "decisions.md", "readiness.md"
COLUMNS = ("state", "point", "raised by", "kind", "round", "answer")
MOST = 500
"""Rows of the panel."""
_TEXT, _NAME = 1_000, 200
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
    found = derived.disagreement(written, _course(machine))
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
        point.state, clean_line(point.text, _TEXT), clean_name(point.by, _NAME), point.kind,
        rounds, clean_line(answers, _TEXT),
    )  # fmt: skip
    is_open = point.state == derived.OPEN
    return Row(
        cells,
        checked=not is_open,
        tone=Tone.REVIEW if is_open else Tone.OTHER,
        target=Target(document=REVIEW, line=point.line),
    )


def _unmatched(item: Item) -> Row:
    """An item of readiness.md that begins with the words of no point."""
    state = derived.OF_ITEMS.get(item.word, item.word)
    cells = (state, clean_line(item.text, _TEXT), "unmatched", "readiness item", "",
             f"{READINESS}:{item.line}")  # fmt: skip
    is_open = state == derived.OPEN
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
