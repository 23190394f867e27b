"""The id of a tip in a PostgreSQL store: the number of the revision, and the mark that names it for good."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.model.text import clean_line
from acp_core.stores.engine import (
    MAX_BYTES,
    MAX_FILES,
    Commit,
    Lease,
    NotInStore,
    StoreRefused,
    Tip,
    put_back,
    rewritten,
)

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection


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
