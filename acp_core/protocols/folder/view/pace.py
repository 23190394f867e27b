"""How long participants' turns took: from the event that one answers to the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from acp_core.model.text import clean_name
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema import Entry

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
