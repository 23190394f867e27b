"""Making a change in a PostgreSQL store: one transaction, under the lock of the collaboration's row.

The transaction has two round trips: lock and compare, then write and commit. A client that is lost
before the second has changed nothing; one that is lost during it does not know. Then the row is
locked again, which waits for whatever became of that transaction, and the mark of the change tells.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.model.text import clean_line
from acp_core.stores.address import checked_id
from acp_core.stores.engine import (
    MAX_BYTES,
    MAX_FILE,
    MAX_FILES,
    Change,
    InDoubt,
    Lease,
    SharingError,
    StoreRefused,
    StoreUnreachable,
    Tip,
    TipMoved,
)
from acp_core.stores.fault_points import fault_point
from acp_core.stores.postgres import link as postgres_link
from acp_core.stores.postgres.reading import tip_id

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection, Link

_MOVED = "the collaboration has moved on in the store"
_LISTED = ", phase = %s, waiting = %s, standing = %s::json"
_LARGEST_STANDING = 65_536  # characters, all of them ASCII
_EXISTS = "the store has a collaboration of this id already"


class _Row(NamedTuple):
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


def _locked(connection: Connection, name: str) -> _Row | None:
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
    return _Row(*found) if found else None


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
