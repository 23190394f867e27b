"""The stores of the check: what a host's own way to one is, how each can fail, and what is in it."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.stores.check.relay import CUT, OPEN, Relay
from tests.stores.databases import prepared
from tests.stores.hosts import ID, git
from tests.support.postgres import Server

_REF = f"refs/heads/acp/{ID}/log"
_HOOKS = {
    "closed": ("pre-receive", "echo closed for a while >&2; exit 1"),
    "slow": ("pre-receive", "sleep 0.7"),
    "dies before": ("pre-receive", "kill -9 $PPID; sleep 0.1"),
    "dies after": ("post-receive", "kill -9 $PPID; sleep 0.1"),
}
_SIZE = 24 << 20  # bytes of a store that can be full


class Revision(NamedTuple):
    """A change as the store keeps it: whose host made it, and the size of the log after it."""

    host: str
    size: int


class Backend(Protocol):
    """A store under test."""

    def address(self, host: int) -> str:
        """The store's address, by the host's own way."""
        ...

    def fail(self, kind: str, host: int) -> None:
        """Begin a fault."""
        ...

    def mend(self) -> None:
        """End all faults."""
        ...

    def remember(self) -> None:
        """Keep what is there now, as whoever makes a copy of it."""
        ...

    def put_back(self) -> contextlib.AbstractContextManager[None]:
        """The store as it was remembered, for a while."""
        ...

    def log(self) -> bytes:
        """The log."""
        ...

    def contents(self) -> bytes:
        """Everything that anybody has ever put there, in any order."""
        ...

    def revisions(self) -> list[Revision]:
        """All changes, the oldest first."""
        ...

    def check(self) -> None:
        """Look at the store by its own means."""
        ...

    def close(self) -> None:
        """Give back what it uses."""
        ...


class GitBackend:
    """A bare repository, on a small file system of its own where one can be mounted.

    Args:
        place: a folder for it.
        hosts: how many hosts use it.
    """

    def __init__(self, place: Path, hosts: int) -> None:
        self._place = place / "store"
        self._place.mkdir(parents=True)
        self._mounted = _mounted(self._place)
        self._repository = self._place / "store.git"
        git("init", "-q", "--bare", str(self._repository))
        self._ways = [place / "ways" / str(number) for number in range(hosts)]
        for way in self._ways:
            way.mkdir(parents=True)
            (way / "store.git").symlink_to(self._repository)
        self._old = ""

    def address(self, host: int) -> str:
        return str(self._ways[host] / "store.git")

    def fail(self, kind: str, host: int) -> None:
        if kind == "cut":
            self._ways[host].rename(self._ways[host].with_suffix(".away"))
        elif kind == "lock":
            (self._repository / f"{_REF}.lock").touch()
        elif kind == "full":
            if self._mounted:
                _fill(self._place / "filler")
        else:
            name, text = _HOOKS[kind]
            made = self._repository / "hooks" / "new"
            made.write_text(f"#!/bin/sh\n{text}\n", encoding="ascii")
            made.chmod(0o755)
            made.rename(made.with_name(name))

    def mend(self) -> None:
        for way in self._ways:
            with contextlib.suppress(FileNotFoundError):
                way.with_suffix(".away").rename(way)
        for path in (self._repository / f"{_REF}.lock", self._place / "filler",
                     *(self._repository / "hooks" / name for name in ("pre-receive", "post-receive", "new"))):  # fmt: skip
            path.unlink(missing_ok=True)

    def remember(self) -> None:
        self._old = git("-C", str(self._repository), "rev-parse", _REF)

    @contextlib.contextmanager
    def put_back(self) -> Iterator[None]:
        now = git("-C", str(self._repository), "rev-parse", _REF)
        git("-C", str(self._repository), "update-ref", _REF, self._old)
        yield
        git("-C", str(self._repository), "update-ref", _REF, now, self._old)

    def log(self) -> bytes:
        return self._blob(f"{_REF}:events.jsonl")

    def contents(self) -> bytes:
        return self._git("cat-file", "--batch-all-objects", "--batch", "--buffer")

    def revisions(self) -> list[Revision]:
        found, before = [], b""
        listed = git("-C", str(self._repository), "log", "--reverse", "--format=%H %ae", _REF)
        for row in listed.splitlines():
            commit, who = row.split()
            log = self._blob(f"{commit}:events.jsonl")
            assert log.startswith(before), "a commit changes what is in the log"
            before = log
            found.append(Revision(who.removesuffix("@acp"), len(log)))
        return found

    def check(self) -> None:
        said = self._git("fsck", "--strict", "--no-dangling", "--no-progress")
        assert not said.strip(), said
        listed = git("-C", str(self._repository), "rev-list", "--parents", _REF)
        assert all(len(row.split()) <= 2 for row in listed.splitlines()), "a merge"

    def close(self) -> None:
        if self._mounted:
            subprocess.run(["umount", "-l", str(self._place)], check=False, capture_output=True)

    def _blob(self, name: str) -> bytes:
        return self._git("cat-file", "blob", name)

    def _git(self, *words: str) -> bytes:
        ran = subprocess.run(
            ["git", "-C", str(self._repository), *words], capture_output=True, check=False
        )
        assert ran.returncode == 0, (words, ran.stderr)
        return ran.stdout


class PostgresBackend:
    """A database of a server, each host at the end of its own wire.

    Args:
        server: which may be killed.
        hosts: how many hosts use it.
    """

    def __init__(self, server: Server, hosts: int) -> None:
        self._server = server
        self._url = prepared(server.database())
        self._name = self._url.split("@/")[1].partition("?")[0]
        self._wires = [Relay(str(server.place / "socket" / ".s.PGSQL.5432")) for _ in range(hosts)]
        self._frozen: list[int] = []
        self._read_only = False
        self._chance = random.Random(self._name)

    def address(self, host: int) -> str:
        return f"postgresql://admin@127.0.0.1:{self._wires[host].port}/{self._name}?sslmode=disable&gssencmode=disable"

    def fail(self, kind: str, host: int) -> None:
        if kind == "killed":
            self._server.kill()
        elif kind == "closed":
            self._read_only = True
            self._end_clients(f"alter database {self._name} set default_transaction_read_only = on")
        elif kind == "frozen":
            found = self._server.sql(
                f"select pid from pg_stat_activity where datname = '{self._name}'"
            )
            for (pid,) in found[:1]:
                assert isinstance(pid, int)
                self._frozen.append(pid)
                os.kill(pid, signal.SIGSTOP)
        else:
            self._wires[host].state = kind

    def mend(self) -> None:
        for wire in self._wires:
            wire.state = OPEN
        while self._frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._frozen.pop(), signal.SIGCONT)
        if self._server.process is None:
            self._server.start()
        if self._read_only:
            self._read_only = False
            self._end_clients(f"alter database {self._name} reset default_transaction_read_only")

    def remember(self) -> None:
        with self._nobody_there():
            self._server.sql(f"create database {self._name}_old template {self._name}")

    @contextlib.contextmanager
    def put_back(self) -> Iterator[None]:
        name = self._name
        self._swap(f"{name}_old", f"{name}_new")
        yield
        self._swap(f"{name}_new", f"{name}_old")

    def log(self) -> bytes:
        rows = self._rows("select e.line from acp.event e join acp.collab c on c.id = e.collab"
                          f" where c.name = '{ID}' order by e.line_number")  # fmt: skip
        return b"".join(_bytes(row[0]) for row in rows)

    def contents(self) -> bytes:
        rows = self._rows("select data from acp.blob union all select line from acp.event")
        return b"\n".join(_bytes(row[0]) for row in rows)

    def revisions(self) -> list[Revision]:
        rows = self._rows("select about ->> 'host', size from acp.revision order by number")
        found = [Revision(str(host), int(str(size))) for host, size in rows]
        assert found == sorted(found, key=lambda each: each.size)
        return found

    def check(self) -> None:
        rows = self._rows("select count(*) from acp.revision r join acp.collab c on c.id = r.collab"
                          " where r.number > c.revision or r.number < 1")  # fmt: skip
        assert rows == [(0,)]
        for count, last in self._rows("select count(*), max(line_number) from acp.event"):
            assert count == last

    def close(self) -> None:
        self.mend()
        for wire in self._wires:
            wire.state = CUT
            wire.close()
        for name in (self._name, f"{self._name}_old", f"{self._name}_new"):
            with contextlib.suppress(Exception):
                self._server.sql(f"drop database if exists {name} with (force)")

    def _rows(self, statement: str) -> list[tuple[object, ...]]:
        return self._server.sql(statement, url=self._url)

    def _end_clients(self, *before: str) -> None:
        self._server.sql(
            *before,
            f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{self._name}'",
        )

    @contextlib.contextmanager
    def _nobody_there(self) -> Iterator[None]:
        """No client has the database open, and none comes."""
        self._end_clients(f"alter database {self._name} allow_connections false")
        deadline = time.monotonic() + 20
        count = f"select count(*) from pg_stat_activity where datname = '{self._name}'"
        while self._server.sql(count) != [(0,)]:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        try:
            yield
        finally:
            self._server.sql(f"alter database {self._name} allow_connections true")

    def _swap(self, new: str, aside: str) -> None:
        """Another database takes the name, and the one that has it another one."""
        self._end_clients(f"alter database {self._name} allow_connections false")
        deadline = time.monotonic() + 20
        while True:
            try:
                self._server.sql(f"alter database {self._name} rename to {aside}")
                break
            except Exception:
                assert time.monotonic() < deadline
                time.sleep(0.05)
        self._server.sql(f"alter database {new} rename to {self._name}",
                         f"alter database {self._name} allow_connections true")  # fmt: skip


def _bytes(value: object) -> bytes:
    assert isinstance(value, bytes)
    return value


def _mounted(place: Path) -> bool:
    """Make a folder a small file system, where that is possible; whether it is."""
    if os.geteuid() or not shutil.which("mount"):
        return False
    words = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", str(place)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _fill(path: Path) -> None:
    """Use up a file system."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 16))
