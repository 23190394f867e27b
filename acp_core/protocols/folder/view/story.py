"""What a folder collaboration tells of its past: turns from its log, counts from its documents.

Source: folder protocol specification, "Phases" and "Review Format".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from acp_core.model.past import Count, PastTurn, Request, Story, summed
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import Entry
from acp_core.protocols.folder.schema.documents import ANSWER
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
            written, at = entry.at, schema.parse_time(entry.at)
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
    if facts.decisions.decisions or facts.dialect == schema.V2:
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


def may_raise(text: str, parts: Sequence[str] = PARTS) -> bool:
    """Whether a review can make a point at all: it names one of the parts. Much faster than `points`."""
    folded = text.lower()
    return any(part.lower() in folded for part in parts)


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
    began, ended = schema.parse_time(first.at), schema.parse_time(second.at)
    if began is None or ended is None or ended < began:
        return None
    return (ended - began).total_seconds()
