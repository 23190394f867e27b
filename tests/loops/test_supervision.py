"""Loops outlive whoever started them, and the truth about them outlives the loops."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.agents.state import Phase
from acp_core.cli.main import run as acp_main
from acp_core.loops import launch
from acp_core.loops.launch import LaunchError
from tests.agents.support import ROOT, is_gone, wait_for
from tests.loops.support import (
    append,
    as_command,
    behave,
    command,
    events,
    log,
    make,
    spec,
    stand_in,
    start,
    state,
    turns,
    wait_for_phase,
    wait_for_turns,
)


def acp(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run a command of acp in this process: exit code and what it printed."""
    code = acp_main(list(words), lambda paths, settings: 99)
    said = capsys.readouterr()
    return code, said.out, said.err


def listed(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, object]]:
    code, out, _ = acp(capsys, "ps", "--json", *words)
    assert code == 0
    loops: list[dict[str, object]] = json.loads(out)["loops"]
    return loops


# --- killed --------------------------------------------------------------------------------


def test_a_killed_loop_is_shown_as_such_and_nothing_is_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its program goes on, takes its turn, and the next loop counts that and goes on."""
    folder = make(tmp_path / "c")
    go = tmp_path / "go"
    slow = tmp_path / "slow"
    slow.write_text(
        f"#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.02; done\nexec {stand_in(tmp_path, 'agent')}\n"
    )
    slow.chmod(0o755)
    preset = as_command(command(tmp_path), str(slow))
    start(folder, "server", preset)
    wait_for(lambda: state(folder, "server").program_alive, "the program")
    os.kill(state(folder, "server").pid, signal.SIGKILL)
    wait_for(lambda: not state(folder, "server").alive, "the end of the loop")
    (found,) = listed(capsys)
    assert (found["alive"], found["state"], found["phase"]) == (False, "orphaned", "running")
    go.touch()
    wait_for(lambda: len(events(folder)) == 2, "the event")
    wait_for(lambda: not state(folder, "server").program_alive, "the end of the program")
    (found,) = listed(capsys)
    assert (found["alive"], found["state"]) == (False, "died")
    code, out, _ = acp(capsys, "launch", str(folder), "server")
    assert code == 0, out
    (kept,) = wait_for_turns(folder, "server", 1)
    assert kept["took"]
    assert (kept["exit"], kept["attempt"]) == ("ended unseen", 1)
    assert kept["event"] == "proposal_submitted (seq 2)"
    assert wait_for_phase(folder, "server", Phase.WAITING).alive
    assert len(events(folder)) == 2


@pytest.mark.slow
def test_a_program_that_outlives_its_loop_is_taken_over_and_not_started_twice(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "c")
    preset = command(tmp_path, behave(tmp_path, "hang"))
    start(folder, "server", preset)
    wait_for(lambda: "hanging" in state(folder, "server").lines, "the first words")
    before = state(folder, "server").run
    os.kill(state(folder, "server").pid, signal.SIGKILL)
    wait_for(lambda: not state(folder, "server").alive, "the end of the loop")
    start(folder, "server", preset)
    wait_for(lambda: "taking over" in log(folder, "server"), "the new loop")
    after = state(folder, "server")
    assert after.program_alive
    assert after.run is not None and before is not None
    assert after.run.process == before.process
    assert "hanging" in after.lines
    stopped = registry.stop(str(folder), "server", grace=2)
    assert stopped.done
    wait_for(lambda: is_gone(before.process.pid), "the end of the program")


STARTER = """
import sys, time
from acp_core.loops import launch
from acp_core.agents import presets
from tests.loops.support import spec
plan = launch.plan(spec(sys.argv[1], "server"), presets.any_command([sys.argv[2]]), ask_version=False)
launch.start(plan.spec)
print("started", flush=True)
time.sleep(600)
"""


def test_a_loop_outlives_whoever_started_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder), stand_in(tmp_path, "agent")],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=True,
    )
    assert starter.stdout is not None
    assert starter.stdout.readline() == b"started\n"
    os.killpg(starter.pid, signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    wait_for_turns(folder, "server", 1)
    assert wait_for_phase(folder, "server", Phase.WAITING).alive


def test_a_stopped_loop_says_so_and_takes_its_program_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", command(tmp_path, behave(tmp_path, "hang")))
    start(folder, "reader", command(tmp_path))
    wait_for(lambda: state(folder, "server").program_alive, "the program")
    program = state(folder, "server").run
    assert program is not None
    code, out, _ = acp(capsys, "stop", str(folder))
    assert code == 0
    assert sorted(out.splitlines()) == ["reader: stopped", "server: stopped"]
    assert is_gone(program.process.pid)
    assert {each.phase for each in registry.runners()} == {Phase.STOPPED}
    assert not any(each.died for each in registry.runners())
    assert acp(capsys, "stop", str(folder))[1] == "No loops are running.\n"


# --- one loop for each ---------------------------------------------------------------------


@pytest.mark.slow
def test_a_participant_has_one_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(tmp_path / "c")
    start(folder, "reader", command(tmp_path))
    with pytest.raises(LaunchError, match=r"reader already has a loop \(process \d+\)"):
        launch.start(spec(folder, "reader", preset=command(tmp_path).as_table(), workdir="/"))
    (tmp_path / "link").symlink_to(folder)
    program = stand_in(tmp_path, "agent")
    for path in (folder, tmp_path / "link"):
        words = ("--folder", str(path), "--participant", "reader", "--", program)
        code, _, err = acp(capsys, "loop", *words)
        assert code == 2
        assert "reader already has a loop" in err
    assert wait_for_phase(folder, "reader", Phase.WAITING).alive


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["nobody", "--", "sh"],
            "'nobody' is not a participant of c (participants: server, reader, reviewer)",
        ),
        (["reader", "--", "no-such-program"], "no-such-program: not found on PATH"),
        (["reader=nothing"], "unknown preset 'nothing' (available: claude, codex,"),
        (["reader"], "reader never had a loop here"),
        ([], "no loop was started here before"),
        (["--", "sh"], "name the participant for the command after --"),
        (["=claude"], "is not a participant"),
        (["reader", "--workdir", "/no/such/place", "--", "sh"], "/no/such/place: no such folder"),
        (["reader", "--alone", "--append-after-change", "--", "sh"], "exclude each other"),
        (["reader", "--commands", "acp", "--", "sh"], "--commands must name"),
        (["reader", "--pause", "soon", "--", "sh"], "'soon' is not a duration"),
    ],
)
def test_what_cannot_be_started_gets_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    folder = make(tmp_path / "c")
    code, out, err = acp(capsys, "launch", str(folder), *words)
    assert code == 2
    assert message in out + err
    assert "Traceback" not in out + err
    assert registry.runners() == []


def test_a_folder_without_collaboration_has_no_loops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = acp(capsys, "launch", str(tmp_path), "reader", "--", "sh")
    assert code == 2
    assert "not a collaboration" in err
    assert acp(capsys, "ps", str(tmp_path))[1].startswith("No loops are running.")
    assert "has no loops; start some with" in acp(capsys, "logs", str(tmp_path))[2]


# --- the commands --------------------------------------------------------------------------


def test_launch_shows_everything_before_it_starts_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "c")
    stand_in(tmp_path, "claude")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    code, out, _ = acp(capsys, "launch", str(folder), "reader=claude", "--dry-run", "--model", "m1")
    assert code == 0
    assert "reader: claude 9.9.9 m1 (not started)" in out
    assert f"program   {tmp_path / 'claude'}" in out
    assert f"runs in   {folder}" in out
    assert "--permission-mode acceptEdits" in out
    assert "< <prompt>" in out
    assert "Claude Code 9.9.9 is installed; acp was tested with 2.1.329" in out
    assert registry.runners() == []


def test_a_command_of_ones_own_is_not_run_to_ask_its_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may do its work whatever its arguments are; agents that acp knows are asked."""
    folder, program = make(tmp_path / "run"), tmp_path / "work.sh"
    program.write_text(f"#!/bin/sh\necho began >> {tmp_path / 'log'}\n")
    program.chmod(0o755)
    code, out, _ = acp(capsys, "launch", str(folder), "server", "--dry-run", "--", str(program))
    assert code == 0 and str(program) in out
    assert not (tmp_path / "log").exists()


def test_everybody_is_started_seen_and_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "c")
    stand_in(tmp_path, "codex")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    code, out, _ = acp(capsys, "launch", str(folder), "--with", "codex", "--json")
    assert code == 0
    told = json.loads(out)
    assert [each["participant"] for each in told["loops"]] == ["server", "reader", "reviewer"]
    assert all(each["pid"] and each["version"] == "9.9.9" for each in told["loops"])
    wait_for_turns(folder, "server", 1)
    monkeypatch.setenv("COLUMNS", "200")
    _, table, _ = acp(capsys, "ps", "--all")
    assert "server" in table
    assert "1.1k" in table
    _, shown, _ = acp(capsys, "logs", str(folder), "server", "-n", "50")
    assert "event proposal_submitted (seq 2) appeared" in shown
    # Its next turn may have begun: the newest one is shown, to its end once it is there.
    raw = ("logs", str(folder), "server", "--raw")
    wait_for(lambda: '"turn.completed"' in acp(capsys, *raw)[1], "all that a turn printed")


def test_a_loop_in_this_terminal_ends_with_the_collaboration(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    words = ["--interval", "0.05", "--participant", "server", "--folder", str(folder)]
    ended = subprocess.Popen(
        [sys.executable, "-m", "acp_core", "loop", *words, "--", stand_in(tmp_path, "agent")],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_for(lambda: len(events(folder)) == 2, "the proposal")
    append(folder, "reader", "blocked", 2)
    out, _ = ended.communicate(timeout=60)
    assert ended.returncode == 5
    assert "event proposal_submitted (seq 2) appeared" in out
    assert out.splitlines()[-1] == "the loop ends: blocked"


def test_a_loop_in_this_terminal_leaves_when_asked_to(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    words = ["--interval", "0.05", "--pause", "0", "--retries", "1", "--leave"]
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "acp_core", "loop", *words, "--participant", "server"),
            *(
                "--folder",
                str(folder),
                "--",
                stand_in(tmp_path, "agent"),
                behave(tmp_path, "idle idle"),
            ),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert len(turns(folder, "server")) == 2


@pytest.mark.slow
def test_an_interrupted_loop_takes_its_program_with_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "acp_core", "loop", "--participant", "server", "--folder"),
            *(str(folder), "--", stand_in(tmp_path, "agent"), behave(tmp_path, "hang")),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )
    wait_for(
        lambda: registry.find(str(folder), "server") and state(folder, "server").program_alive,
        "the program",
    )
    run = state(folder, "server").run
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    assert run is not None
    assert is_gone(run.process.pid)
    assert state(folder, "server").phase is Phase.STOPPED


def test_a_program_is_looked_for_in_the_folder_of_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "cache")
    here = tmp_path / "shell"
    here.mkdir()
    able = stand_in(here, "able")
    monkeypatch.chdir(here)
    words = ("launch", str(folder), "server", "--dry-run", "--json", "--", "./able")
    code, out, _ = acp(capsys, *words)
    assert code == 0
    assert able in out
    in_folder = stand_in(folder, "other")
    code, out, _ = acp(capsys, *words[:-1], "./other")
    assert code == 0
    assert in_folder in out  # as before: what is not here is looked for where it runs
    code, out, _ = acp(capsys, *words[:-1], "./none")
    assert code == 2
    assert "no such program" in out


def test_own_presets_and_limits_come_from_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "c")
    program = stand_in(tmp_path, "agent")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(
        f'[presets.mine]\nprogram = "{program}"\nargs = ["--prompt-text", "{{prompt}}"]\n'
        'prompt = "argv"\n[loops]\nturn_minutes = 5\nretries = 7\n'
    )
    code, out, err = acp(capsys, "launch", str(folder), "server=mine")
    assert code == 0, out + err
    wait_for_turns(folder, "server", 1)
    (found,) = listed(capsys, str(folder))
    assert (found["preset"], found["attempts"]) == ("mine", 8)
    (tmp_path / "config" / "config.toml").write_text('[presets.mine]\nprogam = "x"\n')
    code, _, err = acp(capsys, "launch", str(folder), "reader=mine")
    assert code == 2
    assert "presets.mine: unknown key 'progam'" in err


def test_a_hostile_program_does_no_harm_to_whoever_looks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "c")
    key = "sk-ant-" + "Zq8" * 10
    hostile = tmp_path / "hostile"
    hostile.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"print('\\x1b]0;title\\x07[@click=app.quit]x[/] \\u202e {key}')\n"
        f"sys.stderr.buffer.write(b'\\xff\\x00\\x1b[2J\\n')\n"
    )
    hostile.chmod(0o755)
    start(folder, "server", as_command(command(tmp_path), str(hostile)), retries=0)
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    monkeypatch.setenv("COLUMNS", "300")
    for words in (("ps",), ("ps", "--json"), ("logs", str(folder)), ("logs", "--raw", str(folder))):
        _, out, _ = acp(capsys, *words)
        assert "app.quit" in out or words == ("ps",)
        for sign in ("\x1b", "\x07", "\u202e", "\x00", key):
            assert sign not in out, words


def test_a_message_needs_a_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make(tmp_path / "c")
    start(folder, "reader", command(tmp_path))
    code, out, _ = acp(capsys, "nudge", str(folder), "reader", "look again")
    assert code == 0
    assert "the loop received the message" in out
    wait_for(lambda: "a person says: look again" in log(folder, "reader"), "the message")
    registry.stop(str(folder), "reader", grace=1)
    assert acp(capsys, "nudge", str(folder), "reader")[0] == 2


def test_the_doctor_names_the_program_that_is_really_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, "codex")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    _, out, _ = acp(capsys, "doctor", "--json")
    checks = {each["name"]: each for each in json.loads(out)["checks"]}
    assert checks["codex"]["value"].startswith(
        f"9.9.9 ({tmp_path / 'codex'}); acp was tested with 0.169.0"
    )
    assert "inside its sandbox" in checks["codex may"]["value"]
    assert "aider may" not in checks
    assert checks["aider"]["state"] == "optional"
    assert checks["aider"]["advice"] == "pip install aider-chat"


def test_the_doctor_says_who_is_logged_in_and_what_each_program_may_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("claude", "codex", "qwen", "aider"):
        stand_in(tmp_path, name)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text(
        '[presets.qwen]\nallow = ["npm test"]\ntested = "9.9.9"\n[permissions]\npolicy = "edits"\n'
    )
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "auth.json").write_text("{}")
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", "a-secret-token")
    _, out, _ = acp(capsys, "doctor", "--json")
    checks = {each["name"]: each for each in json.loads(out)["checks"]}
    assert checks["claude login"]["value"] == "by CLAUDE_CODE_OAUTH_TOKEN"
    assert "a-secret-token" not in out
    assert checks["codex login"]["value"] == f"by {tmp_path / '.codex' / 'auth.json'}"
    assert (checks["qwen login"]["state"], checks["qwen login"]["advice"]) == ("optional", "qwen")
    assert checks["claude"]["value"].endswith("; acp was tested with 2.1.329")
    assert checks["aider may"]["value"].startswith(
        "change the documents of a loop's turn, elsewhere"
    )
    assert "which it considers harmless" in checks["claude may"]["value"]
    assert "run the commands of its prompt" in checks["claude may"]["value"]
    assert checks["claude live"]["value"].startswith(
        "acp starts it for each attempt: claude-agent-acp: "
    )
    assert checks["qwen live"]["value"] == (
        "it stays for many turns, in a live session; the policy 'edits' decides what it asks; it "
        "reads files, and runs commands that only read (such as ls and cat), without asking"
    )
    assert checks["opencode"]["state"] == "optional"
    assert checks["qwen"]["value"].endswith("; acp was tested with it")
    assert checks["qwen may"]["value"].endswith("and those that begin with npm test")


def test_a_change_that_nobody_saw_is_recorded_by_the_next_loop(tmp_path: Path) -> None:
    """aider wrote the proposal while its loop was dead."""
    folder = make(tmp_path / "c")
    go = tmp_path / "go"
    slow = tmp_path / "slow"
    slow.write_text(
        f"#!/bin/sh\nwhile [ ! -e {go} ]; do sleep 0.02; done\nexec {stand_in(tmp_path, 'agent')}\n"
    )
    slow.chmod(0o755)
    preset = replace(as_command(command(tmp_path), str(slow)), append_after_change=True)
    start(folder, "server", preset)
    wait_for(lambda: state(folder, "server").program_alive, "the program")
    os.kill(state(folder, "server").pid, signal.SIGKILL)
    wait_for(lambda: not state(folder, "server").alive, "the end of the loop")
    go.touch()
    wait_for(lambda: not state(folder, "server").program_alive, "the end of the program")
    start(folder, "server", preset)
    (kept,) = wait_for_turns(folder, "server", 1)
    assert (kept["took"], kept["recorded_by"]) == (True, "loop")


@pytest.mark.slow
def test_a_loop_that_is_started_again_tries_as_often_as_at_first(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    preset = command(tmp_path, behave(tmp_path, "idle " * 9))
    for number in (1, 2):
        start(folder, "server", preset, retries=1)
        assert wait_for_phase(folder, "server", Phase.GAVE_UP).shown.attempt == 2
        assert len(turns(folder, "server")) == 2 * number
        assert registry.stop(str(folder), "server", grace=1).done
