"""What a protocol tells of its past: whose turn it was when, what can be counted, and what is known of files.

Marks are who did what when, of many events: what figures need of each, without making the events.
Either a recording tracks a collaboration's files, or a log is made of its past; of a moment of which no
recording tells, files may be derived. Plain data, standard library only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.model.snapshot import Event


class PastTurn(NamedTuple):
    """A participant was waited for.

    Attributes:
        participant: an id as Snapshots show it.
        since, since_event: when it began, and the event that began it; None where not known.
        ended, event: when it ended, and the participant's event that ended it; None while it
            lasts, and ``event`` also where the wait ended without one.
        kind: of that event, "" where there is none.
        phase, round: in which it began.
    """

    participant: str
    since: datetime | None
    since_event: str | None
    ended: datetime | None
    event: str | None
    kind: str
    phase: str
    round: int


class Count(NamedTuple):
    """A number of something, such as the required changes of one review.

    ``what`` names it in the plural; ``event`` and ``participant`` say whose, where it is
    somebody's; ``value`` is None where the document that would tell is not there.
    """

    what: str
    value: int | None
    event: str | None = None
    participant: str | None = None


class Request(NamedTuple):
    """A change that somebody asked for: one point of a review. ``text`` is one line."""

    text: str
    event: str
    participant: str


class Story(NamedTuple):
    """The turns, oldest first; the counts; the changes that were asked for, by review."""

    turns: tuple[PastTurn, ...] = ()
    counts: tuple[Count, ...] = ()
    requests: tuple[Request, ...] = ()


def summed(counts: Iterable[Count]) -> dict[str, int | None]:
    """What counts come to in all, by what is counted; None where a part is not known."""
    found: dict[str, int | None] = {}
    for count in counts:
        if count.what not in found:
            found[count.what] = count.value
            continue
        sum_ = found[count.what]
        found[count.what] = None if sum_ is None or count.value is None else sum_ + count.value
    return found


class Mark(NamedTuple):
    """An event's ``id``, ``source``, ``actor``, ``kind`` and ``at``, as in `Event`."""

    id: str
    source: str
    actor: str
    kind: str
    at: datetime | None


def marks(events: Sequence[Event]) -> Iterator[Mark]:
    """The marks of events, in their order.

    A sequence that makes its events when they are asked for may know a faster way: its method ``marks``.
    """
    own = getattr(events, "marks", None)
    if own is None:
        return (Mark(e.id, e.source, e.actor, e.kind, e.at) for e in events)
    found: Iterable[Mark] = own()
    return iter(found)


class TrackedFile(NamedTuple):
    """A file of which a recording keeps every version.

    ``name`` is its path relative to the collaboration's folder, with "/" (it may begin with
    ".."); ``path`` is where it lies, unaltered. A ``log`` is only ever appended to: of each
    version the recording keeps what was added. ``document`` is its id in Snapshots, "" where
    it is none. A file that ``follows`` the log is written just after an event, and says what
    follows from it.
    """

    name: str
    path: str
    log: bool = False
    document: str = ""
    follows: bool = False


class PastLog(NamedTuple):
    """A past that no file holds as it is, as a log from which the protocol reads it again.

    ``name`` is that of the log's file, ``data`` what stands in it after the last event. For each
    event of the last Snapshot, ``ends`` says where its part of ``data`` ends, in bytes, and
    ``times`` when it was written, in seconds since 1970, None where that is not known.
    """

    name: str
    data: bytes
    ends: tuple[int, ...]
    times: tuple[float | None, ...]

    def until(self, events: int) -> bytes:
        """The log as far as it had got.

        Args:
            events: how many of its events had happened; at most as many as there are.
        """
        return self.data[: self.ends[events - 1]] if events else b""


Held = tuple[bytes, float]
"""A file's content, and since when it stands there, in seconds since 1970."""
Files = dict[str, bytes | None]
"""Contents by file name; None for a file that was not there."""


class Evidence(NamedTuple):
    """What is known of a moment.

    Attributes:
        at: the moment.
        log: the log's bytes as far as it had got; b"" where there is no log.
        known: the earliest known contents of the files that are not known of that moment.
        there: the files that are.
    """

    at: datetime
    log: bytes
    known: Mapping[str, bytes]
    there: Mapping[str, Held]


class Derivation(ABC):
    """Tells what stood in files at one moment after the other; may keep what it worked out."""

    @abstractmethod
    def derive(self, evidence: Evidence) -> Files:
        """What files held that are not known; those of which nothing can be told are left out."""
