"""The two tasks of docs/sharing.md, line by line, by people whose homes hold nothing of acp yet.

The forge is a server for ssh on this machine, which guests know by the name of the page; the database is a server
of its own that takes only TLS and passwords. What the page marks as untested, or what a package manager does, is
not run.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.stores import ssh
from tests.stores.hosts import ROOT, git
from tests.support import postgres
from tests.support.waiting import until

PAGE = (ROOT / "docs" / "sharing.md").read_text(encoding="utf-8")
PATIENCE = 120.0
AGENT = '#!/bin/sh\n[ "$1" = --version ] && exec echo 1.0\ncat > /dev/null & sleep 600\n'
"""In place of a paid agent: a program that works for long."""


def blocks(title: str, kind: str = "sh") -> list[str]:
    """The lines of a section that people copy, block by block."""
    section = PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0]
    return re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL)


class Newcomer:
    """A person with a home of their own, in which lines are typed into a shell."""

    def __init__(self, name: str, place: Path, **env: str) -> None:
        self.home = place / name
        programs = self.home / "bin"
        programs.mkdir(parents=True)
        for program, text in (
            ("acp", f'#!/bin/sh\nexec {sys.executable} -m acp_tui "$@"\n'),
            ("claude", AGENT),
        ):
            (programs / program).write_text(text)
            (programs / program).chmod(0o755)
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("ACP_", "GIT_", "XDG_", "PG"))
        }
        path = f"{programs}:{os.environ['PATH']}"
        self.env = kept | {"HOME": str(self.home), "PATH": path, "PYTHONPATH": str(ROOT)} | env

    def types(self, lines: str, answers: str = "") -> str:
        """Type lines into a shell; what is printed, once all of them ended well."""
        ours, theirs = os.openpty()
        try:
            os.write(ours, answers.encode())
            ran = subprocess.run(
                ["bash", "-euc", lines], stdin=theirs, cwd=self.home, env=self.env, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=PATIENCE,
            )  # fmt: skip
        finally:
            os.close(ours)
            os.close(theirs)
        assert ran.returncode == 0, (lines, ran.stdout)
        return ran.stdout

    def read(self, name: str) -> bytes:
        """A file of the collaboration."""
        return (self.home / "checkout" / name).read_bytes()

    def leaves(self) -> None:
        """End what was started here."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                if process.environ().get("HOME") == str(self.home):
                    process.kill()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose name leaves room for that of a socket."""
    with tempfile.TemporaryDirectory(prefix="acp", dir="/tmp", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.contextmanager
def both(place: Path, **env: str) -> Iterator[tuple[Newcomer, Newcomer]]:
    """Two people who have not met acp."""
    people = Newcomer("anna", place, **env), Newcomer("ben", place, **env)
    try:
        yield people
    finally:
        for each in people:
            each.leaves()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(bool(ssh.MISSING), reason=ssh.MISSING)
def test_a_colleagues_laptop_and_mine_over_a_forge(place: Path, tmp_path: Path) -> None:
    begin, join, propose, review, launch = blocks("A colleague's laptop and mine, over a forge")
    git("init", "-q", "--bare", str(tmp_path / "team" / "coordination.git"))
    with ssh.server(tmp_path / "sshd", home=tmp_path) as server:
        (place / "ssh").write_text(
            f"Host forge.example\nHostName 127.0.0.1\nPort {server.port}\nIdentityFile {server.place}/key\n"
            f"IdentitiesOnly yes\nUserKnownHostsFile {server.place}/known\n"
        )
        account = subprocess.run(
            ["id", "-un"], capture_output=True, text=True, check=True
        ).stdout.strip()
        command = f"ssh -F {place}/ssh -l {account}"  # the forge's account `git` is this one here
        with both(place, GIT_SSH_COMMAND=command) as (anna, ben):
            said = anna.types(begin, "y\n")
            assert "leaves this machine: " in said and "proposal.md" in said
            assert f"{join.strip().removesuffix(' checkout')} FOLDER" in said, (
                "the line for the colleague"
            )
            said = ben.types(join)
            assert "refuses requests from other hosts" in said
            assert "warning" not in anna.types(propose)
            said = ben.types(review)
            assert "ready: " in said
            assert b"is its path" in ben.read("proposal.md")
            ben.types(launch)
            until(lambda: "reader" in ben.types("acp ps checkout"), "the loop", PATIENCE)
            anna.types("acp sync checkout --once")
            for name in ("events.jsonl", "protocol.json", "proposal.md", "review.md"):
                assert anna.read(name) == ben.read(name), name
            assert b"empties the cache" in anna.read("review.md")
            _, table, *_ = blocks("All collaborations of a store")[0].splitlines()
            store = begin.split()[-1]
            assert table.startswith("acp status ")
            assert "checkout" in anna.types(f"acp status {store}")
            said = anna.types("acp hosts checkout")
            assert "writer acts on" in said and "reader acts on" in said
            ben.types("acp stop checkout")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")
def test_a_teams_server_with_postgresql(place: Path) -> None:
    title = "A team's server: PostgreSQL"
    _, _, prepare, begin, join = blocks(title)[:5]
    roles = "".join(blocks(title, "sql")).replace("'...'", "'secret'")
    certified = place / "tls"
    certified.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=db.example.org", "-addext", "subjectAltName=DNS:db.example.org",
         "-keyout", str(certified / "key"), "-out", str(certified / "crt")],
        check=True, capture_output=True,
    )  # fmt: skip
    pytest.importorskip("psycopg", reason="needs the extra postgres")
    try:
        started = postgres.running()
        server = started.__enter__()
    except postgres.NoServer as reason:
        pytest.skip(str(reason))
    with contextlib.ExitStack() as stack:
        stack.callback(started.__exit__, None, None, None)
        port = _over_tls(server, certified)
        server.sql(
            "create role postgres superuser login password 'secret'",
            "create database team encoding 'UTF8' template template0",
        )
        known = {
            "PGHOSTADDR": "127.0.0.1",
            "PGPORT": str(port),
            "PGSSLROOTCERT": str(certified / "crt"),
        }
        anna, ben = stack.enter_context(both(place, **known))
        for each, names in ((anna, ("postgres", "anna")), (ben, ("ben",))):
            lines = "".join(f"db.example.org:*:team:{name}:secret\n" for name in names)
            (each.home / ".pgpass").write_text(lines)
            (each.home / ".pgpass").chmod(0o600)
            each.env["PGPASSFILE"] = str(
                each.home / ".pgpass"
            )  # the account's own home is another here
        assert "acp" in anna.types(prepare)
        server.sql(*filter(str.strip, roles.split(";")), url=server.url("team"))
        said = anna.types(begin, "y\n")
        assert "leaves this machine: " in said and "Shared." in said
        line = join.strip().removesuffix(" checkout").replace("ben@", "anna@")
        assert f"{line} FOLDER" in said, "the line for the colleague"
        ben.types(join)
        anna.types(blocks("A colleague's laptop and mine, over a forge")[2])
        ben.types(blocks("A colleague's laptop and mine, over a forge")[3])
        anna.types("acp sync checkout --once")
        assert anna.read("events.jsonl") == ben.read("events.jsonl")
        assert len(anna.read("events.jsonl").splitlines()) == 3
        (listing,) = re.findall(r"`(acp store list '[^`]*')`", PAGE)
        assert "checkout" in anna.types(listing)
        (doctor,) = re.findall(r"`(acp doctor postgresql:[^`]*)`", PAGE)
        said = " ".join(anna.types(f"{doctor} || true").split())
        assert "fsync" in said and "cannot be used" not in said, said
        assert "writer acts on" in ben.types("acp hosts checkout")


def _over_tls(server: postgres.Server, certified: Path) -> int:
    """Have a server take guests of the network by TLS and password alone; its port."""
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    data = server.place / "data"
    owner = data.stat()
    for name in ("key", "crt"):
        path = data / f"server.{name}"
        shutil.copy(certified / name, path)
        path.chmod(0o600)
        os.chown(path, owner.st_uid, owner.st_gid)
    hba = data / "pg_hba.conf"
    hba.write_text("local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n")
    server.stop()
    server.settings |= {
        "listen_addresses": "127.0.0.1", "port": str(port), "ssl": "on",
        "ssl_cert_file": "server.crt", "ssl_key_file": "server.key",
    }  # fmt: skip
    server.url = lambda database, user=postgres.ADMIN: (
        f"postgresql://{user}@/{database}?host={server.place / 'socket'}&port={port}"
    )  # type: ignore[method-assign]
    server.start()
    return port
