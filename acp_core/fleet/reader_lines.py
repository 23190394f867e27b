"""What a fleet and the processes that read for it write to each other: lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.fleet.snapshot_cache import Entry
from acp_core.history.forecast import Case


class Order(NamedTuple):
    """What a reader is told first.

    Attributes:
        context: of the fleet's cache; a reader of another context reads nothing.
        nice: by how much it is to run at a lower priority.
        teaches: whether cases are wanted (see `acp_core.history.forecast`).
    """

    context: str
    nice: int
    teaches: bool


class Folder(NamedTuple):
    """A collaboration to read: its key, the name of its protocol, and where it really is."""

    key: str
    protocol: str
    real: str


class Batch(NamedTuple):
    """Collaborations to read, and what time it is."""

    now: datetime
    folders: Sequence[Folder]


class Answer(NamedTuple):
    """What a reader made of one collaboration.

    Attributes:
        key: of the collaboration.
        entry: for the cache; None where nothing can be kept.
        cases: that it taught; None where they were not wanted or not learned.
    """

    key: str
    entry: Entry | None
    cases: tuple[Case, ...] | None


def write_order(order: Order) -> bytes:
    """The line of an order."""
    return _line(order)


def read_order(line: bytes) -> Order:
    """The order of a line.

    Raises:
        ValueError, TypeError: it is none.
    """
    return Order(*json.loads(line))


def write_batch(batch: Batch) -> bytes:
    """The line of a batch."""
    return _line([batch.now.isoformat(), batch.folders])


def read_batch(line: bytes) -> Batch:
    """The batch of a line.

    Raises:
        ValueError, TypeError: it is none.
    """
    now, folders = json.loads(line)
    return Batch(datetime.fromisoformat(now), [Folder(*each) for each in folders])


def write_answer(answer: Answer) -> bytes:
    """The line of an answer."""
    return _line(answer)


def read_answer(line: bytes) -> Answer:
    """The answer of a line.

    Raises:
        ValueError, TypeError: it is none.
    """
    key, entry, cases = json.loads(line)
    if not isinstance(key, str):
        raise ValueError("not an answer")
    return Answer(
        key,
        None if entry is None else Entry.parse(entry),
        None if cases is None else tuple(Case(str(k), str(p), float(s)) for k, p, s in cases),
    )


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
