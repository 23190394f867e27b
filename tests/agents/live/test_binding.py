"""A policy binds a program, or does not start it: seen with stand-ins, through acp's commands."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import presets
from acp_core.agents.loop_directory import place
from acp_core.agents.presets import Preset
from acp_core.agents.state import Phase
from acp_core.loops import launch
from acp_core.person import paths
from tests.agents.live.commands import acp
from tests.agents.live.support import words
from tests.agents.support import wait_for
from tests.loops.support import (
    behave,
    command,
    events,
    log,
    make,
    spec,
    start,
    state,
    stop_all,
    wait_for_phase,
)
from tests.protocols.cycle.conducting import ID, WHAT
from tests.protocols.cycle.conducting import path as cycle_file
from tests.protocols.governed import playing

SANDBOXED = {"sandboxed": True, "ask_mode": "workspace-write", "none_mode": "read-only", "asks_not": "it runs commands without asking"}  # fmt: skip


@pytest.fixture(autouse=True)
def ended() -> Any:
    yield
    stop_all()


def settings(text: str) -> None:
    file = paths.config_folder() / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def stand_in(folder: Path, *more: str, behaviour: str = "chat", **fields: Any) -> Preset:
    """An agent that can hold a live session, as codex does; run once, it would take its turn."""
    folder.mkdir(exist_ok=True)
    return replace(
        command(folder, behave(folder, "act"), "--process"),
        title="Codex",
        name="mine",
        live=words(folder, "--shape", "codex", *more, behaviour=behaviour),
        **{**SANDBOXED, **fields},
    )


def asked(folder: Path) -> dict[str, dict[str, Any]]:
    """What acp asked the agent of ``server`` for when its session began, by method."""
    place_of = place(str(folder), "server").folder

    def found() -> dict[str, dict[str, Any]]:
        lines = [each for file in place_of.glob("runs/*.out") for each in file.read_text().splitlines()]  # fmt: skip
        messages = [json.loads(each).get("message", {}) for each in lines]
        return {each["method"]: each.get("params", {}) for each in messages if "method" in each}

    wait_for(lambda: "session/prompt" in found(), "the prompt")
    return found()


def warnings(folder: Path, preset: Preset, **more: Any) -> str:
    return "\n".join(
        launch.plan(spec(folder, "server", **more), preset, ask_version=False).warnings
    )


@pytest.mark.parametrize("chosen", [("--permissions", "none"), ()])
@pytest.mark.parametrize("program", ["own", "claude --once", "aider"])
def test_none_starts_no_program_that_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: tuple[str, ...], program: str
) -> None:
    folder, ran = make(tmp_path / "choice"), tmp_path / "ran"
    for name in ("own", "claude", "aider"):
        (tmp_path / name).write_text(f"#!/bin/sh\n[ $1 = --version ] || echo x >> {ran}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    if not chosen:
        settings('[permissions]\npolicy = "none"\n')
    name, *once = program.split()
    last = ["server", "--", str(tmp_path / name), "x"] if name == "own" else [f"server={name}"]
    ended = acp("launch", folder, *chosen, *once, "--yes", *last)
    assert ended.returncode == 2
    assert "the policy 'none' cannot bind" in ended.stdout + ended.stderr
    assert not ran.exists()
    assert len(events(folder)) == 1


def test_none_starts_no_program_anew_that_can_hold_no_session(tmp_path: Path) -> None:
    folder = make(tmp_path / "choice")
    preset = stand_in(tmp_path / "a", "--protocol", "2")
    start(folder, "server", preset, permissions="none", retries=0)
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert "cannot bind" in log(folder, "server")
    assert len(events(folder)) == 1


def test_none_refuses_a_sandbox_without_a_mode_in_which_nothing_changes(tmp_path: Path) -> None:
    folder = make(tmp_path / "choice")
    preset = stand_in(tmp_path / "a", none_mode="")
    refused = launch.plan(spec(folder, "server", permissions="none"), preset, ask_version=False)
    assert "has no none_mode" in refused.refused


@pytest.mark.parametrize(
    ("policy", "mode", "works_in"),
    [
        ("none", "read-only", "repo"),
        ("ask", "workspace-write", "choice"),
        ("edits", "workspace-write", "choice"),
        ("all", "workspace-write", "repo"),
    ],
)
def test_a_sandbox_is_as_narrow_as_the_policy(
    tmp_path: Path, policy: str, mode: str, works_in: str
) -> None:
    folder, repo = make(tmp_path / "choice"), tmp_path / "repo"
    repo.mkdir()
    preset = stand_in(tmp_path / "a")
    start(folder, "server", preset, permissions=policy, workdir=str(repo), retries=0)
    told = asked(folder)
    assert told["session/set_mode"]["modeId"] == mode
    assert told["session/new"]["cwd"] == str(tmp_path / works_in)
    text = told["session/prompt"]["prompt"][0]["text"]
    assert (f"The files that this is about are in {repo}" in text) is (works_in == "choice")


@pytest.mark.slow
def test_another_policy_begins_another_session(tmp_path: Path) -> None:
    folder = make(tmp_path / "choice")
    preset = stand_in(tmp_path / "a", behaviour="chat chat chat chat")
    settings('[permissions]\npolicy = "edits"\n')
    start(folder, "server", preset, retries=1)
    wait_for(lambda: "mode workspace-write" in log(folder, "server"), "the first attempt")
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    settings('[permissions]\npolicy = "none"\n')
    assert acp("nudge", folder, "server", "again").returncode == 0
    wait_for(lambda: "mode read-only" in log(folder, "server"), "the next attempt")
    assert state(folder, "server").pid


def test_the_preview_says_what_is_not_bound(tmp_path: Path) -> None:
    folder, repo = make(tmp_path / "choice"), tmp_path / "repo"
    repo.mkdir()
    codex = stand_in(tmp_path / "a")
    for policy in ("ask", "edits"):
        said = warnings(folder, codex, permissions=policy, workdir=str(repo))
        assert "runs commands without asking inside its sandbox" in said
        assert f"works in {folder}, and can only read {repo}" in said
    assert "its working folder" in warnings(folder, codex, permissions="all")
    assert "change nothing" in warnings(folder, codex, permissions="none")
    once = command(tmp_path / "a", "x")
    assert warnings(folder, once) == ""
    assert "hold only in a live session" in warnings(folder, once, permissions="edits")
    settings('[[permissions.rules]]\nverdict = "reject"\ncommand = "touch *"\n')
    assert "rules do not hold there" in warnings(folder, codex)
    assert "hold only in a live session" in warnings(folder, once)


def test_the_doctor_says_what_is_not_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("codex", "codex-acp", "opencode", "aider"):
        (tmp_path / name).write_text("#!/bin/sh\necho 9.9.9\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def said(policy: str) -> dict[str, str]:
        settings(f'[permissions]\npolicy = "{policy}"\n')
        checks = json.loads(acp("doctor", "--json").stdout)["checks"]
        return {each["name"]: each["value"] for each in checks}

    found = said("none")
    assert "its sandbox lets them change nothing" in found["codex live"]
    assert "the policy 'none' cannot bind aider" in found["aider live"]
    found = said("edits")
    assert "without asking inside its sandbox" in found["codex live"]
    assert "the policy 'edits' decides what it asks" in found["opencode live"]
    assert "hold only in a live session" in found["aider live"]


def test_the_known_programs_say_what_they_do_unasked() -> None:
    known = [each for each in presets.bundled().values() if each.live]
    assert [each.name for each in known if not each.asks_not] == []
    assert [each.name for each in known if each.sandboxed and not each.none_mode] == []


def worker(folder: Path) -> tuple[Path, Path]:
    """A program that notes that it ran, and the note."""
    program, ran = folder / "worker", folder / "ran"
    program.write_text(f"#!/bin/sh\necho x >> {ran}\n")
    program.chmod(0o755)
    return program, ran


@pytest.mark.slow
def test_none_starts_no_program_in_the_other_protocols(tmp_path: Path) -> None:
    program, ran = worker(tmp_path)
    why = "the policy 'none' cannot bind worker"
    queues = tmp_path / "queues"
    made = ["--task", "a comparison", "--agent", "ann=Compare the queues."]
    assert acp("workspaces", "init", queues, *made).returncode == 0
    ended = acp("workspaces", "dispatch", queues, "--permissions", "none", "--", program)
    assert ended.returncode == 1 and why in ended.stdout

    project = tmp_path / "project"
    project.mkdir()
    words = ("--cycle", ID, "--folder", project, "--permissions", "none", "--", program)
    assert acp("cycle", "start", WHAT, *words).returncode == 0
    board = cycle_file(project)
    wait_for(lambda: why in board.read_text(), "the refusal")
    assert acp("cycle", "stop", "--folder", project).returncode == 0

    settings('[permissions]\npolicy = "none"\n')
    root = playing.repository(tmp_path / "lamp")
    roles = [word for role in ("pm", "dev", "qa") for word in ("--agent", f"{role}={program}")]
    assert acp("governed", "init", root, "--goal", "Light the hall", *roles).returncode == 0
    ended = acp("governed", "step", root)
    assert ended.returncode == 1 and why in ended.stdout + ended.stderr
    assert not ran.exists()
