"""What people read where a store, its address or its owner stands in the way, with the exit code."""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
from pathlib import Path

import pytest

from acp_core.stores.address import parse
from acp_core.stores.engine import HostState
from acp_core.stores.git import GitEngine
from tests.bench.collaborations import of_length
from tests.stores.hosts import ID, Host, git, repository, shared, started
from tests.stores.test_shared_folder import proposed, script
from tests.support import forked
from tests.support.waiting import until

REF = f"refs/heads/acp/{ID}/log"
PROPOSING = ("writer", "proposal_submitted", "--reply-to", "1")


@pytest.mark.slow
def test_what_is_said_before_a_folder_is_shared(tmp_path: Path) -> None:
    host, store = Host("a", tmp_path), repository(tmp_path)
    host.folder = of_length(host.home / "c", 5_001)
    words = ("share", str(host.folder), str(store))
    said = host.done(*words, "--dry-run")
    assert "leaves this machine: " in said and "events.jsonl" in said
    assert "more than 5000 events: `acp continue` makes a smaller collaboration" in said
    assert (
        "a script that appends to events.jsonl without acp promises nothing to the others" in said
    )
    host.write("README.md", "x" * (17 << 20))
    ran = host.acp(*words, "--yes")
    assert ran.returncode == 2 and "README.md is larger than 16 MiB" in ran.stderr
    assert not git("-C", str(store), "for-each-ref")


@pytest.mark.parametrize("url", ["ext::sh", "git://host/r", "http://host/r"])
def test_an_address_of_another_kind(url: str, tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    started(host)
    ran = host.acp_here("share", url, "--yes")
    assert ran.returncode == 2
    assert "is refused: only ssh, https, file paths and PostgreSQL" in ran.stderr
    assert not (host.folder / ".acp" / "share.json").exists()


def test_an_address_with_two_names(tmp_path: Path) -> None:
    host, store = Host("a", tmp_path), repository(tmp_path)
    started(host)
    ran = host.acp_here("share", f"{store}#one", "--id", "two", "--yes")
    assert ran.returncode == 2
    assert "the address ends in #one, and --id says two: give one" in ran.stderr
    same = host.acp_here("share", f"{store}#one", "--id", "one", "--dry-run")
    assert same.returncode == 0, same.stderr


def test_a_branch_that_is_protected(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    hook = store / "hooks" / "update"
    hook.write_text("#!/bin/sh\necho ask the owner >&2\nexit 1\n", encoding="utf-8")
    hook.chmod(0o755)
    ran = a.append(*PROPOSING)
    assert ran.returncode == 8
    assert "the store refused it: " in ran.stderr and "ask the owner" in ran.stderr
    assert "(a protected branch? acp writes to refs/heads/acp/)" in ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another account")
def test_a_repository_of_another_account(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    for path in (store, *store.rglob("*")):
        os.chown(path, 54_001, 54_001)
    ran = a.append(*PROPOSING)
    assert ran.returncode == 8
    assert "the repository belongs to " in ran.stderr
    assert "git does not trust it, and its hooks would run as you; reach it by ssh" in ran.stderr
    assert "or add it to safe.directory" in ran.stderr


@pytest.mark.slow
def test_a_lock_that_was_left_in_the_store(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    (store / f"{REF}.lock").touch()
    ran = a.append(*PROPOSING)
    assert ran.returncode == 3
    assert re.search(
        r"not appended: a lock was left in the store \(.*log\.lock\): its owner", ran.stderr
    )
    assert len(a.log()) == 1


def test_a_history_that_was_rewritten(tmp_path: Path) -> None:
    store, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    b.sync()
    lines = git("-C", str(store), "cat-file", "-p", f"{REF}:events.jsonl")
    blob = git("-C", str(store), "hash-object", "-w", "--stdin",
               given=lines.replace("proposal_submitted by", "something else by").encode() + b"\n")  # fmt: skip
    listed = git("-C", str(store), "ls-tree", REF).splitlines()
    tree = "\n".join(
        f"100644 blob {blob}\tevents.jsonl" if each.endswith("\tevents.jsonl") else each
        for each in listed
    )
    made = git("-C", str(store), "mktree", given=f"{tree}\n".encode())
    git("-C", str(store), "update-ref", REF, git("-C", str(store), "commit-tree", made, "-m", "x"))
    before = b.files()
    ran = b.acp_here("sync", "--once")
    assert ran.returncode == 9
    assert "the shared history was rewritten: what came up to seq 2 here is not what" in ran.stderr
    assert b.files() == before


def test_a_store_that_is_away(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    store.rename(tmp_path / "away.git")
    ran = a.append(*PROPOSING)
    assert ran.returncode == 6
    assert f"not appended: the store file://{store} cannot be reached (" in ran.stderr
    assert "Your documents are untouched; run the same command again" in ran.stderr
    for words in (("ask", str(a.folder), "b", "stop", "reader"), ("hosts", str(a.folder))):
        ran = a.acp(*words)
        assert ran.returncode == 6 and " cannot be reached (" in ran.stderr


def test_a_participant_that_acts_elsewhere(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    ran = b.append("writer", "blocked", "--reply-to", "2")
    assert ran.returncode == 7
    told = r"writer acts on host a \(\w+\) since \d\d:\d\d UTC; `--take` moves it here"
    assert re.search(told, ran.stderr)
    assert "writer acts here" in b.sync("--take", "writer")
    assert b.appended("writer", "blocked", "--reply-to", "2") == 3
    ran = b.acp_here("sync", "--take", "nobody")
    assert ran.returncode == 2 and "'nobody' is not listed in protocol.json" in ran.stderr


def test_a_host_that_is_silent(tmp_path: Path) -> None:
    """Taking over is advised after half an hour without a word, on the clock of who looks."""
    store, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    with GitEngine(parse(f"{store}#{ID}")) as engine:
        engine.tell(HostState("a", "anna", "boot", "1"))
    ran = b.append("writer", "blocked", "--reply-to", "2")
    assert ran.returncode == 7 and "taking over" not in ran.stderr
    (place,) = (b.home / "cache" / "heard").iterdir()
    noted = json.loads(place.read_bytes())
    silent = "a was not heard of for 31 min: taking over is advised"
    for seconds, said in ((1_700, False), (1_860, True)):
        for host in noted["hosts"].values():
            host[1] = noted["looked"] - seconds
        place.write_text(json.dumps(noted))
        ran = b.append("writer", "blocked", "--reply-to", "2")
        assert ran.returncode == 7 and (silent in ran.stderr) is said
    assert f"{silent} (`acp sync --take writer`)" in b.done_here("hosts")
    noted["boot"] = "another start of this machine"
    place.write_text(json.dumps(noted))
    assert "taking over" not in b.append("writer", "blocked", "--reply-to", "2").stderr


def test_a_folder_that_a_newer_acp_shares(tmp_path: Path) -> None:
    """Every command that would ask the store refuses; what is here can be read."""
    _, (a,) = shared(tmp_path, "a")
    place, folder = a.folder / ".acp" / "share.json", str(a.folder)
    newer = json.loads(place.read_bytes()) | {"schema": "acp.share/2", "url": ["a", "b"]}
    place.write_text(json.dumps(newer))
    before = {path: path.read_bytes() for path in a.folder.rglob("*") if path.is_file()}
    said = "the folder was shared by a newer acp (format 2, this one knows 1): update acp on this machine"
    for words in (
        a.event(*PROPOSING), ("sync", folder, "--once"), ("hosts", folder), ("unshare", folder, "--yes"),
        ("ask", folder, "b", "stop", "reader"), ("next", "--folder", folder, "--participant", "writer"),
        ("continue", folder, "--to", str(a.home / "c-2"), "--answer", "x"),
        ("wait", "--folder", folder, "--participant", "writer"), ("sync", folder),
    ):  # fmt: skip
        ran = a.acp(*words)
        assert said in ran.stdout + ran.stderr, (words, ran)
        assert ran.returncode == 2 and "Traceback" not in ran.stderr, (words, ran)
    assert said in " ".join(a.acp("doctor", folder).stdout.split())  # it may be wrapped
    why = " ".join(a.acp("why", folder).stdout.split())
    assert "this acp is too old for the store of this folder" in why and said in why
    (told,) = json.loads(a.done("status", folder, "--json"))["collaborations"]
    assert told["phase"] == "drafting" and said in json.dumps(told)
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_a_clock_that_is_ahead(tmp_path: Path) -> None:
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    b.sync()
    text = b.read("review.md").decode()
    b.write("review.md", f"{text}\n## 2090-01-01T00:00:00Z - reader - seq 3\n\nBy a script.\n")
    script(b, at="2090-01-01T00:00:00Z")
    b.sync()
    a.write("proposal.md", "# Revised\n")
    ran = a.append("writer", "proposal_revised", "--reply-to", "3")
    assert ran.returncode == 0
    assert (
        "the last event is dated 2090-01-01T00:00:00Z by host b, ahead of this machine's clock"
        in ran.stderr
    )


def test_deliverables_that_are_not_here(tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    started(host)
    protocol = json.loads(host.read("protocol.json"))
    protocol |= {
        "schemaVersion": 2,
        "repoRoot": "../elsewhere",
        "deliverables": {"mode": "external"},
    }
    host.write("protocol.json", json.dumps(protocol))
    ran = host.acp_here("share", str(repository(tmp_path)), "--yes")
    assert ran.returncode == 2
    assert "the deliverables are in a repository that is not on this host (" in ran.stderr


def test_what_was_put_back_is_shared_again(tmp_path: Path) -> None:
    """The way out that the message names: from the host that has the most, under another name."""
    store, (a, b) = shared(tmp_path, "a", "b")
    first = git("-C", str(store), "rev-parse", REF)
    proposed(a)
    git("-C", str(store), "update-ref", REF, first)
    ran = a.acp_here("sync", "--once")
    assert ran.returncode == 9
    assert "there, `acp unshare` and `acp share --id NAME` share it again" in ran.stderr
    a.done_here("unshare", "--yes")
    a.done_here("share", str(store), "--id", "checkout-2", "--yes")
    b.folder = b.home / "c-2"
    b.done("join", f"{store}#checkout-2", str(b.folder))
    assert b.files() == a.files() and len(b.log()) == 2
    assert b.appended("reader", "review_submitted", "--reply-to", "2", "--review", "Fine.") == 3


def test_files_that_are_executable_or_not_shared(tmp_path: Path) -> None:
    """Somebody who can push makes a document a program, and puts a file beside it."""
    store, (a,) = shared(tmp_path, "a")
    blob = git("-C", str(store), "hash-object", "-w", "--stdin", given=b"#!/bin/sh\n")
    listed = git("-C", str(store), "ls-tree", "-r", REF).splitlines()
    kept = [each for each in listed if not each.endswith("\tproposal.md") and "/" not in each]
    kept += [f"100755 blob {blob}\tproposal.md", f"100755 blob {blob}\tinstall.sh"]
    tree = git("-C", str(store), "mktree", given="".join(f"{each}\n" for each in kept).encode())
    made = git("-C", str(store), "commit-tree", tree, "-p", REF, "-m", "planted")
    git("-C", str(store), "update-ref", REF, made)
    said = a.sync()
    assert "proposal.md is executable in the store: it is not here" in said
    assert (
        "the store also holds 1 file(s) that this collaboration does not share: install.sh" in said
    )
    assert a.read("proposal.md") == b"#!/bin/sh\n"
    assert not (a.folder / "proposal.md").stat().st_mode & 0o111
    assert not (a.folder / "install.sh").exists()


def test_a_repository_of_too_many(tmp_path: Path) -> None:
    store, host = repository(tmp_path), Host("a", tmp_path)
    tree = git("-C", str(store), "mktree")
    made = git("-C", str(store), "commit-tree", tree, "-m", "x")
    listed = "".join(f"create refs/heads/acp/c{number}/log {made}\n" for number in range(500))
    git("-C", str(store), "update-ref", "--stdin", given=listed.encode())
    started(host)
    said = host.done_here("share", str(store), "--id", ID, "--yes")
    assert "The repository holds 501 collaborations, and each push lists them all" in said
    assert "use one repository for each project" in said


@pytest.mark.slow
def test_a_process_that_cannot_reach_its_store(tmp_path: Path) -> None:
    """It goes on, says when it tries again, and does so later each time."""
    store, (a,) = shared(tmp_path, "a")
    process = forked.start(("sync", str(a.folder)), a.home, a.env)
    try:
        assert "synchronizing" in process.line()
        store.rename(tmp_path / "away.git")
        for seconds in (2, 4):
            told = f"cannot be reached (there is no such repository); the next attempt is in {seconds} s"
            until(lambda told=told: told in process.said(), told)
        (tmp_path / "away.git").rename(store)
        proposed(a)
    finally:
        process.end(2)


def test_an_event_that_nobody_takes_up(tmp_path: Path) -> None:
    """The process of ``acp sync`` ends before it looks at what was handed over."""
    _, (a,) = shared(tmp_path, "a")
    a.done_here("sync", "--once")
    run = a.folder / ".acp" / "run"
    (run / "out").mkdir(parents=True, exist_ok=True)
    with (run / "sync.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)

        def ends() -> None:
            until(lambda: list((run / "out").glob("*.json")), "what is handed over")
            fcntl.flock(lock, fcntl.LOCK_UN)

        thread = threading.Thread(target=ends)
        thread.start()
        ran = a.append(*PROPOSING)
        thread.join()
    assert ran.returncode == 6
    assert "not appended: `acp sync` ended before it took the event up" in ran.stderr
    assert not list((run / "out").iterdir()) and len(a.log()) == 1
