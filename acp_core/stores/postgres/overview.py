"""All collaborations of a database at once: where each stands, who is waited for, who runs it where.

No document and no log is read for it: what changes is told by the server's notices, and every 5 s
one statement compares the number and the sum of all revisions.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from acp_core.stores.engine import Heard
from acp_core.stores.postgres import link
from acp_core.stores.postgres.hosts import state_of

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection

MOST = 50_000  # collaborations that are listed
_LONGEST_LINE = 8 << 10  # bytes; a longer last line is left out
_SILENT = "1 day"  # a host that was not heard of for that long runs nothing
_ROWS = (
    "select c.name, c.revision, c.seq, c.phase, c.waiting, c.updated, e.line from acp.collab c"
    " left join acp.event e on e.collab = c.id and e.line_number = c.lines"
    f" and octet_length(e.line) <= {_LONGEST_LINE}"
    " where %(names)s::text[] is null or c.name = any(%(names)s::text[])"
    f" order by c.updated desc, c.name limit {MOST}"
)
_RUNNERS = (
    "select c.name, h.name, h.state::text, extract(epoch from clock_timestamp() - h.beat)::float8"
    " from acp.host h join acp.collab c on c.id = h.collab"
    f" where h.beat > clock_timestamp() - interval '{_SILENT}'"
    " and (%(names)s::text[] is null or c.name = any(%(names)s::text[])) order by c.name, h.name"
)
_SUM = "select count(*), coalesce(sum(revision), 0)::text from acp.collab"


class Listed(NamedTuple):
    """One collaboration of a store, as its row tells.

    Attributes:
        id: its id there.
        revision: how often it was changed.
        seq: of its last event.
        phase: as its protocol calls it; what the host that changed it last said.
        waiting: the participants that are waited for; likewise.
        updated: when it was changed, by the server's clock.
        last: the last line of its log, with its newline; empty where it is long.
        runners: the hosts that were heard of within a day.
    """

    id: str
    revision: int
    seq: int
    phase: str
    waiting: tuple[str, ...]
    updated: datetime
    last: bytes
    runners: tuple[Heard, ...] = ()


class Overview:
    """The collaborations of one database, kept up to date. For one thread at a time.

    Args:
        url: the database.
    """

    def __init__(self, url: str) -> None:
        self.listed: dict[str, Listed] = {}
        self._link = link.borrow(url)
        self._ear = self._link.news.open(None)
        self._made = 0  # the connection of the last look
        self._closed = False

    def refresh(self) -> frozenset[str]:
        """Read what changed; at first everything.

        Returns:
            The ids that appeared, changed, or are gone.

        Raises:
            StoreUnreachable: the server does not answer.
            StoreRefused: it answers with a refusal.
        """
        heard = self._ear.take()
        if not self.listed or self._made != self._link.made:
            return self._link.run(self._read_all)
        if heard:
            return self._link.run(lambda on: self._read_some(on, heard))
        return self._link.run(self._compare)

    def wait(self, seconds: float) -> bool:
        """Wait until there may be something new; False where it is only time to look.

        Raises:
            StoreUnreachable: the connection was lost, and none can be made.
        """
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            heard = self._link.news.wait(self._ear, left)
            known = self.listed
            for name, revision in heard.items():
                if name not in known or known[name].revision < revision:
                    self._ear.takes(name, revision)
            if self._ear.heard:
                return True
            if not heard:
                break
        return False

    def close(self) -> None:
        """Let go of the connection, unless others use it."""
        if not self._closed:
            self._closed = True
            self._link.news.close(self._ear)
            link.give_back(self._link)

    def _read_all(self, on: Connection) -> frozenset[str]:
        self._made = self._link.made
        before, self.listed = self.listed, read(on, None)
        return _differing(before, self.listed)

    def _read_some(self, on: Connection, names: Collection[str]) -> frozenset[str]:
        found = read(on, names)
        before = {name: self.listed[name] for name in names if name in self.listed}
        for name in names:
            self.listed.pop(name, None)
        self.listed |= found
        return _differing(before, found)

    def _compare(self, on: Connection) -> frozenset[str]:
        """A look: whether anything changed of which no notice came."""
        self._made = self._link.made
        ours = str(len(self.listed)), str(sum(each.revision for each in self.listed.values()))
        return frozenset() if _sum(on) == ours else self._read_all(on)


def read(on: Connection, names: Collection[str] | None) -> dict[str, Listed]:
    """Some collaborations of a database, or all (None), the one that changed last first."""
    given = {"names": None if names is None else list(names)}
    with on.pipeline():
        rows = on.execute(_ROWS, given, binary=True)
        runners = on.execute(_RUNNERS, given)
    hosts: dict[str, list[Heard]] = {}
    for id, host, text, age in runners.fetchall():
        state = state_of(host, text)
        if state is not None:
            hosts.setdefault(id, []).append(Heard(state, max(0.0, float(age))))
    return {
        id: Listed(id, revision, seq, phase, tuple(waiting), updated, bytes(line or b""),
                   tuple(hosts.get(id, ())))
        for id, revision, seq, phase, waiting, updated, line in rows.fetchall()
    }  # fmt: skip


def _sum(on: Connection) -> tuple[str, str]:
    row = on.execute(_SUM).fetchone()
    return (str(row[0]), str(row[1])) if row else ("", "")


def _differing(before: Mapping[str, Listed], after: Mapping[str, Listed]) -> frozenset[str]:
    names = {*before, *after}
    return frozenset(name for name in names if _core(before.get(name)) != _core(after.get(name)))


def _core(listed: Listed | None) -> Listed | None:
    """What counts as a change: not how long ago a host was heard of."""
    if listed is None:
        return None
    return listed._replace(runners=tuple(each._replace(age=None) for each in listed.runners))
