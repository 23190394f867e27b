"""The connection of this process to a database: one for all collaborations there, made again when it is lost.

Everything that is said goes through `Link.run`, one thread at a time. Who waits for news does not
hold the connection: it watches the socket (see `acp_core.stores.postgres.news`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from acp_core.files import owners
from acp_core.model.text import clean_line
from acp_core.stores.address import BadAddress
from acp_core.stores.engine import InDoubt, SharingError, StoreRefused
from acp_core.stores.postgres import schema, words
from acp_core.stores.postgres.news import News
from acp_core.stores.postgres.watchdog import Watchdog

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

T = TypeVar("T")

CHANNEL = "acp"
EXTRA = "PostgreSQL needs the extra: pip install 'acp-tui[postgres]'"
_DEFAULTS = {
    "connect_timeout": 10,  # seconds
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,  # ms: a network that takes nothing any more is lost
}
SETTINGS = {
    "client_encoding": "UTF8",
    "idle_in_transaction_session_timeout": "10s",  # a stopped process gives the row free
    "lock_timeout": "15s",  # more than that: whoever waits outlasts one stopped process
    "statement_timeout": "120s",
}
"""What acp sets in each of its sessions."""
PATIENCE = 150.0
"""Seconds after which an answer is not waited for any more: more than the server may work at one."""
GRACE = 4.0  # seconds in which a server that was there may come again
_STARTING = 30.0  # seconds, where it says that it is just starting
_PAUSES = (0.02, 0.05, 0.1, 0.2, 0.3)


class Link:
    """A connection that is made when it is first needed, and again after it was lost.

    Args:
        url: the database, without a password.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.made = 0  # how often a connection was made: news may be missed in between
        self.news = News(self)
        self._connection: Connection | None = None
        self._lock = threading.RLock()
        self._watchdog = Watchdog(lambda: PATIENCE)

    def run(self, work: Callable[[Connection], T]) -> T:
        """Do something over the connection that may be done again: a lost one is made again once.

        Raises:
            StoreUnreachable: it did not answer, twice.
            StoreRefused: it answers with a refusal.
        """
        with self._lock:
            try:
                return self.run_once(work)
            except InDoubt:
                pass
            try:
                return self.run_once(work)
            except InDoubt as again:
                raise words.unreachable(self.url, str(again)) from None

    def run_once(self, work: Callable[[Connection], T]) -> T:
        """Do something over the connection, once.

        Raises:
            InDoubt: the connection was lost meanwhile: it was done, or it was not.
            SharingError: there is no connection, or the server refuses; nothing was done.
        """
        with self._lock:
            connection = self._connected()  # which says so where psycopg is missing
            import psycopg

            try:
                with self._watchdog.over(connection.fileno()):
                    return work(connection)
            except psycopg.Error as error:
                if connection.closed or words.was_cut(error):
                    self._drop()
                    raise InDoubt(words.reason(error)) from None
                _roll_back(connection)
                raise words.refusal(self.url, error) from None
            except UnicodeEncodeError as error:
                _roll_back(connection)
                raise StoreRefused(f"the store takes no such text: {error.reason}") from None
            except BaseException:
                _roll_back(connection)
                raise

    def socket(self) -> int:
        """The socket of the connection, made where there is none; to look whether something comes.

        Raises:
            SharingError: no connection can be made.
        """
        with self._lock:
            return self._connected().fileno()

    def take_in(self) -> bool:
        """Take in what came on the socket, without waiting; False where the connection is lost."""
        with self._lock:
            if self._connection is None:
                return False
            import psycopg

            try:
                server = self._connection.pgconn
                server.consume_input()
                while note := server.notifies():
                    self.news.tell(note.extra.decode("utf-8", "replace"))
            except psycopg.Error:
                self._drop()
                return False
            return True

    def close(self) -> None:
        """Let go of the connection."""
        with self._lock:
            self._drop()
        self._watchdog.end()

    def _connected(self) -> Connection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        began = time.monotonic()
        pauses: Iterator[float] = iter(_PAUSES)
        while True:
            try:
                self._connection = self._connect()
            except SharingError as error:
                patience = GRACE if self.made else 0.0
                if time.monotonic() - began >= (
                    _STARTING if words.is_starting(error) else patience
                ):
                    raise
                time.sleep(next(pauses, _PAUSES[-1]))
            else:
                self.made += 1
                return self._connection

    def _connect(self) -> Connection:
        connection = connect(self.url)
        import psycopg

        try:
            found = schema.version(connection)
            schema.check(self.url, found)
            connection.add_notify_handler(lambda note: self.news.tell(note.payload))
            connection.execute(f"listen {CHANNEL}")
        except psycopg.Error as error:
            connection.close()
            raise words.refusal(self.url, error) from None
        except BaseException:
            connection.close()
            raise
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(Exception):  # it is broken, in whatever way
                self._connection.close()
            self._connection = None


def connect(url: str) -> Connection:
    """A new connection to a database, with what acp asks of each.

    Raises:
        BadAddress: it has options that libpq does not know.
        StoreUnreachable: nobody answers.
        StoreRefused: the server turns us away, or psycopg is not installed.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise StoreRefused(EXTRA) from None
    logging.getLogger("psycopg").setLevel(logging.CRITICAL)  # it tells us by its errors
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise BadAddress(f"{clean_line(url, 200)} is refused: {words.reason(error)}") from None
    try:
        missing: dict[str, Any] = {k: v for k, v in _DEFAULTS.items() if k not in given}
        name = given.get("application_name") or f"acp {owners.host()}"[:60]
        connection = psycopg.connect(url, autocommit=True, application_name=str(name), **missing)
    except psycopg.Error as error:
        raise words.not_connected(url, error) from None
    try:
        _set_up(connection)
    except psycopg.Error as error:
        connection.close()
        raise words.refusal(url, error) from None
    return connection


def _set_up(connection: Connection) -> None:
    """What holds for the whole session, in one round trip.

    A server, or a role, whose commits are not on the disk when they are acknowledged is overruled
    for this session; a stricter setting (a replica has it, too) stays.
    """
    wanted = "".join(
        f"set_config('{name}', '{value}', false), " for name, value in SETTINGS.items()
    )
    connection.execute(
        f"select {wanted} case current_setting('synchronous_commit') when 'off'"
        " then set_config('synchronous_commit', 'on', false) end"
    )


def _roll_back(connection: Connection) -> None:
    """Leave a transaction that was begun, if any."""
    with contextlib.suppress(Exception):  # then the next use finds the connection lost
        if connection.info.transaction_status.name != "IDLE":
            connection.execute("rollback")


_links: dict[tuple[int, str], tuple[Link, int]] = {}
_guard = threading.Lock()


def borrow(url: str) -> Link:
    """The link of this process to a database, shared by all that borrow it; see `give_back`."""
    with _guard:
        link, users = _links.get((os.getpid(), url)) or (Link(url), 0)
        _links[os.getpid(), url] = link, users + 1
        return link


def give_back(link: Link) -> None:
    """The link is not needed any more by one that borrowed it; the last one closes it."""
    with _guard:
        kept, users = _links.get((os.getpid(), link.url), (link, 1))
        if kept is link and users > 1:
            _links[os.getpid(), link.url] = link, users - 1
            return
        _links.pop((os.getpid(), link.url), None)
    link.close()
