"""One account conducts a run: agents are not started a second time, and decisions stand."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.cli.main import run as acp_main
from acp_core.files import claims
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.collaboration import open_workspaces
from acp_core.protocols.workspaces.schema import DISPATCH_ACT, EVERY_ACT
from tests.agents.support import end_what_runs, is_gone, wait_for
from tests.protocols.workspaces.running import acp, begun, prepare, program, states


def dispatched(tmp_path: Path) -> tuple[Path, list[str]]:
    """A run whose agent ann is at work for long."""
    root = prepare(tmp_path / "run", "ann", "ben")
    words = program(tmp_path / "own", ann="silent", ben="silent")
    ended = acp("dispatch", root, "--limit", "1", "--detach", "--", *words)
    assert ended.code == 0, ended.text
    wait_for(lambda: begun(tmp_path / "own") == ["ann"], "ann to begin")
    wait_for(lambda: claims.seen(root, claims.of_participant("ann")).child, "it to be noted")
    return root, words


@pytest.mark.slow
def test_a_second_account_is_refused_with_the_name_of_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, words = dispatched(tmp_path)
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    ended = acp("dispatch", root, "--detach", "--", *words)
    account, host = claims.account(os.getuid()), claims.host()
    pid = claims.seen(root, "loops/ann").owner.process.pid  # type: ignore[union-attr]
    assert ended.code == 2
    assert f"{account} plays ann (pid {pid} on {host} since" in ended.text, ended.text
    assert begun(tmp_path / "own") == ["ann"]


@pytest.mark.slow
def test_that_another_account_has_agents_at_work_is_in_the_way_of_dispatching_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, _ = dispatched(tmp_path)
    shown = open_workspaces(str(root))
    assert shown.refresh(utc_now()).obstacles == ()
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    wait_for(lambda: open_workspaces(str(root)).refresh(utc_now()).obstacles, "it to be seen")
    (obstacle,) = open_workspaces(str(root)).refresh(utc_now()).obstacles
    assert obstacle.sentence.startswith(f"{claims.account(os.getuid())} plays ann (pid ")
    assert EVERY_ACT - obstacle.refuses == {DISPATCH_ACT} and not obstacle.wanted
    assert acp_main(["why", str(root)], lambda paths, settings: 99) in (0, 1)
    said = " ".join(capsys.readouterr().out.split())
    assert "plays ann (pid " in said and "take over after it has ended" in said, said


def test_a_killed_watcher_and_a_lost_state_folder_start_no_agent_twice(tmp_path: Path) -> None:
    root, words = dispatched(tmp_path)
    (watcher,) = [each for each in registry.runners(str(root)) if each.participant == "ann"]
    os.kill(watcher.pid, signal.SIGKILL)
    wait_for(lambda: is_gone(watcher.pid), "the watcher to be gone")
    shutil.rmtree(os.environ["ACP_STATE"])
    ended = acp("dispatch", root, "--limit", "1", "--detach", "--", *words)
    child = claims.seen(root, "loops/ann").child
    assert child is not None and f"(process {child.pid}) is still running" in ended.text, ended.text
    assert begun(tmp_path / "own") == ["ann"]
    os.killpg(child.pid, signal.SIGKILL)


def test_a_decision_of_another_account_stands_and_no_watcher_undoes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, _ = dispatched(tmp_path)
    mine = os.environ["ACP_STATE"]
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    stopped = registry.stop(str(root), "ann", grace=5)
    assert stopped.done, stopped
    monkeypatch.setenv("ACP_STATE", mine)
    wait_for(lambda: states(root)["ann"] in ("missing", "lost"), "the end to be noted")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    ended = acp("triage", root, "ann", "gap", "--reason", "not needed")
    assert ended.code == 0, ended.text
    monkeypatch.setenv("ACP_STATE", mine)
    wait_for(
        lambda: (
            not any(each.alive for each in registry.runners(str(root)) if each.participant == "ann")
        ),
        "nobody to watch ann",
    )
    assert "gap" in acp("status", root).text
    assert begun(tmp_path / "own").count("ann") == 1


def test_what_a_test_leaves_running_is_ended_after_it(tmp_path: Path) -> None:
    root, _ = dispatched(tmp_path)
    claimed = claims.seen(root, "loops/ann")
    assert claimed.owner is not None and claimed.child is not None
    pids = (claimed.owner.process.pid, claimed.child.pid)
    assert not any(map(is_gone, pids))
    end_what_runs(Path(os.environ["ACP_STATE"]))
    wait_for(lambda: all(map(is_gone, pids)), "the watcher and its program to be gone")
