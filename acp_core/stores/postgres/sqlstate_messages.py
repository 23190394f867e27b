"""What the refusals of a PostgreSQL server mean, by their codes (SQLSTATE) where they have one.

Source: PostgreSQL, "Error Codes". libpq gives none for a connection that was not made: then its
English words are looked at, and what is not known counts as unreachable.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from acp_core.model.text import clean_line
from acp_core.stores.address import without_password
from acp_core.stores.engine import SharingError, StoreRefused, StoreUnreachable, TipMoved

if TYPE_CHECKING:
    import psycopg

_TURNED_AWAY = re.compile(
    r"authentication failed|no pg_hba\.conf entry|no password supplied|does not exist|permission denied for database"
    r"|is not permitted to log in|not currently accepting connections|certificate|definition of service"
    r"|service file|server does not support SSL|requirepeer"
)

_STARTING = re.compile(
    r"the database system is (starting up|not yet accepting connections|in recovery mode|shutting down)"
)

_BUSY = {"55P03", "57014"}  # a lock, or a statement, took too long

_RACED = {"40001", "40P01"}  # serialization, deadlock

_NO_SCHEMA = {"3F000", "42P01", "42703", "42883"}

_KEY_USED = "event_key"

_DOUBT = "40003"  # statement completion unknown

_NEEDS_OTHER_SERVER = {"25006"}


def reason(error: BaseException) -> str:
    """The first line of what a server or libpq says, as one safe line without a password."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = (
        lines[-1] if lines and "Multiple connection attempts" in lines[0] else " ".join(lines[:1])
    )
    said = re.sub(r"^connection (failed: )+", "", said)
    return clean_line(without_password(said), 300) or type(error).__name__


def unreachable(url: str, said: str) -> StoreUnreachable:
    """The store did not answer."""
    return StoreUnreachable(f"the store {clean_line(url, 300)} cannot be reached ({said})")


def is_starting(error: SharingError) -> bool:
    """Whether a server says that it will answer soon (in English: libpq gives no code)."""
    return bool(_STARTING.search(str(error)))


def was_cut(error: psycopg.Error) -> bool:
    """Whether an error means that nobody is there any more, and not that something is refused."""
    code = error.sqlstate
    if code is None:
        return type(error).__name__ in ("OperationalError", "InterfaceError")
    return code.startswith(("08", "57P")) or code == _DOUBT


def not_connected(url: str, error: psycopg.Error) -> SharingError:
    """Why no connection was made."""
    said = reason(error)
    if _TURNED_AWAY.search(str(error)) and "No such file or directory" not in str(error):
        return StoreRefused(f"the store refused it: {said}")
    return unreachable(url, said)


def refusal(url: str, error: psycopg.Error) -> SharingError:
    """What an error of a statement means: nothing was changed by it."""
    code, said = error.sqlstate or "", reason(error)
    if was_cut(error):
        return unreachable(url, said)
    if code in _BUSY:
        return unreachable(url, f"it is busy: {said}")
    if code in _RACED:
        return TipMoved("another program changed it at the same time")
    if code in _NO_SCHEMA:
        return StoreRefused(
            f"{clean_line(url, 300)} is not prepared for acp: run `acp store init {clean_line(url, 300)}`"
        )
    if code == "42501":
        return StoreRefused(
            f"the store refused it: {said} (is your role a member of acp_writer? see `acp doctor`)"
        )
    if code in _NEEDS_OTHER_SERVER:
        return StoreRefused(f"the store refused it: {said} (a replica? name the main server)")
    if error.diag.constraint_name == _KEY_USED:
        return StoreRefused("the store refused it: the log holds an event with this sender and key")
    return StoreRefused(f"the store refused it: {said}")
