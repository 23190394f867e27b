"""What an agent tries that writes in a shared folder: to have others share elsewhere, or to speak for them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_core.protocols.folder.conduct import turns
from acp_core.protocols.folder.read import following
from acp_core.protocols.folder.write import handover
from tests.stores import mirrors
from tests.stores.hosts import ID, Host, git, repository, shared, started
from tests.stores.test_shared_folder import REF, proposed, reviewed, together
from tests.support import forked
from tests.support.waiting import until

PROPOSING = ("writer", "proposal_submitted", "--reply-to", "1")
EVIL = "ext::sh -c touch% trapped"


def all_commands(host: Host) -> Iterator[tuple[str, ...]]:
    """Every command that would ask the store of a folder."""
    folder = str(host.folder)
    yield host.event(*PROPOSING)
    yield "sync", folder, "--once"
    yield "sync", folder, "--take", "writer"
    yield ("sync", folder)
    yield "hosts", folder
    yield "ask", folder, "b", "stop", "reader"
    yield "next", "--folder", folder, "--participant", "writer"
    yield "wait", "--folder", folder, "--participant", "writer"
    yield "continue", folder, "--to", str(host.home / "c-2"), "--answer", "x"


@pytest.mark.slow
def test_who_has_the_folder_name_another_store_reaches_none(tmp_path: Path) -> None:
    store, (a, b) = shared(tmp_path, "a", "b")
    place = a.folder / ".acp" / "share.json"
    other = repository(a.home)
    before = git("-C", str(store), "for-each-ref")
    for url in (f"{other}#{ID}", f"{EVIL}#{ID}"):
        place.write_text(json.dumps(json.loads(place.read_text()) | {"url": url}))
        for words in all_commands(a):
            ran = a.acp(*words)
            assert ran.returncode == 2, (words, ran)
            assert "another program changed it" in ran.stderr or "cannot be read" in ran.stderr
    assert git("-C", str(store), "for-each-ref") == before
    assert not git("-C", str(other), "for-each-ref") and not list(tmp_path.rglob("trapped"))
    ran = a.acp("join", f"{other}#{ID}", str(a.folder))
    assert ran.returncode == 2 and f"`acp unshare {a.folder}` ends that first" in ran.stderr
    a.done("join", f"{store}#{ID}", str(a.folder))
    proposed(a)
    together(a, b)


@pytest.mark.slow
@pytest.mark.parametrize("removed", [".acp/share.json", ".acp"])
def test_who_removes_the_name_of_the_store_makes_the_folder_no_plain_one(
    removed: str, tmp_path: Path
) -> None:
    """An append would say 0 of an event that no other host will ever see."""
    store, (a, b) = shared(tmp_path, "a", "b")
    path = a.folder / removed
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    for words in all_commands(a):
        ran = a.acp(*words)
        assert ran.returncode == 2, (words, ran)
        assert (
            f".acp/share.json is gone: another program removed it; `acp join git+file://{store}#{ID}"
            in ran.stderr
        )
    assert len(a.log()) == 1
    why = " ".join(a.acp_here("why").stdout.split())
    assert "another program changed what names the store of this folder" in why
    (told,) = json.loads(a.done_here("status", "--json"))["collaborations"]
    assert told["phase"] == "drafting" and ".acp/share.json is gone" in json.dumps(told)
    a.done("join", f"{store}#{ID}", str(a.folder))
    assert "another program" not in a.acp_here("why").stdout
    proposed(a)
    together(a, b)
    (a.folder / ".acp" / "share.json").unlink()
    a.done_here("unshare", "--yes")
    a.appended("writer", "blocked", "--reply-to", "2")
    b.sync()
    assert len(a.log()) == 3 and len(b.log()) == 2


@pytest.mark.slow
def test_the_way_out_that_is_named_works_for_a_mirror(tmp_path: Path) -> None:
    """On the host that controls the run, and on one that looks on."""
    store = f"git+file://{repository(tmp_path)}"
    alpha = mirrors.conductor(tmp_path, mirrors.gated_run)
    alpha.done_here("share", store, "--id", mirrors.ID, "--yes")
    try:
        beta = mirrors.reader(tmp_path, store)
        for host in (alpha, beta):
            (host.folder / ".acp" / "share.json").unlink()
            ran = host.acp_here("sync", "--once")
            assert ran.returncode == 2 and "is gone: another program removed it" in ran.stderr
            named = re.search(r"`acp ((?:share|join) [^`]*)`", ran.stderr)
            assert named, ran.stderr
            host.done(*shlex.split(named[1]), *(["--yes"] if host is alpha else []))
            host.sync()
        mirrors.follow(alpha, beta)
    finally:
        alpha.acp_here("unshare", "--yes")


IMPOSTOR = """
import fcntl, json, os, sys, time
folder, entry = sys.argv[1:]
run = os.path.join(folder, ".acp", "run")
lock = open(os.path.join(run, "sync.lock"), "r+")
fcntl.flock(lock, fcntl.LOCK_EX)
print("locked", flush=True)
out = os.path.join(run, "out")
while True:
    for name in os.listdir(out):
        if name.endswith(".json"):
            done = os.path.join(out, name[:-5])
            os.rename(os.path.join(out, name), done + ".taken")
            answer = {"entry": json.loads(entry), "phase": "reviewing", "waiting": [], "existing": False, "warnings": []}
            with open(done + ".new", "w") as file:
                json.dump(answer, file)
            os.rename(done + ".new", done + ".done")
    time.sleep(0.01)
"""


@contextlib.contextmanager
def syncing(host: Host) -> Iterator[None]:
    """The process of ``acp sync`` on a host."""
    process = forked.start(("sync", str(host.folder)), host.home, host.env)
    try:
        assert "synchronizing" in process.line()
        yield
    finally:
        process.end(2)


def test_who_answers_in_place_of_the_process_is_not_believed(tmp_path: Path) -> None:
    store, (a,) = shared(tmp_path, "a")
    a.write("proposal.md", "# P\n")
    with syncing(a):
        seq = a.appended(*PROPOSING)
        assert list((a.home / "state" / "answers").iterdir()), "handed over"
    before = git("-C", str(store), "rev-parse", REF)
    entry = json.dumps(a.log()[-1] | {"seq": 3, "sender": "writer"})
    words = [sys.executable, "-c", IMPOSTOR, str(a.folder), entry]
    impostor = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert impostor.stdout is not None and impostor.stdout.readline() == "locked\n"
        assert following.is_synced(str(a.folder))
        ran = a.append("writer", "blocked", "--reply-to", str(seq))
        assert ran.returncode == 6, ran
        assert "another program answered in place of `acp sync`" in ran.stderr
    finally:
        impostor.kill()
        impostor.communicate()
    assert git("-C", str(store), "rev-parse", REF) == before
    assert a.appended("writer", "blocked", "--reply-to", str(seq)) == seq + 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another account")
def test_what_another_account_hands_over_is_not_appended(tmp_path: Path) -> None:
    """Who asks is the owner of the file, whatever stands in it; a second name of a file proves nothing."""
    _, (a,) = shared(tmp_path, "a")
    value = {"participant": "writer", "event": "blocked", "summary": "Stop", "reply_to": 1}
    mine = a.home / "mine.json"
    mine.write_text(json.dumps(value))
    with syncing(a):
        out = a.folder / handover.OUT
        made = out / "other"
        made.write_text(json.dumps(value))
        os.chown(made, 54_001, 54_001)
        made.rename(out / f"{1:024x}.json")
        os.link(mine, out / f"{2:024x}.json")
        (out / f"{3:024x}.json").symlink_to(mine)
        for number in (1, 2, 3):
            done = out / f"{number:024x}.done"
            until(done.exists, "the answer")
            assert "another account asks" in done.read_text()
    assert len(a.log()) == 1


@pytest.mark.parametrize(
    "store", ["git", pytest.param("postgres", marks=pytest.mark.slow)], indirect=True
)
def test_forged_records_move_nobody(store: str, tmp_path: Path) -> None:
    """Leases and the manifest in a folder inform; the store decides."""
    a, b = Host("a", tmp_path), Host("b", tmp_path)
    started(a)
    a.done_here("share", store, "--id", ID, "--yes")
    b.done("join", f"{store}#{ID}", str(b.folder))
    proposed(a)
    b.sync()
    lease = b.folder / ".acp" / "leases" / "writer.json"
    value = json.loads(lease.read_text())
    assert value["host"] == "a"
    lease.write_text(json.dumps(value | {"host": "b", "epoch": value["epoch"] + 7}))
    ran = b.append("writer", "blocked", "--reply-to", "2")
    assert ran.returncode == 7 and "writer acts on host a" in ran.stderr
    assert json.loads(lease.read_text()) == value, "put right"
    place = b.folder / ".acp" / "base.json"
    base = json.loads(place.read_text())
    tip = base["tip"]
    for forged in (
        tip | {"id": "0" * 40},
        tip | {"id": "--output=x"},
        tip | {"seq": 99, "size": tip["size"] + 5},
        tip | {"sha256": "0" * 64},
        tip | {"id": "0" * 40, "seq": 9, "sha256": "0" * 64},
        tip
        | {
            "seq": 1,
            "size": 0,
            "sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        },
    ):
        place.write_text(json.dumps(base | {"tip": forged}))
        b.sync()
        assert json.loads(place.read_text())["tip"] == tip, forged
    reviewed(b, "reader")
    together(a, b)
    assert not (b.folder / ".acp" / "kept").exists()


def test_a_key_that_an_agent_wrote_down_stands_for_no_other_event(tmp_path: Path) -> None:
    """An append would say 0 of an event that no log has."""
    _, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    words = ("writer", "blocked", "--reply-to", "2")
    assert a.at("before publish", *a.event(*words)).returncode == -9
    place = a.folder / ".acp" / "run" / "pending.json"
    noted = json.loads(place.read_text())
    noted["writer"]["key"] = a.log()[-1]["key"]  # of the proposal
    place.write_text(json.dumps(noted))
    assert a.appended(*words) == 3
    assert [each["event"] for each in a.log()[1:]] == ["proposal_submitted", "blocked"]
    together(a, b)


def test_a_note_that_an_agent_wrote_pauses_no_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That the store is away is believed of the store alone."""
    store, (a, b) = shared(tmp_path, "a", "b")
    proposed(a)
    b.sync()
    reviewed(b, "reader")
    for name in ("ACP_CONFIG", "ACP_STATE", "ACP_CACHE"):
        monkeypatch.setenv(name, b.env[name])

    def trouble() -> str:
        return turns.trouble(str(b.folder), "reader", take=True, stays=False)

    for told in ('{"reached": false, "reason": "x"}', "[]", "{"):
        (b.folder / following.NOTE).write_text(told)
        assert trouble() == "", told
    (b.folder / following.NOTE).write_text('{"reached": false}')
    store.rename(tmp_path / "away.git")
    assert "cannot be reached (there is no such repository)" in trouble()


SETTINGS = (
    "CLAUDE.md",
    "AGENTS.md",
    ".mcp.json",
    ".claude/settings.json",
    ".env",
    "sub/GEMINI.md",
    ".git/hooks/post-checkout",
)
EVENT_NAMES = ("CLAUDE.md", "sub/GEMINI.md")


def test_hooks_and_settings_that_an_agent_plants_stay_here_and_run_nowhere(tmp_path: Path) -> None:
    store, host, other = repository(tmp_path), Host("a", tmp_path), Host("b", tmp_path)
    started(host)
    trap = tmp_path / "trapped"
    git("init", "-q", str(host.folder))
    for name in SETTINGS:
        host.write(name, f"#!/bin/sh\ntouch {trap}\n")
    for hook in (
        "pre-push",
        "reference-transaction",
        "post-checkout",
        "post-update",
        "pre-receive",
    ):
        path = host.folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch {trap}\n")
        path.chmod(0o755)
    (host.folder / ".gitattributes").write_text("* filter=x eol=crlf ident\n")
    git("-C", str(host.folder), "config", "filter.x.smudge", f"touch {trap}")
    git("-C", str(host.folder), "config", "core.sshCommand", f"touch {trap}")
    git("-C", str(host.folder), "config", "core.fsmonitor", f"touch {trap}")
    protocol = json.loads(host.read("protocol.json"))
    protocol["deliverables"] = {"dir": ".", "attachments": [{"file": name} for name in SETTINGS]}
    host.write("protocol.json", json.dumps(protocol))
    host.acp_here("share", str(store), "--id", ID, "--yes")
    host.write("proposal.md", "# P\n")
    host.append(*PROPOSING)
    for name in EVENT_NAMES:
        host.append("writer", "blocked", "--reply-to", "2", "--doc", name)
    host.acp_here("sync", "--once")
    listed = git("-C", str(store), "ls-tree", "-r", "--name-only", REF).splitlines()
    assert "proposal.md" in listed
    assert not {*SETTINGS, ".gitattributes"} & set(listed)
    other.done("join", f"{store}#{ID}", str(other.folder))
    assert not [each for each in SETTINGS if (other.folder / each).exists()]
    assert not trap.exists()
