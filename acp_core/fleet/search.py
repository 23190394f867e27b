"""Finding a collaboration by words in its name, its objective and its documents.

Every word must occur, in whatever case and with or without accents. What somebody named or
decided counts for more than what was said along the way. No protocol is known here: the
documents come from the Snapshots, their texts from whatever loads them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from acp_core.model import Document, DocumentText, Snapshot
from acp_core.model.text import clean_line

if TYPE_CHECKING:
    from acp_core.fleet import Fleet

Load = Callable[[str, str], DocumentText]  # key of a collaboration, id of a document

NAMED = 100.0  # what a word weighs in a name or an objective,
DECIDED_HEADING = 40.0  # in the heading of a decision or conclusion,
DECIDED = 20.0  # below one,
HEADING = 10.0  # in another heading,
ELSEWHERE = 5.0  # and anywhere else
INSIDE = 0.5  # how much of that where it only stands inside another word
EXCERPT = 160  # characters

_ACCENTS = re.compile("[\u0300-\u036f]+")
_DECISION = re.compile(r"decision|conclu|decid|outcome")


@dataclass(frozen=True, slots=True)
class Hit:
    """A collaboration that holds all the words, and the place that speaks for it best.

    ``document`` and ``line`` (from 1) are None where that is its name or objective; ``score``
    is higher for a better hit. All text is safe to show.
    """

    key: str
    name: str
    document: str | None
    line: int | None
    excerpt: str
    score: float


@dataclass(frozen=True, slots=True)
class _Match:
    document: str | None
    line: int | None
    excerpt: str
    weights: dict[str, float]  # of each word that stands here


def search(
    snapshots: Iterable[Snapshot],
    words: str,
    load: Load,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> list[Hit]:
    """The collaborations that hold all ``words``, the best first; see `hits`."""
    found = hits(snapshots, words, load, stop=stop)
    return sorted(found, key=lambda hit: (-hit.score, hit.name.casefold(), hit.key))


def hits(
    snapshots: Iterable[Snapshot],
    words: str,
    load: Load,
    *,
    stop: Callable[[], bool] = lambda: False,
) -> Iterator[Hit]:
    """The collaborations that hold all ``words``, one hit for each, as they are found.

    One document is held at a time. Slow: for a worker thread.

    Args:
        snapshots: Where to look.
        words: Separated by blanks; none find nothing.
        load: Gives the text of a document, as `Collaboration.load` does (see `loader`); one
            that it fails to give is passed over.
        stop: Asked before every document; True ends the search.
    """
    wanted = tuple(dict.fromkeys(fold(words).split()))
    for snapshot in snapshots if wanted else ():
        if stop():
            return
        hit = _hit(snapshot, wanted, load, stop)
        if hit is not None:
            yield hit


def loader(fleet: Fleet) -> Load:
    """What loads documents of a fleet's collaborations, for `hits`; not for the event loop's thread.

    Returns:
        A function of a collaboration's key and a document's id, which raises as `Fleet.call` and
        `Collaboration.load` do.
    """
    return lambda key, document: fleet.call_sync(key, lambda opened: opened.load(document))


def fold(text: str) -> str:
    """``text`` without case and accents, line for line."""
    if text.isascii():
        return text.lower()
    return _ACCENTS.sub("", unicodedata.normalize("NFKD", text)).casefold()


def _hit(
    snapshot: Snapshot, wanted: tuple[str, ...], load: Load, stop: Callable[[], bool]
) -> Hit | None:
    best = _named(snapshot, wanted)
    weights, count = dict(best.weights), len(best.weights)
    if len(weights) < len(wanted):
        for document in _documents(snapshot):
            if stop():
                return None
            text = _text(snapshot, document, load)
            for place in _places(document, text, wanted) if text else ():
                count += 1
                for word, weight in place.weights.items():
                    weights[word] = max(weights.get(word, 0.0), weight)
                if sum(place.weights.values()) > sum(best.weights.values()):
                    best = place
    if len(weights) < len(wanted):
        return None
    score = sum(weights.values()) + min(count, 99) / 100  # more places decide between equals
    return Hit(snapshot.key, snapshot.name, best.document, best.line, best.excerpt, score)


def _named(snapshot: Snapshot, wanted: tuple[str, ...]) -> _Match:
    folded = fold(f"{snapshot.name}\n{snapshot.objective}")
    weights = _weights(folded, wanted, NAMED)
    first = next(iter(weights), "")
    return _Match(None, None, _excerpt(snapshot.objective or snapshot.name, first), weights)


def _documents(snapshot: Snapshot) -> Iterator[Document]:
    seen: set[str] = set()
    for document in snapshot.documents:
        if document.kind == "markdown" and document.id not in seen:
            seen.add(document.id)
            yield document


def _text(snapshot: Snapshot, document: Document, load: Load) -> DocumentText | None:
    try:
        return load(snapshot.key, document.id)
    except Exception:  # gone or unreadable by now; the search goes on without it
        return None


def _places(document: Document, text: DocumentText, wanted: tuple[str, ...]) -> Iterator[_Match]:
    """The lines in which any of the words stands."""
    folded = fold(text.text)
    if not any(word in folded for word in wanted):
        return
    decided_all = _DECISION.search(fold(f"{document.id} {document.title}")) is not None
    headings = {heading.line: heading for heading in text.headings}
    lines: list[str] = []
    decided_at: int | None = None  # the level of the heading of a decision that holds here
    for number, line in enumerate(folded.split("\n"), 1):
        heading = headings.get(number)
        if heading is not None:
            if decided_at is not None and heading.level <= decided_at:
                decided_at = None
            if decided_at is None and _DECISION.search(line):
                decided_at = heading.level
        decided = decided_all or decided_at is not None
        if heading is not None:
            weight = DECIDED_HEADING if decided else HEADING
        else:
            weight = DECIDED if decided else ELSEWHERE
        weights = _weights(line, wanted, weight)
        if weights:
            lines = lines or text.text.split("\n")
            first = next(iter(weights))
            yield _Match(document.id, number, _excerpt(lines[number - 1], first), weights)


def _weights(folded: str, wanted: tuple[str, ...], weight: float) -> dict[str, float]:
    """The words that stand in a folded text, with what each weighs there."""
    return {
        word: weight if _begins(word, folded) else weight * INSIDE
        for word in wanted
        if word in folded
    }


def _begins(word: str, folded: str) -> bool:
    """Whether a word of the text begins with ``word``."""
    at = folded.find(word)
    while at > 0 and folded[at - 1].isalnum():
        at = folded.find(word, at + 1)
    return at >= 0


def _excerpt(line: str, word: str) -> str:
    """The part of a line around the first occurrence of a folded word."""
    shown = clean_line(line.strip(), len(line) + 1)
    if len(shown) <= EXCERPT:
        return shown
    # A folded text may be longer or shorter than the text: near enough to show the place.
    start = max(0, min(fold(shown).find(word) - EXCERPT // 3, len(shown) - EXCERPT))
    cut = shown[start : start + EXCERPT].strip()
    return f"{'…' if start else ''}{cut}{'…' if start + EXCERPT < len(shown) else ''}"
