"""A Snapshot that was made in an earlier run: what rows show of it, and the rest when asked for.

Most of a big fleet has ended long ago, and nobody opens it. What a row of the fleet says of such a
collaboration is kept as JSON; everything else is read from its folder when it is first looked at.
Who follows a fleet asks `Fleet.whole` before looking at more than a row.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, overload

from acp_core.model import (
    Cost,
    Event,
    Participant,
    Severity,
    Snapshot,
    Source,
    SourceState,
    Status,
    Tone,
    Verdict,
)
from acp_core.model.matter import remark

_log = logging.getLogger(__name__)

_TEXTS = ("protocol", "dialect", "name", "objective", "location", "headline", "phase", "doubt",
          "limits", "run_id", "summary")  # fmt: skip
_AS_IT_IS = ("progress", "round")
_TIMES = ("since", "started", "changed")
_NOTHING = (
    "turns",
    "runners",
    "needs",
    "causes",
    "obstacles",
    "questions",
    "parts",
    "lineage",
    "hosts",
)
"""What a collaboration that rests has none of."""
_LATER = frozenset(
    {"phases", "next_actions", "documents", "gates", "findings", "panels", "outcome"}
)
"""What is read when it is first looked at."""

Plain = list[Any]
Read = Callable[[], Snapshot | None]
"""Makes the whole Snapshot; None where this thread must not wait for it."""

strict = False
"""Whether to raise an AssertionError where who draws looks at more than a row; for tests."""


class CachedSnapshot(Snapshot):
    """A Snapshot whose details are read when they are first asked for; made by `restore`.

    One that is made of it by `dataclasses.replace` has everything at hand.
    """

    __slots__ = ("_counts", "_read")

    _counts: dict[Severity, int]
    _read: Read

    # A row is itself and no other: to compare its details would be to read them.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"CachedSnapshot({self.key!r})"

    def __getattr__(self, name: str) -> Any:
        """Read the details; only called for what is not there yet."""
        if name not in _LATER:
            raise AttributeError(name)
        full = self._read()
        if full is None:
            return ()
        for each in _LATER:
            object.__setattr__(self, each, getattr(full, each))
        return getattr(full, name)

    def from_source(self, source: Source, as_of: datetime) -> CachedSnapshot:
        """The same of a source that does not answer; without reading anything."""
        made = CachedSnapshot.__new__(CachedSnapshot)
        for each in (*(field.name for field in fields(Snapshot)), "_counts", "_read"):
            if each not in _LATER:
                object.__setattr__(made, each, getattr(self, each))
        object.__setattr__(made, "source", source)
        object.__setattr__(made, "as_of", as_of)
        return made

    def count(self, severity: Severity) -> int:
        """See `Snapshot.count`; without reading anything."""
        try:
            return self._counts[severity]
        except AttributeError:
            return super().count(severity)


class CachedEvents(Sequence[Event]):
    """The events of such a Snapshot; their number and the last one are known without reading.

    Args:
        count: how many there are.
        last: the last one, None where there is none.
        read: makes the whole Snapshot.
    """

    __slots__ = ("_all", "_count", "_last", "_read")

    def __init__(self, count: int, last: Event | None, read: Read) -> None:
        self._count = count
        self._last = last
        self._read = read
        self._all: Sequence[Event] | None = None

    def __len__(self) -> int:
        return self._count if self._all is None else len(self._all)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if self._all is None:
            if index == -1 and self._last is not None:
                return self._last
            full = self._read()
            if full is None:
                return ()[index]
            self._all = full.events
        return self._all[index]


def asked_too_early(key: str) -> None:
    """Say that more than a row was looked at without `Fleet.whole`.

    Raises:
        AssertionError: `strict` is set.
    """
    if strict:
        raise AssertionError(f"details of {key} asked for where nothing is read")
    _log.warning("details of %s were asked for before they were read", key)


def is_at_rest(snapshot: Snapshot) -> bool:
    """Whether it ended, nothing is wanted of anybody, and it will be the same at any later time."""
    return (
        snapshot.status is Status.COMPLETED
        and snapshot.source == Source()
        and snapshot.recheck_at is None
        and not any(getattr(snapshot, each) for each in _NOTHING)
    )


def plain(snapshot: Snapshot) -> Plain | None:
    """What rows show of a Snapshot that is at rest, for JSON; None where that cannot be told."""
    events = snapshot.events
    last = events[-1] if events else None
    found: Plain = [
        *(getattr(snapshot, each) for each in (*_TEXTS, *_AS_IT_IS)),
        *(_written(getattr(snapshot, each)) for each in _TIMES),
        snapshot.verdict.value,
        [
            [e.id, e.kind, e.role, e.last_event, _written(e.last_seen)]
            for e in snapshot.participants
        ],
        [[n.code, n.sentence, n.about.document, _written(n.since)] for n in snapshot.notices],
        [snapshot.count(each) for each in Severity],
        None if snapshot.cost is None else [snapshot.cost.usd, list(snapshot.cost.unknown)],
        len(events),
        None if last is None else [*last._replace(tone=last.tone.value, at=_written(last.at))],  # type: ignore[arg-type]
    ]
    try:
        again = restore(found, snapshot.key, snapshot.as_of, lambda: snapshot)
    except (TypeError, ValueError, KeyError):
        return None
    known = (*_TEXTS, *_AS_IT_IS, *_TIMES, "verdict", "participants", "notices", "matters", "cost")
    same = all(getattr(again, each) == getattr(snapshot, each) for each in known)
    return found if same and list(again.events[-1:]) == list(events[-1:]) else None


def restore(found: Plain, key: str, as_of: datetime, read: Read) -> CachedSnapshot:
    """The Snapshot that `plain` told of.

    Args:
        found: what it gave.
        key: the collaboration's.
        as_of: when it was seen that all is as it was.
        read: makes the whole Snapshot.

    Raises:
        TypeError, ValueError, KeyError: this is nothing that it gave.
    """
    first = len(_TEXTS) + len(_AS_IT_IS)
    verdict, people, notices, counts, cost, count, last = found[first + len(_TIMES) :]
    made = CachedSnapshot.__new__(CachedSnapshot)
    put = object.__setattr__
    for name, value in zip((*_TEXTS, *_AS_IT_IS), found[:first], strict=True):
        put(made, name, value)
    for name, value in zip(_TIMES, found[first:], strict=False):
        put(made, name, _read_time(value))
    for name in _NOTHING:
        put(made, name, ())
    put(made, "key", key)
    put(made, "as_of", as_of)
    put(made, "status", Status.COMPLETED)
    put(made, "source", _LIVE)
    put(made, "recheck_at", None)
    put(made, "verdict", Verdict(verdict))
    seen = (
        Participant(i, kind, role, event, _read_time(at)) for i, kind, role, event, at in people
    )
    put(made, "participants", tuple(seen))
    told = [remark(code, text, document, _read_time(at)) for code, text, document, at in notices]
    put(made, "notices", tuple(told))
    put(made, "matters", tuple(told))
    put(made, "_counts", dict(zip(Severity, counts, strict=True)))
    put(made, "cost", None if cost is None else Cost(cost[0], tuple(cost[1])))
    put(made, "_read", read)
    event = None if last is None else _event(last)
    put(made, "events", CachedEvents(count, event, read))
    return made


_LIVE = Source(SourceState.LIVE)


def _event(values: Plain) -> Event:
    event = Event(*values)
    return event._replace(tone=Tone(event.tone), at=_read_time(values[6]))


def _written(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _read_time(value: str | None) -> datetime | None:
    return None if value is None else datetime.fromisoformat(value)
