"""The connection of this process to a database: one for all collaborations there, made again when it is lost.

Everything that is said goes through `Link.run`, one thread at a time. Who waits for news does not
hold the connection: it watches the socket (see `acp_core.stores.postgres.link`).
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from acp_core.files import claims
from acp_core.model.text import clean_line
from acp_core.stores.address import BadAddress
from acp_core.stores.engine import InDoubt, SharingError, StoreRefused
from acp_core.stores.postgres import schema, sqlstate_messages

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
                raise sqlstate_messages.unreachable(self.url, str(again)) from None

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
                if connection.closed or sqlstate_messages.was_cut(error):
                    self._drop()
                    raise InDoubt(sqlstate_messages.reason(error)) from None
                _roll_back(connection)
                raise sqlstate_messages.refusal(self.url, error) from None
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
                    _STARTING if sqlstate_messages.is_starting(error) else patience
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
            raise sqlstate_messages.refusal(self.url, error) from None
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
        raise BadAddress(
            f"{clean_line(url, 200)} is refused: {sqlstate_messages.reason(error)}"
        ) from None
    try:
        missing: dict[str, Any] = {k: v for k, v in _DEFAULTS.items() if k not in given}
        name = given.get("application_name") or f"acp {claims.host()}"[:60]
        connection = psycopg.connect(url, autocommit=True, application_name=str(name), **missing)
    except psycopg.Error as error:
        raise sqlstate_messages.not_connected(url, error) from None
    try:
        _set_up(connection)
    except psycopg.Error as error:
        connection.close()
        raise sqlstate_messages.refusal(url, error) from None
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


class Watchdog:
    """Shuts a socket down on which an answer takes too long: whoever waits there sees its end.

    Args:
        patience: how many seconds an answer may take.
    """

    def __init__(self, patience: Callable[[], float]) -> None:
        self._patience = patience
        self._turn = threading.Condition()
        self._over: tuple[float, int] | None = None  # a deadline, and the socket
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def over(self, fd: int) -> Iterator[None]:
        """Watch over a socket for as long as this lasts."""
        outer = self._over
        with self._turn:
            self._over = outer or (time.monotonic() + self._patience(), fd)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="acp-watchdog", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            with self._turn:
                self._over = outer

    def end(self) -> None:
        """No more watching; it begins again with the next socket."""
        with self._turn:
            self._thread = None
            self._turn.notify_all()

    def _watch(self) -> None:
        me = threading.current_thread()
        with self._turn:
            while self._thread is me:
                if self._over is not None and time.monotonic() >= self._over[0]:
                    _shut_down(self._over[1])
                    self._over = None
                self._turn.wait(min(5.0, self._patience() / 4))


def _shut_down(fd: int) -> None:
    """End a connection from both sides; the descriptor stays its owner's."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as same:
        same.shutdown(socket.SHUT_RDWR)


if TYPE_CHECKING:
    pass

LOOK = 5.0  # seconds between two looks

_SLICE = 1.0  # seconds after which the socket may be another one

_LONGEST = 100  # characters of a payload that is looked at

_MOST = 20_000  # names that an ear keeps


class Line(Protocol):
    """A connection as those who wait need it.

    ``made`` says how often it was made: news may have been missed in between.
    """

    made: int

    def socket(self) -> int:
        """The socket on which something may come; a connection is made where there is none."""
        ...

    def take_in(self) -> bool:
        """Take in what came, without waiting; False where the connection is lost."""
        ...


class Subscription:
    """What one waiter heard and has not yet seen to.

    Args:
        name: the collaboration that matters; None for all.
    """

    def __init__(self, name: str | None) -> None:
        self.name = name
        self.heard: dict[str, int] = {}  # the revision that was told of, by collaboration

    def takes(self, name: str, revision: int) -> bool:
        """Keep what was told, if it matters here."""
        if self.name not in (None, name) or len(self.heard) >= _MOST:
            return False
        self.heard[name] = max(revision, self.heard.get(name, 0))
        return True

    def take(self) -> dict[str, int]:
        """What was heard, which is seen to from now on."""
        heard, self.heard = self.heard, {}
        return heard


class News:
    """The ears of a process for one database.

    Args:
        line: the connection on which news come.
    """

    def __init__(self, line: Line) -> None:
        self._line = line
        self._ears: set[Subscription] = set()
        self._turn = threading.Condition()
        self._watching = False

    def open(self, name: str | None) -> Subscription:
        """An ear, from now on."""
        ear = Subscription(name)
        with self._turn:
            self._ears.add(ear)
        return ear

    def close(self, ear: Subscription) -> None:
        """The ear is not needed any more."""
        with self._turn:
            self._ears.discard(ear)

    def tell(self, payload: str) -> None:
        """Somebody says that a collaboration changed: ``NAME REVISION``; a stranger's words."""
        name, _, number = payload[:_LONGEST].partition(" ")
        if not number.isascii() or not number.isdigit() or len(number) > 18:
            return
        with self._turn:
            told = [ear for ear in self._ears if ear.takes(name, int(number))]
            if told:
                self._turn.notify_all()

    def wait(self, ear: Subscription, seconds: float) -> dict[str, int]:
        """Wait until something is heard.

        Returns:
            The revisions that were told of, by collaboration. Nothing where the time has passed,
            or where news may have been missed: then it is time to look.

        Raises:
            SharingError: the connection was lost, and none can be made.
        """
        deadline = time.monotonic() + seconds
        with self._turn:
            while self._watching and not ear.heard:
                left = deadline - time.monotonic()
                if left <= 0 or not self._turn.wait(left):
                    break
            if ear.heard or self._watching:
                return ear.take()
            self._watching = True
        try:
            self._watch(ear, deadline)
        finally:
            with self._turn:
                self._watching = False
                self._turn.notify_all()  # another one watches now
                heard = ear.take()
        return heard

    def _watch(self, ear: Subscription, deadline: float) -> None:
        made = self._line.made
        while not ear.heard:
            left = deadline - time.monotonic()
            if left <= 0:
                return
            socket = self._line.socket()
            if self._line.made != made:
                return  # whatever was said before this connection was not heard: look
            poll = select.poll()
            poll.register(socket, select.POLLIN)
            poll.poll(min(left, _SLICE) * 1_000)  # at once where another thread has just closed it
            self._line.take_in()


def send(connection: Connection, name: str, revision: int) -> None:
    """Tell everybody that a collaboration changed; in a transaction of its own, which need not last.

    Never raises: the change is made, and who does not hear of it looks.

    NOTIFY within the transaction of the change would make all changes of the database, of whatever
    collaboration, follow one another while each waits for the disk.
    """
    import psycopg

    notice = f"begin; set local synchronous_commit = off; notify acp, '{name} {revision}'; commit"
    with contextlib.suppress(psycopg.Error):
        connection.execute(notice.encode())
