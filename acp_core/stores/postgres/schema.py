"""The tables of a store: which version a database has, and bringing it to ours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.model.text import clean_line
from acp_core.stores.engine import StoreRefused

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

VERSION = 2
ROLES = ("acp_reader", "acp_writer")
_TURN = 0x61637073  # of the advisory lock that one preparation holds


class Prepared(NamedTuple):
    """What preparing a database did.

    Attributes:
        before: the version that it had; 0 where it had none.
        after: the one that it has.
        made: what was done, a line each; nothing where all was there.
        left: what could not be done, each with what to do.
    """

    before: int
    after: int
    made: tuple[str, ...]
    left: tuple[str, ...]


@cache
def steps() -> tuple[str, ...]:
    """The statements that lead from each version to the next, beginning with none."""
    return tuple(_file(f"version-{number}.sql") for number in range(1, VERSION + 1))


def version(connection: Connection) -> int:
    """The version of a database's tables; 0 where there are none."""
    there = connection.execute("select to_regclass('acp.version') is not null").fetchone()
    if not there or not there[0]:
        return 0
    found = connection.execute("select coalesce(max(version), 0) from acp.version").fetchone()
    return int(found[0]) if found else 0


def check(url: str, found: int) -> None:
    """Refuse tables of another version.

    Raises:
        StoreRefused: they are not ours; the message says what to do.
    """
    place = clean_line(url, 300)
    if found == 0:
        raise StoreRefused(f"{place} is not prepared for acp: run `acp store init {place}`")
    if found < VERSION:
        raise StoreRefused(
            f"{place} has tables of an earlier acp (version {found}; this acp uses {VERSION}): "
            f"run `acp store init {place}`"
        )
    if found > VERSION:
        raise StoreRefused(
            f"{place} has tables of a newer acp (version {found}; this acp uses {VERSION}): "
            "update acp on this machine"
        )


def prepare(connection: Connection, updates: Sequence[str] | None = None) -> Prepared:
    """Bring a database to our version, all of it or nothing; nothing where it has it.

    Args:
        connection: to the database, as an account that may create a schema there.
        updates: the statements that lead from each version to the next; ours by default.

    Raises:
        psycopg.Error: the server refuses.
        StoreRefused: the database cannot be used.
    """
    updates = steps() if updates is None else updates
    made: list[str] = []
    left: list[str] = []
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (_TURN,))
        encoding = _one(connection, "show server_encoding")
        if encoding != "UTF8":
            raise StoreRefused(
                f"the database's encoding is {clean_line(str(encoding), 40)}: acp needs UTF8 "
                "(createdb --encoding UTF8 --template template0)"
            )
        before = version(connection)
        if before > len(updates):
            check(str(_one(connection, "select current_database()")), before)
        for number in range(before, len(updates)):
            connection.execute(updates[number].encode())
            connection.execute("insert into acp.version (version) values (%s)", (number + 1,))
            made.append(f"tables of version {number + 1}")
        _prepare_roles(connection, made, left)
    return Prepared(before, max(before, len(updates)), tuple(made), tuple(left))


def _prepare_roles(connection: Connection, made: list[str], left: list[str]) -> None:
    """Make the roles where that is allowed, and say what their members may do."""
    rows = connection.execute(
        "select rolname from pg_roles where rolname = any(%s)", (list(ROLES),)
    ).fetchall()
    missing = [role for role in ROLES if role not in {row[0] for row in rows}]
    may = _one(
        connection,
        "select rolsuper or rolcreaterole from pg_roles where rolname = current_user",
    )
    if missing and not may:
        made_by_hand = "; ".join(f"create role {role} nologin" for role in missing)
        left.append(
            f"the roles {' and '.join(missing)}: your account cannot make roles; have an "
            f"administrator run `{made_by_hand}`, then run this command again"
        )
        return
    for role in missing:
        connection.execute(f"create role {role} nologin".encode())
        made.append(f"role {role}")
    if not _one(
        connection,
        "select pg_has_role(current_user, nspowner, 'usage') from pg_namespace where nspname = 'acp'",
    ):
        left.append("rights: the tables belong to another account, which prepares them")
        return
    connection.execute(_file("rights.sql").encode())


def _one(connection: Connection, statement: str) -> Any:
    row = connection.execute(statement.encode()).fetchone()
    return row[0] if row else None


@cache
def _file(name: str) -> str:
    return resources.files(__package__ or "").joinpath(name).read_text("utf-8")
