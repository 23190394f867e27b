"""What hosts say of themselves and ask of each other, in a PostgreSQL store.

A host's state is what it says; when it said so is the server's time. Who asks is the role of the
session that asked: the server writes it down, and nobody else can (rights.sql).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from acp_core.model.text import clean_line
from acp_core.stores.address import checked_id
from acp_core.stores.engine import (
    Acting,
    Asked,
    Heard,
    HostState,
    Listed,
    NotInStore,
    Standing,
    StoreRefused,
)
from acp_core.stores.postgres import link

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection

_MOST = 100  # requests

_MOST_HOSTS = 200

_LONGEST = 2_000  # characters of a text

_ID = re.compile(r"[0-9a-f]{24}")


def hosts(connection: Connection, name: str) -> Sequence[Heard]:
    """See `acp_core.stores.engine.Engine.hosts`."""
    rows = connection.execute(
        "select h.name, h.state::text, extract(epoch from clock_timestamp() - h.beat)::float8"
        " from acp.host h join acp.collab c on c.id = h.collab where c.name = %s"
        f" order by h.name limit {_MOST_HOSTS}",
        (name,),
    ).fetchall()
    found = []
    for host, text, age in rows:
        state = state_of(host, text)
        if state is not None:
            found.append(Heard(state, max(0.0, float(age))))
    return found


def tell(connection: Connection, name: str, state: HostState) -> None:
    """See `acp_core.stores.engine.Engine.tell`."""
    told = connection.execute(
        "insert into acp.host (collab, name, state) select id, %s, %s::json from acp.collab where name = %s"
        " on conflict (collab, name) do update set state = excluded.state, beat = clock_timestamp()",
        (checked_id(state.host), _encoded(state._asdict()), name),
    )
    _must_exist(told.rowcount, name)


def ask(connection: Connection, name: str, request: Asked) -> None:
    """See `acp_core.stores.engine.Engine.ask`."""
    if not _ID.fullmatch(request.id):
        raise StoreRefused("a request needs an id of 24 hexadecimal digits")
    body = request._replace(proven="", state="", sentence="")._asdict()
    connection.execute(
        "insert into acp.ask (collab, id, host, request) select id, %s, %s, %s::json from acp.collab"
        " where name = %s on conflict (collab, id) do nothing",
        (request.id, checked_id(request.host), _encoded(body), name),
    )


def requests(connection: Connection, name: str, host: str) -> Sequence[Asked]:
    """See `acp_core.stores.engine.Engine.requests`."""
    rows = connection.execute(
        "select a.id, a.host, a.who, a.request::text, a.answer::text from acp.ask a"
        " join acp.collab c on c.id = a.collab where c.name = %s and (a.host = %s or %s = '')"
        f" order by a.at desc, a.id limit {_MOST}",
        (name, host, host),
    ).fetchall()
    found = [_request(*row) for row in reversed(rows)]
    return [each for each in found if each is not None]


def answer(connection: Connection, name: str, request: Asked, state: str, sentence: str) -> None:
    """See `acp_core.stores.engine.Engine.answer`."""
    connection.execute(
        "update acp.ask set answer = %s::json from acp.collab c where c.id = collab and c.name = %s"
        " and ask.id = %s and host = %s",
        (_encoded({"state": state, "sentence": sentence}), name, request.id, request.host),
    )


def state_of(host: str, text: str) -> HostState | None:
    """What a host says of itself, if it can be read: who writes rows can write anything."""
    value = _decoded(text)
    names = ("account", "boot", "version", "at", "continued")
    texts = [value.get(name, "") for name in names]
    people = value.get("participants", {})
    if not all(isinstance(each, str) and len(each) <= _LONGEST for each in texts):
        return None
    if not isinstance(people, dict) or not all(isinstance(each, dict) for each in people.values()):
        return None
    account, boot, version, at, continued = texts
    return HostState(host, account, boot, version, people, at, continued)


def _request(id: str, host: str, who: str, text: str, answered: str | None) -> Asked | None:
    value = _decoded(text)
    texts = [value.get(name, "") for name in ("verb", "participant", "text", "by")]
    seconds = value.get("seconds", 600.0)
    if not all(isinstance(each, str) and len(each) <= _LONGEST for each in texts):
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not 0 <= seconds <= 86_400:
        return None
    verb, participant, words, by = texts
    said = _decoded(answered or "")
    state, sentence = said.get("state", ""), said.get("sentence", "")
    if not isinstance(state, str) or not isinstance(sentence, str):
        state, sentence = "unknown", ""
    return Asked(
        id, host, verb, participant, words, by, who, float(seconds), state[:40], sentence[:_LONGEST]
    )


def _must_exist(count: int, name: str) -> None:
    if not count:
        raise NotInStore(f"{name} is not in the store (`acp share` puts it there)")


def _encoded(value: Mapping[str, Any]) -> str:
    """JSON as PostgreSQL takes it: ASCII, and no NaN.

    Raises:
        StoreRefused: it cannot be said in JSON.
    """
    try:
        return json.dumps(value, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise StoreRefused(f"this is not JSON: {error}") from None


def _decoded(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


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
                   tuple(hosts.get(id, ())), _decoded_log(told), tuple(acting.get(id, ())))
        for id, revision, seq, phase, waiting, updated, line, told in rows.fetchall()
    }  # fmt: skip


def _decoded_log(text: str | None) -> Mapping[str, Any]:
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
