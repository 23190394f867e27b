"""How safely a database keeps what is acknowledged, and what this account may do there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.model.text import clean_line
from acp_core.stores.engine import SharingError
from acp_core.stores.postgres import link, schema

if TYPE_CHECKING:
    from acp_core.stores.postgres.link import Connection

_OLDEST = 130_000
_FACTS = """
select current_setting('server_version'), current_setting('server_version_num')::int,
    current_setting('fsync'), current_setting('full_page_writes'),
    (select coalesce(reset_val, setting) from pg_settings where name = 'synchronous_commit'),
    pg_is_in_recovery(), current_user,
    (select rolsuper from pg_roles where rolname = current_user),
    current_setting('max_connections')::int,
    (select count(*) from pg_stat_activity where backend_type = 'client backend')::int,
    inet_client_addr() is not null,
    coalesce((select ssl from pg_stat_ssl where pid = pg_backend_pid()), false)
"""
_RIGHTS = """
select has_table_privilege('acp.event', 'insert'), has_table_privilege('acp.event', 'select'),
    has_table_privilege('acp.event', 'update') or has_table_privilege('acp.event', 'delete')
"""


class Fact(NamedTuple):
    """One thing that was looked at: ``advice`` says what to do where it is not well, else it is empty."""

    name: str
    value: str
    advice: str = ""


def examine(url: str) -> list[Fact]:
    """Look at a database; what cannot be looked at is a fact, too. Never raises for what it finds."""
    try:
        connection = link.connect(url)
    except SharingError as error:
        return [Fact("connection", "none", str(error))]
    import psycopg

    try:
        return list(_facts(url, connection))
    except psycopg.Error as error:
        return [Fact("connection", "lost", link.reason(error))]
    finally:
        connection.close()


def _facts(url: str, connection: Connection) -> Iterator[Fact]:
    row = connection.execute(_FACTS).fetchone()
    assert row is not None  # one row, always
    yield from _server(*row[:6])
    yield from _session(row)
    yield from _tables(url, connection, str(row[6]), bool(row[7]))


def _server(
    version: str, number: int, fsync: str, pages: str, commit: str, replica: bool
) -> Iterator[Fact]:
    old = "acp is tested with PostgreSQL 15; use 13 or newer" if number < _OLDEST else ""
    yield Fact("server", clean_line(version, 60), old)
    risk = "a power failure can lose acknowledged events, or the database: set it to on"
    yield Fact("fsync", fsync, "" if fsync == "on" else risk)
    yield Fact("full_page_writes", pages, "" if pages == "on" else risk)
    note = "acp sets it to on for its own sessions; set it to on for other programs too"
    yield Fact("synchronous_commit", commit, note if commit == "off" else "")
    if replica:
        yield Fact("role of the server", "replica", "a replica is read-only: name the main server")


def _session(row: tuple[Any, ...]) -> Iterator[Fact]:
    most, used, remote, encrypted = row[8:12]
    advice = "each host needs one connection: raise max_connections" if used > most * 0.8 else ""
    yield Fact("connections", f"{used} of {most}", advice)
    if remote:
        advice = (
            "" if encrypted else "others on the network can read along: add ?sslmode=verify-full"
        )
        yield Fact("encryption", "TLS" if encrypted else "none", advice)


def _tables(url: str, connection: Connection, account: str, is_super: bool) -> Iterator[Fact]:
    import psycopg

    try:
        found = schema.version(connection)
        schema.check(url, found)
    except SharingError as error:
        yield Fact("tables", "none" if not found else f"version {found}", str(error))
        return
    except psycopg.Error as error:
        yield Fact("tables", "not readable", str(link.refusal(url, error)))
        return
    yield Fact("tables", f"version {found}")
    rights = connection.execute(_RIGHTS).fetchone()
    writes, reads, rewrites = rights or (False, False, False)
    shown = clean_line(account, 63)
    if rewrites or is_super:
        yield Fact(
            "rights", f"{shown} can change the history",
            "use an account that is only a member of acp_writer: `create role NAME login in role acp_writer`",
        )  # fmt: skip
    elif writes:
        yield Fact("rights", f"{shown} can read and add, and cannot change the history")
    elif reads:
        yield Fact("rights", f"{shown} can only read", f'to write: `grant acp_writer to "{shown}"`')
    else:
        yield Fact("rights", f"{shown} can read nothing", f'`grant acp_writer to "{shown}"`')
