"""What a store, or its address, may try: refused before anything is run, or written on this host."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.stores.address import parse
from acp_core.stores.engine import Change, HostState, Lease
from acp_core.stores.hosts import open_engine
from tests.e2e.test_hostile_requests import EVIL, is_text, shows
from tests.stores.hosts import ID, Host, git, shared, started
from tests.stores.test_shared_folder import HOSTILE, REF, proposed

EVERYTHING = ("ssh", "sh", "touch", "git-remote-foo", "git-remote-ext", "psql")
"""Programs that nothing here may start."""


def addresses(trap: Path) -> Iterator[str]:
    """Addresses that are no stores, each with what it would have run."""
    touch = f"touch {trap}"
    yield f"ext::sh -c {touch}"
    yield f"ext::sh -c {touch.replace(' ', '% ')}"
    yield "foo::bar"
    yield "fd::17"
    yield f"ssh://-oProxyCommand={touch.replace(' ', '$IFS')}/r"
    yield "-oProxyCommand=x@host:r"
    yield "git@-oProxyCommand=x:r"
    yield "ssh://-l@host/r"
    yield "git+ssh://git@host/--upload-pack=x"
    yield "git://host/r"
    yield "http://host/r"
    yield "ftp://host/r"
    yield "git+file://host/r"
    yield "file:///srv/../r"
    yield "https://anna:secret@host/r"
    yield "postgresql://anna:secret@127.0.0.1/db"
    yield "postgresql://127.0.0.1/db?password=secret"
    yield "postgresql://127.0.0.1/db?passfile=/etc/shadow"
    yield "git@host:r\x1b[2J"
    yield "git@host:r\u202e"


@pytest.mark.slow
def test_no_command_runs_or_writes_anything_for_an_address_that_is_none(tmp_path: Path) -> None:
    trap = tmp_path / "trapped"
    host = Host("a", tmp_path)
    started(host)
    programs = host.home / "bin"
    programs.mkdir()
    for name in EVERYTHING:
        (programs / name).write_text(f"#!/bin/bash\n: > {trap}\n")
        (programs / name).chmod(0o755)
    host.env["PATH"] = f"{programs}:{host.env['PATH']}"
    (host.home / ".gitconfig").write_text("[protocol]\nallow = always\n")
    before = sorted(str(path) for path in host.home.rglob("*"))
    for store in addresses(trap):
        address = f"{store}#{ID}"
        commands = [
            ("share", str(host.folder), store, "--yes", "--id", "one"),
            ("share", str(host.folder), address, "--dry-run"),
            ("join", address, str(host.home / "new")),
        ]
        if not store.startswith("http"):  # which may be a network agent
            commands += [("status", store), ("show", address), ("doctor", store)]
        for words in commands:
            ran = host.acp(*words)
            said = ran.stdout + ran.stderr
            if words[0] in ("share", "join"):  # to the others, some of these are names of files
                assert ran.returncode == 2, (words, ran)
                assert " is refused: " in ran.stderr or store.startswith("-"), (words, ran)
            assert "Traceback" not in said and "secret" not in said, (words, ran)
            assert "\x1b" not in said and "\u202e" not in said, words
            assert sorted(str(path) for path in host.home.rglob("*")) == before, words
    assert not trap.exists()


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("120000 blob {blob}\tproposal.md", "proposal.md, a symbolic link: refused"),
        ("160000 commit {commit}\tsub", "sub, another repository: refused"),
        ("040000 tree {tree}\t.git", ".git"),
    ],
)
def test_a_tree_that_no_folder_is_made_of_is_written_nowhere(
    entry: str, why: str, tmp_path: Path
) -> None:
    store, (a,) = shared(tmp_path, "a")
    blob = git("-C", str(store), "hash-object", "-w", "--stdin", given=b"/etc/passwd")
    sub = git("-C", str(store), "mktree", given=f"100644 blob {blob}\tconfig\n".encode())
    name = entry.rpartition("\t")[2]
    listed = [
        each
        for each in git("-C", str(store), "ls-tree", REF).splitlines()
        if not each.endswith(f"\t{name}")
    ]
    listed.append(entry.format(blob=blob, tree=sub, commit="1" * 40))
    given = "".join(f"{each}\n" for each in listed).encode()
    tree = git("-C", str(store), "mktree", "--missing", given=given)
    made = git("-C", str(store), "commit-tree", tree, "-p", REF, "-m", "planted")
    git("-C", str(store), "update-ref", REF, made)
    before = {path: path.read_bytes() for path in a.folder.rglob("*") if path.is_file()}
    victim = Host("v", tmp_path)
    for ran in (
        a.acp_here("sync", "--once"),
        a.append("writer", "blocked", "--reply-to", "1"),
        victim.acp("join", f"{store}#{ID}", str(victim.folder)),
    ):
        assert ran.returncode in (6, 8) and why in ran.stderr, ran
    assert {path: path.read_bytes() for path in before} == before
    assert not victim.folder.exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", [*HOSTILE, "esc\x1b[31m.md", "/etc/cron.d/x"])
def test_a_name_that_somebody_wrote_into_a_database_is_written_nowhere(
    name: str, database: str, tmp_path: Path
) -> None:
    a, victim = Host("a", tmp_path), Host("v", tmp_path)
    started(a)
    a.done_here("share", database, "--id", ID, "--yes")
    with open_engine(parse(f"{database}#{ID}")) as engine:
        there = engine.read(None)
        protocol = json.loads(there.protocol)
        listed = {"dir": ".", "supporting": [{"type": "adr", "file": name}], "attachments": [{"file": name}]}  # fmt: skip
        protocol |= {"schemaVersion": 2, "deliverables": listed}
        engine.publish(there.tip, _change(there.added, json.dumps(protocol).encode(), {name: b"planted\n"}))  # fmt: skip
    for host, words in ((a, ("sync", str(a.folder), "--once")),
                        (victim, ("join", f"{database}#{ID}", str(victim.folder)))):  # fmt: skip
        ran = host.acp(*words)
        assert "Traceback" not in ran.stderr and "\x1b" not in ran.stderr + ran.stdout
        assert ran.returncode in (0, 2, 8), ran
        planted = [p for p in tmp_path.rglob("*") if p.is_file() and p.read_bytes() == b"planted\n"]
        assert planted == [], (ran.stdout, ran.stderr)
    assert not Path("/etc/cron.d/x").exists()


@pytest.mark.slow
def test_what_others_say_of_themselves_is_text(store: str, tmp_path: Path) -> None:
    """A host, a lease and a request whose every word is markup, an order to the terminal, or hides something."""
    a, b = Host("a", tmp_path), Host("b", tmp_path)
    started(a)
    a.done_here("share", store, "--id", ID, "--yes")
    b.done("join", f"{store}#{ID}", str(b.folder))
    proposed(a)
    with open_engine(parse(f"{store}#{ID}")) as engine:
        there = engine.read(None)
        lease = Lease("writer", EVIL, EVIL, EVIL, 9, EVIL, EVIL)
        change = _change(there.added, there.protocol, {})
        engine.publish(there.tip, change._replace(leases={"writer": lease}))
        people: dict[str, dict[str, object]] = {
            EVIL: {"pid": EVIL, "permissions": [{"id": EVIL}]},
            "reader": {"pid": 1, "since": EVIL},
        }
        engine.tell(HostState("c", EVIL, EVIL, EVIL, people, EVIL, EVIL))
    b.sync()
    ran = b.append("writer", "blocked", "--reply-to", "2")
    assert ran.returncode == 7 and is_text(ran.stderr) and shows(ran.stderr), ran
    folder = str(b.folder)
    for words in (
        ("hosts", folder),
        ("status", folder),
        ("show", folder),
        ("ps", folder),
        ("why", folder),
        ("status", store),
    ):
        for more in ((), ("--json",)):
            ran = b.acp(*words, *more)
            assert "Traceback" not in ran.stderr, (words, ran)
            assert is_text(ran.stdout + ran.stderr), (words, more)
    assert shows(b.done("hosts", folder))


def _change(log: bytes, protocol: bytes, documents: dict[str, bytes | None]) -> Change:
    """What somebody writes who has the same rights in the store as acp."""
    seq = len(log.splitlines())
    return Change(log=log, line=None, seq=seq, protocol=protocol, documents=documents)
