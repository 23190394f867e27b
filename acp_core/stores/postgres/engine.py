"""A collaboration in a PostgreSQL database; see `acp_core.stores.engine.Engine`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Self

from acp_core.stores.address import Address
from acp_core.stores.engine import Asked, Change, Commit, Heard, HostState, Tip
from acp_core.stores.news import Tips
from acp_core.stores.postgres import hosts, link, publishing, reading
from acp_core.stores.postgres.reading import parts, tip_id


class PostgresEngine:
    """A collaboration in a database. All engines of a process share its one connection there.

    Args:
        address: of the collaboration.
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._link = link.borrow(address.url)
        self._ear = self._link.news.open(address.id)
        self._made = 0  # the connection of the last look: all that came later was heard on it
        self._closed = False

    def read(self, since: Tip | None) -> Commit:
        """See `Engine.read`."""
        name, shown = self.address.id, self.address.text

        def work(on: link.Connection) -> Commit:
            self._made = self._link.made
            return reading.read(on, name, shown, since)

        return self._link.run(work)

    def earlier(self, tip: Tip, path: str) -> bytes | None:
        """See `Engine.earlier`."""
        return self._link.run(lambda on: reading.earlier(on, self.address.id, tip, path))

    def publish(self, expected: Tip | None, change: Change) -> Tip:
        """See `Engine.publish`."""
        return publishing.publish(self._link, self.address.id, expected, change)

    def wait(self, tip: Tip, seconds: float) -> bool:
        """See `Engine.wait`. A server that starts again meanwhile is waited for."""
        deadline = time.monotonic() + seconds
        looked = self._made == self._link.made
        while True:
            if not looked and self._stands_elsewhere(tip):
                self._made = 0  # until it is read, another wait for the same looks again
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            heard = self._link.news.wait(self._ear, min(left, link.LOOK))
            # What was told of may be old, such as a change of our own: then there is nothing to see.
            looked = bool(heard) and max(heard.values()) <= parts(tip.id)[0]

    def hosts(self) -> Sequence[Heard]:
        """See `Engine.hosts`."""
        return self._link.run(lambda on: hosts.hosts(on, self.address.id))

    def tell(self, state: HostState) -> None:
        """See `Engine.tell`."""
        self._link.run(lambda on: hosts.tell(on, self.address.id, state))

    def ask(self, request: Asked) -> None:
        """See `Engine.ask`."""
        self._link.run(lambda on: hosts.ask(on, self.address.id, request))

    def requests(self, host: str = "") -> Sequence[Asked]:
        """See `Engine.requests`."""
        return self._link.run(lambda on: hosts.requests(on, self.address.id, host))

    def answer(self, request: Asked, state: str, sentence: str) -> None:
        """See `Engine.answer`."""
        self._link.run(lambda on: hosts.answer(on, self.address.id, request, state, sentence))

    def close(self) -> None:
        """Let go of the connection, unless others use it."""
        if not self._closed:
            self._closed = True
            self._link.news.close(self._ear)
            link.give_back(self._link)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _stands_elsewhere(self, tip: Tip) -> bool:
        def work(on: link.Connection) -> bool:
            self._made = self._link.made
            return reading.stands_elsewhere(on, self.address.id, tip)

        return self._link.run(work)


class PostgresNews:
    """What the server tells, and every 5 s a look at all that matter, in one statement.

    Args:
        url: the database.
        host: this host: what it is asked for is news, too.
    """

    def __init__(self, url: str, host: str) -> None:
        self._host = host
        self._link = link.borrow(url)
        self._ear = self._link.news.open(None)
        self._looked = float("-inf")
        self._made = 0  # the connection of the last look

    def wait(self, tips: Tips, seconds: float) -> frozenset[str]:
        """See `StoreNews.wait`."""
        until = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            if self._made != self._link.made or not self._made or now >= self._looked + link.LOOK:
                self._looked = now
                if moved := self._link.run(lambda on: self._moved(on, tips())):
                    return moved
            left = min(until, self._looked + link.LOOK) - time.monotonic()
            heard = self._link.news.wait(self._ear, max(0.0, left))
            here = tips()
            new = {id for id, number in heard.items() if id in here and number > parts(here[id])[0]}
            if new or time.monotonic() >= until:
                return frozenset(new)

    def beat(self, host: str, ids: frozenset[str]) -> None:
        """See `StoreNews.beat`."""
        if ids:
            self._link.run(
                lambda on: on.execute(
                    "update acp.host set beat = clock_timestamp() where name = %s"
                    " and collab in (select id from acp.collab where name = any(%s))",
                    (host, sorted(ids)),
                )
            )

    def close(self) -> None:
        """See `StoreNews.close`."""
        self._link.news.close(self._ear)
        link.give_back(self._link)

    def _moved(self, on: link.Connection, tips: Mapping[str, str]) -> frozenset[str]:
        """Those that do not stand where they stand here, or in which this host is asked for something."""
        self._made = self._link.made
        rows = on.execute(
            "select name, revision, mark from acp.collab where name = any(%s)",
            (sorted(tips),), binary=True,
        ).fetchall()  # fmt: skip
        there = {name: tip_id(revision, bytes(mark)) for name, revision, mark in rows}
        asked = on.execute(
            "select distinct c.name from acp.ask a join acp.collab c on c.id = a.collab"
            " where a.host = %s and a.answer is null and c.name = any(%s)",
            (self._host, sorted(tips)),
        ).fetchall()
        moved = {id for id, tip in tips.items() if there.get(id) != tip}
        return frozenset(moved | {id for (id,) in asked})
