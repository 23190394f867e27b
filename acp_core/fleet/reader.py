"""``python -m acp_core.fleet.reader``: reads finished collaborations for a fleet of another process.

Started by `acp_core.fleet.readers`; what both write to each other are lines of JSON, made and read
here. Ends at once when its standard input ends, whatever it is doing: it never outlives the fleet, and
keeps nothing that can be lost.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from acp_core.diagnosis.observer import Observer
from acp_core.fleet.kept_rows import MANY, LateCache
from acp_core.fleet.member import Member
from acp_core.fleet.snapshot_cache import Entry
from acp_core.fleet.workers import Workers
from acp_core.history.forecast import Case
from acp_core.protocols import registry
from acp_core.protocols.discovery import DiscoveredCollaboration


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


OTHER_CONTEXT = 3  # the exit code of a reader whose entries would be of no use
_SIGN = 0.25  # s at most between two answers that are ready


class Reader:
    """Reads collaborations as a fleet does.

    Args:
        order: what the fleet wants.
    """

    def __init__(self, order: Order) -> None:
        self._teaches = order.teaches
        self._observer = Observer()
        self._cache = LateCache(None, self._observer, lambda: MANY, lambda: False, True)
        self._lane = Workers(threads=0).lane()
        self._protocols = {each.name: each for each in registry.installed()}
        cache = self._cache.get()
        self.is_of_use = cache is not None and cache.context == order.context

    def read(self, folder: Folder, now: datetime) -> Answer:
        """What the fleet's cache may know of a collaboration."""
        protocol = self._protocols.get(folder.protocol)
        if protocol is None:
            return Answer(folder.key, None, None)
        found = DiscoveredCollaboration(folder.key, protocol, folder.real)
        member = Member(folder.key, found, 0, self._lane, self._observer, cache=self._cache)
        member.teaches = self._teaches
        try:
            member.refresh(now)
            return Answer(folder.key, member.kept, member.cases)
        finally:
            member.close()


def main() -> int:
    """Read until there is nothing more to read. Returns the exit code."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    given, out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for each in (0, 1):  # nothing that reads, and no program that it starts, has these
        os.dup2(nothing, each)
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(given, lines), daemon=True).start()
    order = read_order(lines.get())
    os.nice(order.nice)
    reader = Reader(order)
    if not reader.is_of_use:
        return OTHER_CONTEXT
    while True:
        batch = read_batch(lines.get())
        ready, since = b"", time.monotonic()
        for number, folder in enumerate(batch.folders, 1):
            ready += write_answer(reader.read(folder, batch.now))
            if number == len(batch.folders) or time.monotonic() - since > _SIGN:
                write(out, ready)
                ready, since = b"", time.monotonic()


def _listen(given: int, lines: queue.SimpleQueue[bytes]) -> None:
    """Take in what the fleet wants; the end of that is the end of this process."""
    with os.fdopen(given, "rb") as stream:
        for line in stream:
            lines.put(line)
    os._exit(0)


def write(out: int, data: bytes) -> None:
    while data:
        try:
            data = data[os.write(out, data) :]
        except OSError:  # nobody reads it any more
            os._exit(0)


if __name__ == "__main__":
    sys.exit(main())
