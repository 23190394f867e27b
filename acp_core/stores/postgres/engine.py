"""A collaboration in a PostgreSQL database; see `acp_core.stores.engine.Engine`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from acp_core.stores.address import Address
from acp_core.stores.engine import Asked, Change, Commit, Heard, HostState, Tip
from acp_core.stores.postgres import hosts, link, news, publishing, reading
from acp_core.stores.postgres.tips import parts


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
            heard = self._link.news.wait(self._ear, min(left, news.LOOK))
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
