"""The connection of this process to a database: made and lost, its tables, its refusals, and how safe it is.

There is one for all collaborations there, made again when it is lost. Everything that is said goes
through `Link.run`, one thread at a time. Who waits for news does not hold the connection: it
watches the socket (`Line`, `Subscription`). Refusals are told by their codes (PostgreSQL, "Error
Codes", SQLSTATE). libpq gives none for a connection that was not made: then its English words are
looked at, and what is not known counts as unreachable.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from acp_core.files import claims
from acp_core.model.text import clean_line
from acp_core.stores.address import BadAddress, without_password
from acp_core.stores.engine import InDoubt, SharingError, StoreRefused, StoreUnreachable, TipMoved

if TYPE_CHECKING:
    import psycopg

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
                raise unreachable(self.url, str(again)) from None

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
                if connection.closed or was_cut(error):
                    self._drop()
                    raise InDoubt(reason(error)) from None
                _roll_back(connection)
                raise refusal(self.url, error) from None
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
                if time.monotonic() - began >= (_STARTING if is_starting(error) else patience):
                    raise
                time.sleep(next(pauses, _PAUSES[-1]))
            else:
                self.made += 1
                return self._connection

    def _connect(self) -> Connection:
        connection = connect(self.url)
        import psycopg

        try:
            found = version(connection)
            check(self.url, found)
            connection.add_notify_handler(lambda note: self.news.tell(note.payload))
            connection.execute(f"listen {CHANNEL}")
        except psycopg.Error as error:
            connection.close()
            raise refusal(self.url, error) from None
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
        raise BadAddress(f"{clean_line(url, 200)} is refused: {reason(error)}") from None
    try:
        missing: dict[str, Any] = {k: v for k, v in _DEFAULTS.items() if k not in given}
        name = given.get("application_name") or f"acp {claims.host()}"[:60]
        connection = psycopg.connect(url, autocommit=True, application_name=str(name), **missing)
    except psycopg.Error as error:
        raise not_connected(url, error) from None
    try:
        _set_up(connection)
    except psycopg.Error as error:
        connection.close()
        raise refusal(url, error) from None
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


_TURNED_AWAY = re.compile(
    r"authentication failed|no pg_hba\.conf entry|no password supplied|does not exist|permission denied for database"
    r"|is not permitted to log in|not currently accepting connections|certificate|definition of service"
    r"|service file|server does not support SSL|requirepeer"
)

_SAYS_IT_STARTS = re.compile(
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
    return bool(_SAYS_IT_STARTS.search(str(error)))


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


if TYPE_CHECKING:
    pass

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


def examine_database(url: str) -> list[Fact]:
    """Look at a database; what cannot be looked at is a fact, too. Never raises for what it finds."""
    try:
        connection = connect(url)
    except SharingError as error:
        return [Fact("connection", "none", str(error))]
    import psycopg

    try:
        return list(_facts(url, connection))
    except psycopg.Error as error:
        return [Fact("connection", "lost", reason(error))]
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
        found = version(connection)
        check(url, found)
    except SharingError as error:
        yield Fact("tables", "none" if not found else f"version {found}", str(error))
        return
    except psycopg.Error as error:
        yield Fact("tables", "not readable", str(refusal(url, error)))
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
