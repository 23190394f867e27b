"""What people read where a store, its address or its owner stands in the way, with the exit code."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.stores.hosts import ID, Host, git, repository, shared, started
from tests.stores.test_shared_folder import proposed, script

REF = f"refs/heads/acp/{ID}/log"
PROPOSING = ("writer", "proposal_submitted", "--reply-to", "1")


@pytest.mark.parametrize("url", ["ext::sh", "git://host/r", "http://host/r"])
def test_an_address_of_another_kind(url: str, tmp_path: Path) -> None:
    host = Host("a", tmp_path)
    started(host)
    ran = host.acp("share", str(host.folder), url, "--yes")
    assert ran.returncode == 2
    assert "is refused: only ssh, https, file paths and PostgreSQL" in ran.stderr
    assert not (host.folder / ".acp" / "share.json").exists()


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
    ran = b.acp("sync", str(b.folder), "--once")
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
    ran = b.acp("sync", str(b.folder), "--take", "nobody")
    assert ran.returncode == 2 and "'nobody' is not listed in protocol.json" in ran.stderr


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
        "the last event is dated 2090-01-01T00:00:00Z, ahead of this machine's clock" in ran.stderr
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
    ran = host.acp("share", str(host.folder), str(repository(tmp_path)), "--yes")
    assert ran.returncode == 2
    assert "the deliverables are in a repository that is not on this host (" in ran.stderr
