"""How long participants' turns took: from the event that one answers to the answer."""

from __future__ import annotations

from collections import deque

from acp_core.files.text import clean_line
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.history import History
from acp_core.protocols.folder.schema import Entry

_LOOKED = 1_000  # events from the end that are looked at
_KEPT = 15  # turns of a participant that count


class Pace:
    """The latest turns of every participant; worked out again only when the log grew."""

    def __init__(self) -> None:
        self._for: tuple[History | None, int] = (None, 0)
        self._took: dict[str, deque[float]] = {}

    def of(self, history: History, participant: str) -> tuple[float, ...]:
        """Seconds that a participant's turns took, oldest first (an id as Snapshots show it)."""
        key = (history, len(history.entries))
        if self._for[0] is not key[0] or self._for[1] != key[1]:
            self._for, self._took = key, _took(history)
        return tuple(self._took.get(participant, ()))


def _took(history: History) -> dict[str, deque[float]]:
    latest = history.entries[-_LOOKED:]
    by_seq = {entry.seq: entry for entry in latest if entry.seq is not None}
    found: dict[str, deque[float]] = {}
    for entry in latest:
        answered = by_seq.get(entry.reply_to) if entry.reply_to is not None else None
        seconds = _between(answered, entry) if answered else None
        if seconds is not None:
            name = clean_line(entry.sender, 200)
            found.setdefault(name, deque(maxlen=_KEPT)).append(seconds)
    return found


def _between(first: Entry, second: Entry) -> float | None:
    """Seconds from one event to the other; None where they are not known."""
    began, ended = schema.parse_time(first.at), schema.parse_time(second.at)
    if began is None or ended is None or ended < began:
        return None
    return (ended - began).total_seconds()
