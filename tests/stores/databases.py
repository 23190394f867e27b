"""Databases as stores: prepared ones, clients of them, and a wire to them that can be cut."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from acp_core.stores.address import parse
from acp_core.stores.engine import Change, Tip
from acp_core.stores.postgres.engine import PostgresEngine
from tests.support.postgres import Server

ROOT = Path(__file__).resolve().parents[2]


def prepared(url: str) -> str:
    """Prepare a database for acp, with nothing in it; its address."""
    from acp_core.stores.postgres import link

    connection = link.connect(url)
    connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
    connection.execute("drop schema if exists acp cascade")
    link.prepare(connection)
    connection.close()
    return url


def as_role(url: str, name: str) -> str:
    """The address of a prepared database for an account that is only a member of acp_writer."""
    from acp_core.stores.postgres import link

    connection = link.connect(url)
    known = connection.execute("select 1 from pg_roles where rolname = %s", (name,)).fetchone()
    if known is None:
        connection.execute(f"create role {name} login in role acp_writer".encode())
    connection.close()
    return url.replace("://admin@", f"://{name}@")


def engine(url: str, id: str = "one") -> PostgresEngine:
    """The engine of a collaboration in a database."""
    return PostgresEngine(parse(f"{url}#{id}"))


def line(seq: int, **more: object) -> bytes:
    """A line of a log."""
    return json.dumps({"seq": seq, **more}).encode() + b"\n"


def change(*seqs: int, **more: object) -> Change:
    """A change after which the log has these events."""
    log = b"".join(map(line, seqs))
    made = Change(log, line(seqs[-1]), seqs[-1], b"{}", words=f"seq {seqs[-1]}")
    return made._replace(**more)  # type: ignore[arg-type]


def begun(url: str, id: str = "one", **more: object) -> tuple[PostgresEngine, Tip]:
    """A new collaboration of one event in a database."""
    made = engine(url, id)
    return made, made.publish(None, change(1, **more))


def client(url: str, *words: object) -> subprocess.Popen[str]:
    """A process that appends events; see `tests.stores.appending`."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.stores.appending", url, *map(str, words)],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def acknowledged(clients: Sequence[subprocess.Popen[str]]) -> dict[str, int]:
    """What clients were told is in the log, once they have all ended well: the seq by key."""
    found: dict[str, int] = {}
    for each in clients:
        out, err = each.communicate(timeout=120)
        assert each.returncode == 0, err
        assert err == ""
        for row in out.splitlines():
            seq, key = row.split()
            found[key] = int(seq)
    return found


def events(url: str, id: str = "one") -> list[dict[str, object]]:
    """The events of a collaboration's log, which has no gap and no key twice."""
    with engine(url, id) as opened:
        found = [json.loads(row) for row in opened.read(None).added.splitlines()]
    assert [each["seq"] for each in found] == list(range(1, len(found) + 1))
    keys = [each["key"] for each in found if "key" in each]
    assert len(set(keys)) == len(keys)
    return found


class Wire:
    """A TCP port that leads to a server's socket, as long as it is not cut.

    Args:
        socket_path: of the server.
    """

    def __init__(self, socket_path: str) -> None:
        self._to = socket_path
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut_at = b""  # what a client sends that has the wire cut
        self.let_through = True  # whether the server still gets what was sent then
        self.silent = False  # whether a wire that is cut only says nothing any more
        self.again = True  # whether new connections are made afterwards
        self.cuts = 0
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """No new connections."""
        self._ended = True
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended:
            with contextlib.suppress(OSError):
                near, _ = self._listener.accept()
                if self.cuts and not self.again:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                far.connect(self._to)
                threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        is_cut = False
        with near, far, contextlib.suppress(OSError):
            while True:
                ready, _, _ = select.select([near, far], [], [], 60)
                for each in ready:
                    data = each.recv(1 << 16)
                    if not data or (is_cut and each is far and not self.silent):
                        return  # the server has done it, and says so to nobody
                    if each is near and self.cut_at and self.cut_at in data:
                        is_cut, self.cut_at = True, b""
                        self.cuts += 1
                        if not self.let_through:
                            return
                    if not (is_cut and each is far):
                        (far if each is near else near).sendall(data)


@contextlib.contextmanager
def wired(server: Server, url: str) -> Iterator[tuple[Wire, str]]:
    """A wire to a server, and the address of one of its databases over it."""
    wire = Wire(str(server.place / "socket" / ".s.PGSQL.5432"))
    name = url.split("@/")[1].partition("?")[0]
    try:
        yield (
            wire,
            f"postgresql://admin@127.0.0.1:{wire.port}/{name}?sslmode=disable&gssencmode=disable",
        )
    finally:
        wire.close()
