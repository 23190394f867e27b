"""News of many collaborations of a database; see `acp_core.stores.news.StoreNews`."""

from __future__ import annotations

import time
from collections.abc import Mapping

from acp_core.stores.news import Tips
from acp_core.stores.postgres import link, news
from acp_core.stores.postgres.tips import parts, tip_id


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
            if self._made != self._link.made or not self._made or now >= self._looked + news.LOOK:
                self._looked = now
                if moved := self._link.run(lambda on: self._moved(on, tips())):
                    return moved
            left = min(until, self._looked + news.LOOK) - time.monotonic()
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
