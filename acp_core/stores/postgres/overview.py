"""All collaborations of a database at once: where each stands, who is waited for, who runs it where.

No document and no log is read for it: what changes is told by the server's notices, and every 5 s
one statement compares the number and the sum of all revisions.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from acp_core.model.text import clean_line
from acp_core.stores.engine import Heard
from acp_core.stores.listing import Acting, Listed, Standing
from acp_core.stores.postgres import link
from acp_core.stores.postgres.hosts import state_of

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection

MOST = 50_000  # collaborations that are listed
_LONGEST_LINE = 8 << 10  # bytes; a longer last line is left out
_SILENT = "1 day"  # a host that was not heard of for that long runs nothing
_ROWS = (
    "select c.name, c.revision, c.seq, c.phase, c.waiting, c.updated, e.line, c.standing::text from acp.collab c"
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
_ACTING = (
    "select c.name, l.participant, l.host, l.account from acp.lease l join acp.collab c on c.id = l.collab"
    " where %(names)s::text[] is null or c.name = any(%(names)s::text[]) order by c.name, l.participant"
    f" limit {10 * MOST}"
)
_MOST_READ, _LARGEST_READ = 500, 1 << 20
_READ = (
    "select c.name, c.protocol, coalesce(string_agg(e.line, ''::bytea order by e.line_number), '')"
    " from acp.collab c left join acp.event e on e.collab = c.id"
    f" where c.name = any(%s) and c.size <= {_LARGEST_READ} and octet_length(c.protocol) <= {_LARGEST_READ}"
    " group by c.id"
)
_SUM = "select count(*), coalesce(sum(revision), 0)::text from acp.collab"


class Overview:
    """The collaborations of one database, kept up to date. For one thread at a time.

    Args:
        url: the database.
        standing: reads a collaboration of which its row does not tell, since an earlier acp wrote
            it; None where that is not needed.
    """

    def __init__(self, url: str, standing: Standing | None = None) -> None:
        self.listed: dict[str, Listed] = {}
        self.note = ""
        self._url = url
        self._standing = standing
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
                if name not in known or int(known[name].revision) < revision:
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
        before, self.listed = self.listed, self._with_state(on, read(on, None))
        cut = len(self.listed) >= MOST
        self.note = (
            f"{clean_line(self._url, 200)}: only {MOST} collaborations are listed" if cut else ""
        )
        return _differing(before, self.listed)

    def _read_some(self, on: Connection, names: Collection[str]) -> frozenset[str]:
        found = self._with_state(on, read(on, names))
        before = {name: self.listed[name] for name in names if name in self.listed}
        for name in names:
            self.listed.pop(name, None)
        self.listed |= found
        return _differing(before, found)

    def _compare(self, on: Connection) -> frozenset[str]:
        """A look: whether anything changed of which no notice came."""
        self._made = self._link.made
        ours = str(len(self.listed)), str(sum(int(e.revision) for e in self.listed.values()))
        return frozenset() if _sum(on) == ours else self._read_all(on)

    def _with_state(self, on: Connection, found: dict[str, Listed]) -> dict[str, Listed]:
        """The same, with what is to be said of those that an earlier acp has written."""
        silent = [each.id for each in found.values() if not each.standing][:_MOST_READ]
        if not silent or self._standing is None:
            return found
        rows = on.execute(_READ, (silent,), binary=True).fetchall()
        for id, protocol, log in rows:
            found[id] = found[id]._replace(standing=self._standing(bytes(protocol), bytes(log)))
        return found


def read(on: Connection, names: Collection[str] | None) -> dict[str, Listed]:
    """Some collaborations of a database, or all (None), the one that changed last first."""
    given = {"names": None if names is None else list(names)}
    with on.pipeline():
        rows = on.execute(_ROWS, given, binary=True)
        runners = on.execute(_RUNNERS, given)
        leases = on.execute(_ACTING, given)
    acting: dict[str, list[Acting]] = {}
    for id, participant, host, account in leases.fetchall():
        acting.setdefault(id, []).append(Acting(participant, host, account))
    hosts: dict[str, list[Heard]] = {}
    for id, host, text, age in runners.fetchall():
        state = state_of(host, text)
        if state is not None:
            hosts.setdefault(id, []).append(Heard(state, max(0.0, float(age))))
    return {
        id: Listed(id, revision, seq, phase, tuple(waiting), updated, bytes(line or b""),
                   tuple(hosts.get(id, ())), _decoded(told), tuple(acting.get(id, ())))
        for id, revision, seq, phase, waiting, updated, line, told in rows.fetchall()
    }  # fmt: skip


def _decoded(text: str | None) -> Mapping[str, Any]:
    """What a row tells; {} where that cannot be read."""
    try:
        value = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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
