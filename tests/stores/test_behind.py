"""What was not looked at now says as of when it is: a folder that nothing keeps as its store has it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from acp_core.protocols.folder.conduct import syncing as process
from acp_core.protocols.folder.read import following
from acp_core.stores.address import parse
from tests.agents.support import wait_for
from tests.stores import mirrors
from tests.stores.hosts import ROOT, Host, git, repository, started
from tests.stores.test_following import kept

HOUR = 3600.0


def joined(tmp_path: Path) -> tuple[Path, Host, Host]:
    """A store, a host that began a collaboration, and one that joined it an hour ago."""
    store = repository(tmp_path)
    a, b = Host("a", tmp_path), Host("b", tmp_path)
    started(a)
    a.done_here("share", f"git+file://{store}", "--id", "c", "--yes")
    b.done("join", f"git+file://{store}#c", str(b.folder))
    long_ago(b)
    return store, a, b


def long_ago(host: Host) -> None:
    at = time.time() - HOUR
    os.utime(host.folder / ".acp" / "base.json", (at, at))


def causes(host: Host) -> list[dict[str, object]]:
    ran = host.acp_here("why", "--json")
    found: list[dict[str, object]] = json.loads(ran.stdout)["snapshot"]["causes"]
    return found


@contextmanager
def syncing(host: Host) -> Iterator[subprocess.Popen[str]]:
    """``acp sync`` in a terminal."""
    process = subprocess.Popen(
        [sys.executable, "-m", "acp_core", "sync", str(host.folder)],
        env=host.env | {"PYTHONPATH": str(ROOT)}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def noted(host: Host) -> dict[str, object]:
    path = host.folder / following.NOTE
    found: dict[str, object] = json.loads(path.read_text()) if path.exists() else {}
    return found


def test_a_folder_that_nothing_follows_says_as_of_when_it_is(tmp_path: Path) -> None:
    _, a, b = joined(tmp_path)
    a.appended("writer", "blocked", "--reply-to", "1")
    sentence = "nothing here follows its store"
    for words in (("status",), ("show",)):
        shown = " ".join(b.done_here(*words).split())
        assert f"as of {time.gmtime().tm_mday} " in shown and sentence in shown, words
    assert "~ stale" in b.done_here("status")
    why = b.done_here("why")  # nobody has to do anything
    assert "Nothing here follows the store of this folder" in why
    assert "Not stuck" not in why and "may pass by itself" not in why
    (found,) = causes(b)
    assert (found["key"], found["wanted"]) == ("store-not-followed", False)
    command = str(found["advice"]).partition("`")[2].partition("`")[0].split()
    assert b.acp(*command[1:], "--once").returncode == 0
    assert b.log()[-1]["event"] == "blocked"
    assert "as of" not in b.done_here("status")  # it was looked at just now
    assert causes(a) == [] or "follow" not in str(causes(a))


def test_a_store_that_is_away_or_refused_is_told_while_somebody_follows_it(tmp_path: Path) -> None:
    store, _, b = joined(tmp_path)
    with syncing(b) as process:
        wait_for(lambda: noted(b).get("reached") is True, "the store to be read")
        assert causes(b) == []
        away = store.rename(tmp_path / "away.git")
        wait_for(lambda: noted(b).get("reached") is False, "the store to be missed")
        (found,) = causes(b)
        assert (found["key"], found["wanted"]) == ("store-silent", False)
        assert "does not answer" in str(found["headline"])
        assert "as of " in b.done_here("status")
        away.rename(store)
        wait_for(lambda: noted(b).get("reached") is True, "the store again")
        assert causes(b) == []
        for ref in git("for-each-ref", "--format=%(refname)", "refs/heads", cwd=store).splitlines():
            forge(store, ref)
        wait_for(lambda: noted(b).get("refused") is True, "the store to be refused")
        (found,) = causes(b)
        assert str(found["key"]).startswith("store-refused:") and found["wanted"]
        assert "Not stuck" not in b.acp_here("why").stdout
        (row,) = json.loads(b.done_here("status", "--json"))["collaborations"]
        assert row["needs"][0]["key"] == found["key"]
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert [each["key"] for each in causes(b)] == [found["key"]]  # it does not pass by itself


def forge(store: Path, ref: str) -> None:
    """Put another history in place of the store's."""
    tree = git("write-tree", cwd=store)
    commit = git("commit-tree", tree, "-m", "forged", cwd=store)
    git("update-ref", ref, commit, cwd=store)


def test_a_mirror_says_that_its_host_was_not_heard_of(tmp_path: Path) -> None:
    """A run whose publisher is dead is as of then, and not running and valid now."""
    store = f"git+file://{repository(tmp_path)}"
    alpha = mirrors.conductor(tmp_path, mirrors.gated_run)
    alpha.done_here("share", store, "--id", mirrors.ID, "--yes")
    beta = mirrors.reader(tmp_path, store)
    with syncing(beta):
        wait_for(lambda: noted(beta).get("reached") is True, "the store to be read")
        assert "as of" not in beta.done_here("status")
        (heard,) = (beta.home / "cache" / "heard").iterdir()
        told = json.loads(heard.read_text())
        assert list(told["hosts"]) == ["alpha"]
        told["hosts"]["alpha"][1] -= HOUR
        heard.write_text(json.dumps(told))
        for words in (("status",), ("show",)):
            shown = " ".join(beta.done_here(*words).split())
            assert "alpha controls this run, and was not heard of since" in shown, words
            assert "as of " in shown
        assert "~ stale" in beta.done_here("status") or "needs you" in beta.done_here("status")
    long_ago(beta)
    shown = " ".join(beta.done_here("status").split())
    assert "nothing here follows its store" in shown


def test_the_process_of_a_store_notes_that_it_is_away_where_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _, b = joined(tmp_path)
    for name in ("HOME", "ACP_CONFIG", "ACP_STATE", "ACP_CACHE"):
        monkeypatch.setenv(name, b.env[name])
    address = f"git+file://{store}"
    wanted = process.note(str(b.folder), parse(address), hold=True)
    with kept(address, monkeypatch):
        wait_for(lambda: noted(b).get("reached") is True, "the store to be read")
        away = store.rename(tmp_path / "away.git")
        wait_for(lambda: noted(b).get("reached") is False, "the store to be missed")
        assert [each["key"] for each in causes(b)] == ["store-silent"]
        away.rename(store)
        wait_for(lambda: noted(b).get("reached") is True, "the store again")
        process.Wanted(wanted).close()
