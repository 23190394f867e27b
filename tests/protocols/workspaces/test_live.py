"""Sub-agents in live sessions: by the real commands, confined to their workspaces."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.agents.loop_directory import place
from acp_core.person import paths
from tests.agents.live.commands import acp, begin, configure, decide, held, record, request
from tests.agents.live.support import left_of
from tests.agents.support import is_gone, wait_for
from tests.protocols.workspaces.running import begun, entries, prepare, program, states


def make(tmp_path: Path, *more: str, behaviour: str = "") -> Path:
    """A run with one agent, whose program is the stand-in."""
    command = shlex.join(program(tmp_path / "own", ann="success"))
    configure(tmp_path / "agent", command, *more, behaviour=behaviour)
    return prepare(tmp_path / "queues", "ann")


def dispatch(root: Path, *more: str) -> tuple[str, ...]:
    return ("workspaces", "dispatch", str(root), "--agent", "mine", *more)


@pytest.mark.slow
def test_a_task_is_done_in_a_live_session_with_one_request_allowed_and_one_rejected(
    tmp_path: Path,
) -> None:
    root = make(tmp_path, behaviour="both")
    assert "(a live session)" in acp(*dispatch(root, "--dry-run")).stdout
    going = begin(*dispatch(root))
    assert decide(root, "reject", "touch").participant == "ann"
    decide(root, "allow", "scripted.py")
    said, _ = going.communicate(timeout=120)
    assert going.returncode == 0, said
    assert states(root) == {"ann": "success"}
    assert not (tmp_path / "agent" / "asked").exists()
    assert [state for state, _ in record()] == ["reject", "allow"]
    (returned,) = (root / "agent-workspaces/.coord/returns").iterdir()
    assert '"status": "success"' in returned.read_text()
    loop = registry.find(str(root), "ann")
    assert loop is not None and loop.shown.live == "yes"
    assert left_of(place(str(root), "ann")) == []


@pytest.mark.slow
def test_a_cancelled_task_waits_for_a_person_who_has_it_done_again(tmp_path: Path) -> None:
    root = make(tmp_path, behaviour="hang")
    going = begin(*dispatch(root, "--permissions", "all"))

    def at_work() -> bool:
        loop = registry.find(str(root), "ann")
        return loop is not None and loop.run is not None and bool(loop.run.tool)

    wait_for(at_work, "her command", 120)
    told = acp("nudge", root, "ann", "Name the sources")
    assert told.stdout == "ann: the agent got the message.\n", told.stderr
    assert acp("cancel", root, "ann").returncode == 0
    going.communicate(timeout=120)
    assert "cancelled by" in entries(root)["ann"]["exit"]
    assert left_of(place(str(root), "ann")) == []
    assert begun(tmp_path / "own") == []
    assert "rerun" in acp("why", root).stdout
    again = acp("workspaces", "rerun", root, "ann")
    assert again.returncode == 0, again.stderr
    acp(*dispatch(root, "--permissions", "all"))
    wait_for(lambda: states(root) == {"ann": "success"}, "what she wrote", 120)
    assert begun(tmp_path / "own") == ["ann"]


@pytest.mark.slow
def test_a_usage_limit_is_waited_for_in_the_same_attempt(tmp_path: Path) -> None:
    root = make(tmp_path, behaviour="limit")
    ended = acp(*dispatch(root, "--permissions", "all"))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert states(root) == {"ann": "success"}
    assert "the limit resets at" in acp("logs", root, "ann").stdout


@pytest.mark.slow
def test_a_sub_agent_writes_into_its_own_workspace_only(tmp_path: Path) -> None:
    root = tmp_path / "queues"
    own, other = (root / "agent-workspaces" / name for name in ("ann", "shared"))
    paths = (own / "notes.md", other / "x.md", own / "link" / "y.md", root / "z.md")
    make(tmp_path, behaviour="edit=" + ",".join(map(str, paths)))
    other.mkdir(exist_ok=True)
    (own / "link").symlink_to(root)
    going = begin(*dispatch(root, "--permissions", "edits"))
    decide(root, "allow", "scripted.py")
    assert going.wait(120) == 0
    assert [path.exists() for path in paths] == [True, False, False, False]
    assert [state for state, _ in record()] == ["allow", "reject", "reject", "reject", "allow"]
    assert entries(root)["ann"]["outside"] == []


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["conductor", "agent"])
def test_a_task_goes_on_whoever_is_killed(tmp_path: Path, killed: str) -> None:
    root = make(tmp_path)
    acp(*dispatch(root, "--detach"))
    request(root)
    session, watcher = held(root, "ann"), registry.find(str(root), "ann")
    assert session.agent is not None and watcher is not None
    os.kill(watcher.pid if killed == "conductor" else session.agent.pid, signal.SIGKILL)
    if killed == "conductor":
        wait_for(lambda: is_gone(watcher.pid), "the conductor's end")
        assert begin(*dispatch(root, "--detach")).wait(120) == 0
    else:
        wait_for(lambda: held(root, "ann").agent not in (None, session.agent), "its session again")
    decide(root, "allow")
    wait_for(lambda: entries(root)["ann"].get("ended_at"), "the attempt's end")
    assert held(root, "ann").session == session.session
    assert states(root) == {"ann": "success"}
    wait_for(lambda: left_of(place(str(root), "ann")) == [], "everybody's end")
    assert (len(begun(tmp_path / "own")), [state for state, _ in record()].count("allow")) == (1, 1)
    assert left_of(place(str(root), "ann")) == []


@pytest.mark.slow
def test_after_two_crashes_the_program_is_started_without_a_session(tmp_path: Path) -> None:
    root = make(tmp_path, behaviour="crash crash")
    assert acp(*dispatch(root)).returncode == 0
    assert states(root) == {"ann": "success"} and len(begun(tmp_path / "own")) == 1
    loop = registry.find(str(root), "ann")
    assert loop is not None
    assert loop.shown.live == "no: the live session crashed 2 times in this turn"
    log = Path(loop.log).read_text()
    assert "the live session crashed: it is resumed" in log
    assert "the live session crashed again; the agent is started for each attempt" in log


def test_an_agent_that_is_started_for_each_attempt_is_told_to_change_its_workspace_only(
    tmp_path: Path,
) -> None:
    root = make(tmp_path)
    spy, told = tmp_path / "spy", tmp_path / "told"
    spy.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {told}\nexec {tmp_path / "agent/once"}\n')
    spy.chmod(0o755)
    with (paths.config_folder() / "config.toml").open("a") as file:
        file.write(f'[presets.spy]\nprogram = "{spy}"\nargs = ["{{permissions}}"]\n')
        file.write('permissions = "claude"\n')
    ended = acp("workspaces", "dispatch", root, "--agent", "spy")
    assert ended.returncode == 0, ended.stderr
    own, drafts = root / "agent-workspaces/ann", place(str(root), "ann").drafts
    words = ["--permission-mode", "default", "--allowedTools", f"Edit(/{own}/**)"]
    assert told.read_text().splitlines() == [*words, f"Edit(/{drafts}/**)"]


def test_once_starts_the_program_for_the_attempt(tmp_path: Path) -> None:
    root = make(tmp_path)
    assert acp(*dispatch(root, "--once")).returncode == 0
    loop = registry.find(str(root), "ann")
    assert loop is not None and loop.shown.live == "no: --once was given"
