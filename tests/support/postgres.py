"""A real PostgreSQL server for tests: its own cluster, on a socket in a folder of its own.

initdb refuses root: then the server runs as the account ``postgres``, or as one made for it.
"""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")
_PATIENCE = 60.0
ADMIN = "admin"


class NoServer(Exception):
    """No PostgreSQL server can be run here; the message says why."""


class Server:
    """A server that runs; `kill` it, `start` it again.

    Args:
        bin: the folder of its programs.
        place: its folder.
        runs_as: what is put before a command so that it runs as the server's account.
    """

    def __init__(self, bin: Path, place: Path, runs_as: list[str]) -> None:
        self.bin = bin
        self.place = place
        self.runs_as = runs_as
        self.process: subprocess.Popen[bytes] | None = None
        self.settings: dict[str, str] = {}

    def url(self, database: str, user: str = ADMIN) -> str:
        """The address of a database."""
        return f"postgresql://{user}@/{database}?host={self.place / 'socket'}"

    def database(self, **options: str) -> str:
        """A new database; its address."""
        name = f"t{secrets.token_hex(5)}"
        more = " ".join(f"{key} {value}" for key, value in options.items())
        self.sql(f"create database {name} {more}")
        return self.url(name)

    def sql(self, *statements: str, url: str = "") -> list[tuple[object, ...]]:
        """Run statements, each in a transaction of its own; the rows of the last one."""
        import psycopg

        rows: list[tuple[object, ...]] = []
        with psycopg.connect(url or self.url("postgres"), autocommit=True) as connection:
            for each in statements:
                cursor = connection.execute(each.encode())
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def start(self) -> None:
        """Start it, and wait until it answers."""
        log = (self.place / "log").open("ab")
        given = {"unix_socket_directories": str(self.place / "socket"), "listen_addresses": "",
                 "max_connections": "80", "log_min_messages": "fatal",
                 "dynamic_shared_memory_type": "mmap",  # in its folder: a kill leaves nothing elsewhere
                 **self.settings}  # fmt: skip
        options = [word for key, value in given.items() for word in ("-c", f"{key}={value}")]
        self.process = subprocess.Popen(
            [*self.runs_as, str(self.bin / "postgres"), "-D", str(self.place / "data"), *options],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True, cwd="/",
        )  # fmt: skip
        log.close()
        began = time.monotonic()
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > began + _PATIENCE:
                raise NoServer((self.place / "log").read_text(errors="replace")[-500:])
            time.sleep(0.02)

    def _answers(self) -> bool:
        """Whether it lets people in, or turns them away for a reason of its own."""
        import psycopg

        try:
            self.sql("select 1")
        except psycopg.OperationalError as error:
            return "password" in str(error)
        return True

    def kill(self) -> None:
        """SIGKILL for all of its processes at once, as where the power of its machine is cut."""
        assert self.process is not None
        top = psutil.Process(self.process.pid)
        with contextlib.suppress(psutil.Error):
            top.suspend()  # it cannot start another one meanwhile
        for each in [*top.children(recursive=True), top]:
            with contextlib.suppress(psutil.Error):
                each.kill()
        self.process.wait(20)
        self.process = None

    def stop(self) -> None:
        """End it, however."""
        if self.process is not None:
            self.kill()


def programs() -> Path:
    """The folder of the server's programs.

    Raises:
        NoServer: there is none.
    """
    found = shutil.which("initdb")
    folders = [os.path.dirname(os.path.realpath(found))] if found else []
    folders += sorted((each for place in _PLACES for each in glob.glob(place)), reverse=True)
    for folder in folders:
        if os.access(os.path.join(folder, "initdb"), os.X_OK) and os.access(
            os.path.join(folder, "postgres"), os.X_OK
        ):
            return Path(folder)
    raise NoServer("needs PostgreSQL's server (initdb and postgres)")


@contextmanager
def running(**settings: str) -> Iterator[Server]:
    """A server that is removed afterwards with all that it kept.

    Raises:
        NoServer: none can be run here.
    """
    bin = programs()
    made = ""
    runs_as: list[str] = []
    memory = os.environ.get(
        "PYTEST_DEBUG_TEMPROOT", "/tmp"
    )  # both short, as a socket's path must be
    place = Path(tempfile.mkdtemp(prefix="acp-pg-", dir=memory))
    try:
        for name, mode in (("data", 0o700), ("socket", 0o755)):
            (place / name).mkdir(mode=mode)
        if os.geteuid() == 0:
            made, runs_as = _account(place)
        server = Server(bin, place, runs_as)
        server.settings = settings
        _call(*runs_as, str(bin / "initdb"), "-D", str(place / "data"), "-U", ADMIN, "-A", "trust",
              "-E", "UTF8", "--locale=C", "--no-sync")  # fmt: skip
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(place, ignore_errors=True)
        if made:
            subprocess.run(["userdel", made], capture_output=True, check=False)


def _account(place: Path) -> tuple[str, list[str]]:
    """An account for the server, and how to run something as it; the name of one that was made."""
    made = ""
    try:
        entry = pwd.getpwnam("postgres")
    except KeyError:
        made = f"acppg{secrets.token_hex(4)}"
        if not shutil.which("useradd"):
            raise NoServer("initdb refuses root: needs an account postgres, or useradd") from None
        _call("useradd", "-M", "-s", "/bin/sh", made)
        entry = pwd.getpwnam(made)
    if not shutil.which("setpriv"):
        raise NoServer("needs setpriv")
    place.chmod(0o755)
    for each in ("data", "socket"):
        os.chown(place / each, entry.pw_uid, entry.pw_gid)
    return made, ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--clear-groups"]


def _call(*words: str) -> None:
    ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/")
    if ended.returncode != 0:
        raise NoServer(f"{words[0]}: {ended.stderr.strip()[-500:]}")
