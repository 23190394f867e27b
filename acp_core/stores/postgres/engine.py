"""A collaboration in a PostgreSQL database: read, changed, and its news.

The id of a tip is the number of the revision, and the mark that names it for good. A change is one
transaction, under the lock of the collaboration's row, in two round trips: lock and compare, then
write and commit. A client that is lost before the second has changed nothing; one that is lost
during it does not know. Then the row is locked again, which waits for whatever became of that
transaction, and the mark of the change tells. See `acp_core.stores.engine.Engine`.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.model.text import clean_line
from acp_core.stores.address import Address, checked_id
from acp_core.stores.engine import (
    MAX_BYTES,
    MAX_FILE,
    MAX_FILES,
    Asked,
    Change,
    Commit,
    Engine,
    Heard,
    HostState,
    InDoubt,
    Lease,
    NotInStore,
    SharingError,
    StoreRefused,
    StoreUnreachable,
    Tip,
    TipMoved,
    Tips,
    fault_point,
    put_back,
    rewritten,
)
from acp_core.stores.postgres import hosts, link
from acp_core.stores.postgres import link as postgres_link

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection, Link


class PostgresEngine(Engine):
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
            return read(on, name, shown, since)

        return self._link.run(work)

    def earlier(self, tip: Tip, path: str) -> bytes | None:
        """See `Engine.earlier`."""
        return self._link.run(lambda on: earlier(on, self.address.id, tip, path))

    def publish(self, expected: Tip | None, change: Change) -> Tip:
        """See `Engine.publish`."""
        return publish(self._link, self.address.id, expected, change)

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

    def _stands_elsewhere(self, tip: Tip) -> bool:
        def work(on: link.Connection) -> bool:
            self._made = self._link.made
            return stands_elsewhere(on, self.address.id, tip)

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


def tip_id(revision: int, mark: bytes) -> str:
    """The id of a tip: which revision, and which of that number."""
    return f"{revision}-{mark.hex()}"


def parts(id: str) -> tuple[int, bytes]:
    """The number and the mark of a tip's id, which a folder's files say; (0, b"") where it is none."""
    number, _, mark = id.partition("-")
    try:
        return (int(number), bytes.fromhex(mark)) if len(number) < 19 else (0, b"")
    except ValueError:
        return 0, b""


_MOST_LEASES = 1_000

_BEGIN = "begin isolation level repeatable read read only"

_ROW = (
    "select id, revision, mark, seq, lines, size, sha256, protocol from acp.collab where name = %s"
)

_SEEN = (
    "select r.number, r.lines, r.size, r.sha256 from acp.revision r join acp.collab c on c.id = r.collab"
    " where c.name = %s and r.number = %s and r.mark = %b"
)

_LEASES = (
    "select l.participant, l.host, l.boot, l.account, l.epoch, l.since, l.by from acp.lease l"
    f" join acp.collab c on c.id = l.collab where c.name = %s limit {_MOST_LEASES}"
)

_DOCUMENTS = (
    "select distinct on (d.path) d.path, d.digest, octet_length(b.data) from acp.doc d"
    " left join acp.blob b on b.digest = d.digest where d.collab = %s and d.revision > %s"
    f" order by d.path, d.revision desc limit {MAX_FILES + 1}"
)

_EARLIER = (
    "select b.data from acp.doc d join acp.collab c on c.id = d.collab left join acp.blob b on b.digest = d.digest"
    " where c.name = %s and d.revision <= %s and d.path = %b order by d.revision desc limit 1"
)

_LINES = "select line from acp.event where collab = %s and line_number > %s order by line_number"


class _Row(NamedTuple):
    """A collaboration as it stands."""

    id: int
    revision: int
    mark: bytes
    seq: int
    lines: int
    size: int
    sha256: bytes
    protocol: bytes

    @property
    def tip(self) -> Tip:
        return Tip(tip_id(self.revision, self.mark), self.seq, self.size, self.sha256.hex())


class _Seen(NamedTuple):
    """A revision that is known here, and still there."""

    number: int
    lines: int
    size: int
    sha256: bytes


def earlier(connection: Connection, name: str, tip: Tip, path: str) -> bytes | None:
    """See `acp_core.stores.engine.Engine.earlier`."""
    wanted = (name, parts(tip.id)[0], path.encode("utf-8", "surrogateescape"))
    row = connection.execute(_EARLIER, wanted).fetchone()
    return bytes(row[0]) if row and row[0] is not None else None


def read(connection: Connection, name: str, shown: str, since: Tip | None) -> Commit:
    """See `acp_core.stores.engine.Engine.read`.

    Args:
        connection: to the database.
        name: of the collaboration.
        shown: its address, as texts name it.
        since: what was seen of it.
    """
    row, seen, leases = _now(connection, name, since)
    try:
        if row is None:
            raise NotInStore(
                f"{clean_line(shown, 300)} is not in the store (`acp share` puts it there)"
            )
        if since is not None and row.tip == since:
            return Commit(since, b"", row.protocol, {}, leases)
        if since is not None and seen is None:
            return _compared(connection, row, since, leases)
        return _changed(connection, row, seen, leases)
    finally:
        connection.execute("commit")


def stands_elsewhere(connection: Connection, name: str, tip: Tip) -> bool:
    """Whether a collaboration does not stand at a tip."""
    found = connection.execute(
        "select revision, mark from acp.collab where name = %s", (name,), binary=True
    ).fetchone()
    return found is None or tip_id(*found) != tip.id


def _now(
    connection: Connection, name: str, since: Tip | None
) -> tuple[_Row | None, _Seen | None, dict[str, Lease]]:
    """What there always is to know, and a transaction that shows the rest as of the same moment."""
    number, mark = parts(since.id if since else "")
    with connection.pipeline():
        connection.execute(_BEGIN)
        row = connection.execute(_ROW, (name,), binary=True)
        seen = connection.execute(_SEEN, (name, number, mark), binary=True)
        leases = connection.execute(_LEASES, (name,))
    found, known = row.fetchone(), seen.fetchone()
    if since and known and (known[2], bytes(known[3]).hex()) != (since.size, since.sha256):
        known = None
    held = [Lease(*each) for each in leases.fetchall()]
    return (
        _Row(*found) if found else None,
        _Seen(*known) if known else None,
        {lease.participant: lease for lease in held},
    )


def _changed(
    connection: Connection, row: _Row, seen: _Seen | None, leases: Mapping[str, Lease]
) -> Commit:
    """What came after a revision; everything where that is None."""
    added = _log(connection, row, seen.lines if seen else 0, seen.size if seen else 0)
    if seen is None:
        _must_be_whole(added, row)
    documents = _documents(connection, row.id, seen.number if seen else 0)
    return Commit(row.tip, added, row.protocol, documents, leases, whole=seen is None)


def _compared(connection: Connection, row: _Row, since: Tip, leases: Mapping[str, Lease]) -> Commit:
    """What came after a tip that the database does not know.

    Raises:
        HistoryRewritten: the log does not begin with what was seen of it.
    """
    if row.seq < since.seq:
        raise put_back(row.seq, since.seq)
    log = _log(connection, row, 0, 0)
    _must_be_whole(log, row)
    if len(log) < since.size or hashlib.sha256(log[: since.size]).hexdigest() != since.sha256:
        raise rewritten(since.seq)
    documents = _documents(connection, row.id, 0)
    return Commit(row.tip, log[since.size :], row.protocol, documents, leases, whole=True)


def _log(connection: Connection, row: _Row, lines: int, size: int) -> bytes:
    """The bytes of the log behind so many lines.

    Raises:
        StoreRefused: they are too many.
    """
    if row.size - size > MAX_BYTES:
        raise StoreRefused(f"the log in the store is larger than {MAX_BYTES >> 20} MiB: refused")
    if row.size == size:
        return b""
    found = connection.execute(_LINES, (row.id, lines), binary=True).fetchall()
    return b"".join(bytes(each[0]) for each in found)


def _must_be_whole(log: bytes, row: _Row) -> None:
    if hashlib.sha256(log).digest() != row.sha256:
        raise StoreRefused("the log in the store is damaged: its digest is another one")


def _documents(connection: Connection, id: int, revision: int) -> dict[str, bytes | None]:
    """The documents that changed after a revision, with their contents; None: deleted.

    Raises:
        StoreRefused: they are too many, or too large.
    """
    listed = connection.execute(_DOCUMENTS, (id, revision), binary=True).fetchall()
    if len(listed) > MAX_FILES or sum(each[2] or 0 for each in listed) > MAX_BYTES:
        raise StoreRefused(
            f"the store holds more than {MAX_FILES} files or {MAX_BYTES >> 20} MiB: refused"
        )
    contents = _contents(connection, [bytes(each[1]) for each in listed if each[1] is not None])
    return {
        bytes(path).decode("utf-8", "surrogateescape"): None
        if digest is None
        else contents[bytes(digest)]
        for path, digest, _ in listed
        if digest is not None or revision > 0
    }


def _contents(connection: Connection, digests: Sequence[bytes]) -> dict[bytes, bytes]:
    if not digests:
        return {}
    rows: Sequence[Any] = connection.execute(
        "select digest, data from acp.blob where digest = any(%b::bytea[])",
        (list(digests),),
        binary=True,
    ).fetchall()
    return {bytes(digest): bytes(data) for digest, data in rows}


_MOVED = "the collaboration has moved on in the store"

_LISTED = ", phase = %s, waiting = %s, standing = %s::json"

_LARGEST_STANDING = 65_536  # characters, all of them ASCII

_EXISTS = "the store has a collaboration of this id already"


class _LockedRow(NamedTuple):
    """A collaboration's row, locked."""

    id: int
    revision: int
    mark: bytes
    lines: int
    size: int
    sha256: bytes


class _Written(NamedTuple):
    """What a change adds to the log, worked out before anything is locked."""

    lines: Sequence[bytes]
    keys: Sequence[bytes | None]
    size: int
    sha256: bytes
    mark: bytes


def publish(link: Link, name: str, expected: Tip | None, change: Change) -> Tip:
    """See `acp_core.stores.engine.Engine.publish`.

    Args:
        link: to the database.
        name: of the collaboration.
        expected: where it must stand; None to make it.
        change: what changes.
    """
    written = _written(expected, change)
    work = _Publishing(name, expected, change, written)
    fault_point("before publish")
    try:
        tip = link.run_once(work)
    except InDoubt as cut:
        tip = _settled(link, work, str(cut))
    fault_point("after publish")
    return tip


def _settled(link: Link, work: _Publishing, said: str) -> Tip:
    """What became of a change whose connection was lost.

    Raises:
        StoreUnreachable: it was not made.
        InDoubt: that cannot be found out now.
    """
    lost = StoreUnreachable(f"the store {clean_line(link.url, 300)} cannot be reached ({said})")
    if not work.in_doubt:
        raise lost
    try:
        found = link.run(work.look_again)
    except SharingError:
        found = None
    if found is None:
        raise InDoubt(
            f"the connection to {clean_line(link.url, 300)} was lost while the change was made "
            f"({said}): run the same command again, it finds out whether it was"
        )
    if not found:
        raise lost
    return work.tip()


class _Publishing:
    """One change on its way; called with a connection, at most once."""

    def __init__(self, name: str, expected: Tip | None, change: Change, written: _Written) -> None:
        self._name = name
        self._expected = expected
        self._change = change
        self._written = written
        self._revision = 0
        self.in_doubt = False  # the last word was sent, and nothing heard

    def __call__(self, connection: Connection) -> Tip:
        if self._expected is None:
            self._create(connection)
        else:
            self._add(connection, self._expected)
        self.in_doubt = False
        fault_point("postgres before notice")
        postgres_link.send(connection, self._name, self._revision)
        return self.tip()

    def tip(self) -> Tip:
        """Where the collaboration stands after the change."""
        written = self._written
        return Tip(
            tip_id(self._revision, written.mark),
            self._change.seq,
            written.size,
            written.sha256.hex(),
        )

    def look_again(self, connection: Connection) -> bool | None:
        """Whether the change was made, once nothing of it is under way; None where that is unknown."""
        with connection.transaction():
            row = connection.execute(
                "select id from acp.collab where name = %s for update", (self._name,)
            ).fetchone()
            if row is None:
                return None  # its making may still be under way: there was no row to lock
            made = connection.execute(
                "select number from acp.revision where collab = %s and mark = %b",
                (row[0], self._written.mark),
            ).fetchone()
            return made is not None

    def _create(self, connection: Connection) -> None:
        self._revision = 1
        change, written = self._change, self._written
        connection.execute("begin")
        made = connection.execute(
            "insert into acp.collab (name, revision, mark, seq, lines, size, sha256, protocol, phase, waiting, standing)"
            " values (%s, 1, %b, %s, %s, %s, %b, %b, %s, %s, %s::json) on conflict (name) do nothing returning id",
            (self._name, written.mark, change.seq, len(written.lines), written.size, written.sha256,
             change.protocol, _plain(change.phase), [_plain(each) for each in change.waiting],
             _state_json(change)),
        ).fetchone()  # fmt: skip
        if made is None:
            raise TipMoved(_EXISTS)
        fault_point("postgres locked")
        self.in_doubt = True
        with connection.pipeline():
            self._write(connection, made[0], 0)
            connection.execute("commit")

    def _add(self, connection: Connection, expected: Tip) -> None:
        row = _locked(connection, self._name)
        if row is None or tip_id(row.revision, row.mark) != expected.id:
            raise TipMoved(_MOVED)
        if (row.size, row.sha256.hex()) != (expected.size, expected.sha256):
            raise TipMoved("the log in the store is not the one that was read")
        fault_point("postgres locked")
        self._revision = row.revision + 1
        change, written = self._change, self._written
        self.in_doubt = True
        with connection.pipeline():
            self._write(connection, row.id, row.lines)
            listed = (
                (
                    _plain(change.phase),
                    [_plain(each) for each in change.waiting],
                    _state_json(change),
                )
                if change.phase
                else ()
            )
            connection.execute(
                "update acp.collab set revision = %s, mark = %b, seq = %s, lines = %s, size = %s, sha256 = %b,"
                f" protocol = %b, updated = clock_timestamp(){_LISTED if listed else ''} where id = %s",
                (self._revision, written.mark, change.seq, row.lines + len(written.lines), written.size,
                 written.sha256, change.protocol, *listed, row.id),
            )  # fmt: skip
            connection.execute("commit")

    def _write(self, connection: Connection, id: int, lines: int) -> None:
        """Everything but the collaboration's own row."""
        change, written = self._change, self._written
        about = {"account": change.account, "host": change.host, "words": change.words}
        connection.execute(
            "insert into acp.revision (collab, number, mark, seq, lines, size, sha256, about)"
            " values (%s, %s, %b, %s, %s, %s, %b, %s::json)",
            (id, self._revision, written.mark, change.seq, lines + len(written.lines), written.size,
             written.sha256, json.dumps(about)),
        )  # fmt: skip
        if written.lines:
            connection.execute(
                "insert into acp.event (collab, line_number, key, line)"
                " select %s, %s + n, key, line from unnest(%b::bytea[], %b::bytea[]) with ordinality as t(key, line, n)",
                (id, lines, list(written.keys), list(written.lines)),
            )
        self._write_documents(connection, id, change.documents)
        for participant, lease in change.leases.items():
            _write_lease(connection, id, participant, lease)

    def _write_documents(
        self, connection: Connection, id: int, documents: Mapping[str, bytes | None]
    ) -> None:
        digests = {path: _digest(data) for path, data in documents.items() if data is not None}
        contents = {digest: documents[path] for path, digest in digests.items()}
        for digest in sorted(contents):
            # In one order: two changes that bring the same contents wait for each other, and end.
            connection.execute(
                "insert into acp.blob (digest, data) values (%b, %b) on conflict do nothing",
                (digest, contents[digest]),
            )
        for path in documents:
            connection.execute(
                "insert into acp.doc (collab, revision, path, digest) values (%s, %s, %b, %b)",
                (id, self._revision, _path(path), digests.get(path)),
            )


def _locked(connection: Connection, name: str) -> _LockedRow | None:
    """Begin a transaction that holds a collaboration's row; None where there is none.

    In one round trip, and not as a pipeline: PostgreSQL 15 does not end a session that is idle in a
    transaction (idle_in_transaction_session_timeout) if a pipeline was the last that it heard. Then
    a stopped process would hold up everybody else for good.
    """
    cursor = connection.execute(
        "begin; select id, revision, mark, lines, size, sha256 from acp.collab"
        f" where name = '{checked_id(name)}' for update".encode()
    )
    cursor.nextset()
    found = cursor.fetchone()
    return _LockedRow(*found) if found else None


def _write_lease(connection: Connection, id: int, participant: str, lease: Lease | None) -> None:
    if lease is None:
        connection.execute(
            "delete from acp.lease where collab = %s and participant = %s", (id, participant)
        )
        return
    connection.execute(
        "insert into acp.lease (collab, participant, host, boot, account, epoch, since, by)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s) on conflict (collab, participant) do update"
        " set host = excluded.host, boot = excluded.boot, account = excluded.account,"
        " epoch = excluded.epoch, since = excluded.since, by = excluded.by",
        (id, participant, *lease[1:]),
    )


def _path(path: str) -> bytes:
    """A name below the folder as it is stored: whatever bytes the file system has."""
    return path.encode("utf-8", "surrogateescape")


def _written(expected: Tip | None, change: Change) -> _Written:
    """What the log grows by.

    Raises:
        StoreRefused: the change does not continue the log that it is made for, or is too large.
    """
    size = expected.size if expected else 0
    digest = hashlib.sha256(change.log[:size])
    if expected and (digest.hexdigest() != expected.sha256 or len(change.log) < size):
        raise StoreRefused("the change does not continue the log that it is made for")
    added = change.log[size:]
    digest.update(added)
    if added and not added.endswith(b"\n"):
        raise StoreRefused("the log ends within a line: repair it first (acp repair)")
    lines = [line + b"\n" for line in added.split(b"\n")[:-1]]
    documents = [data for data in change.documents.values() if data is not None]
    if any(len(data) > MAX_FILE for data in documents):
        raise StoreRefused(f"a document is larger than {MAX_FILE >> 20} MiB")
    if len(documents) > MAX_FILES or sum(map(len, documents), len(change.log)) > MAX_BYTES:
        raise StoreRefused(f"more than {MAX_FILES} documents, or {MAX_BYTES >> 20} MiB together")
    if change.line is not None and lines == [change.line]:
        keys = [_key(change.sender, change.key)]
    else:
        keys = _once([_key_of(line) for line in lines])
    return _Written(lines, keys, len(change.log), digest.digest(), secrets.token_bytes(16))


def _key(sender: str, key: str) -> bytes | None:
    """What stands for a sender and a key: of one length, whatever they hold."""
    if not key:
        return None
    return _digest(json.dumps([sender, key]).encode())


def _key_of(line: bytes) -> bytes | None:
    """The same for a line of which nothing is known."""
    try:
        value: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    sender, key = value.get("from"), value.get("key")
    return _key(sender, key) if isinstance(sender, str) and isinstance(key, str) else None


def _once(keys: Sequence[bytes | None]) -> list[bytes | None]:
    """Keys of a log that was made elsewhere, where one may stand twice: the first counts."""
    seen: set[bytes | None] = set()
    out = []
    for key in keys:
        out.append(None if key in seen else key)
        seen.add(key)
    return out


def _state_json(change: Change) -> str | None:
    """What lists tell, as JSON; None where it is too much: then whoever lists reads the log."""
    text = json.dumps(change.standing) if change.standing else ""
    return text if 0 < len(text) <= _LARGEST_STANDING else None


def _plain(text: str) -> str:
    """A word for lists: what PostgreSQL's texts cannot hold is left out."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
