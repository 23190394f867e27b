"""Programs as real processes: how they are started, watched and ended, and what is kept."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.agents import codec, registry
from acp_core.agents.loop_directory import LoopRunning
from acp_core.agents.processes import Identity, identify
from acp_core.agents.program import SpawnError
from acp_core.agents.session import KEPT_RUNS
from acp_core.agents.state import Phase, Run
from tests.agents.support import (
    FOLDER,
    ROOT,
    command,
    go_on,
    is_gone,
    runner,
    saved,
    script,
    wait_for,
)

TELL = """
import json
print(json.dumps({
    "stdin": sys.stdin.read(), "argv": sys.argv[1:], "cwd": os.getcwd(), "leads": os.getpgid(0) == os.getpid(),
    "session": os.getsid(0) == os.getpid(), "terminal": os.environ.get("TERM"),
    "plain": os.environ.get("NO_COLOR"), "forced": os.environ.get("FORCE_COLOR"),
    "hup": signal.getsignal(signal.SIGHUP) == signal.SIG_DFL,
}))
"""


def test_a_program_gets_its_prompt_and_no_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    agent = script(tmp_path, TELL)
    with runner() as ours:
        run = ours.run(command(agent, prompt="do it\n$(no)", folder=tmp_path), go_on)
    told = json.loads(Path(run.out).read_text())
    assert told == {
        "stdin": "do it\n$(no)", "argv": [], "cwd": str(tmp_path), "leads": True, "session": True,
        "terminal": "dumb", "plain": "1", "forced": None, "hup": True,
    }  # fmt: skip
    assert (run.exit_code, run.signal, run.exit) == (0, None, "exit code 0")


def test_a_prompt_by_argument_closes_the_standard_input(tmp_path: Path) -> None:
    agent = script(tmp_path, TELL)
    nasty = "`id`; $(touch x) \"'\n--flag"
    with runner() as ours:
        run = ours.run(command(agent, "{prompt}", "-x", prompt=nasty, folder=tmp_path), go_on)
    told = json.loads(Path(run.out).read_text())
    assert (told["argv"], told["stdin"]) == ([nasty, "-x"], "")


def test_what_it_prints_is_told_and_kept(tmp_path: Path) -> None:
    agent = script(tmp_path, 'print("working"); print("oh \\x1b[2J", file=sys.stderr); sys.exit(3)')
    with runner() as ours:
        run = ours.run(command(agent, folder=tmp_path), go_on)
        log = ours.where.log.read_text()
    assert run.exit_code == 3
    assert set(run.lines) == {"working", "oh \x1b[2J"}
    assert "out  working" in log
    assert "\x1b" not in log
    shown = registry.find(FOLDER, "ann")
    assert shown is not None
    assert "\x1b" not in "".join(shown.lines)
    assert shown.first_output is not None


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fNOTHING")
    broken.chmod(0o755)
    with runner() as ours:
        with pytest.raises(SpawnError, match="not a program that this machine can run"):
            ours.run(command(str(broken), folder=tmp_path), go_on)
        lost = replace(command(script(tmp_path, ""), folder=tmp_path), cwd=str(tmp_path / "none"))
        with pytest.raises(SpawnError, match="no such working folder"):
            ours.run(lost, go_on)


def test_a_program_that_does_not_want_to_end_is_killed_with_its_children(tmp_path: Path) -> None:
    agent = script(
        tmp_path,
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        'child = subprocess.Popen([sys.executable, "-c", "import signal, time;'
        'signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"])\n'
        "print(child.pid, flush=True)\ntime.sleep(600)",
    )
    with runner(grace=0.3) as ours:
        run = ours.run(
            command(agent, folder=tmp_path), lambda run: "enough" if len(run.lines) == 2 else ""
        )
    assert (run.signal, run.exit, run.stopped) == (signal.SIGKILL, "killed by SIGKILL", "enough")
    child = next(int(line) for line in run.lines if line != "1")
    wait_for(lambda: is_gone(child), "the end of the child")


def test_what_a_program_leaves_behind_is_known_and_can_be_stopped(tmp_path: Path) -> None:
    agent = script(
        tmp_path, 'subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])'
    )
    with runner() as ours:
        run = ours.run(command(agent, folder=tmp_path), go_on)
        assert not registry.stop(FOLDER, "ann").done  # it runs in this very process
        ours.update(phase=Phase.DONE, process=Identity(2**22 + 1, 1.0))
        left = ours.state.left_over
    assert run.exit_code == 0
    assert [each.alive() for each in left] == [True]
    stopped = registry.stop(FOLDER, "ann", grace=2)
    assert stopped.done, stopped.sentence
    assert not left[0].alive()


def test_the_state_tells_how_a_run_goes_while_it_runs(tmp_path: Path) -> None:
    retry = {
        "type": "system",
        "subtype": "api_retry",
        "error": "overloaded",
        "retry_delay_ms": 90_000,
    }
    usage = {"message": {"id": "m", "usage": {"input_tokens": 70, "output_tokens": 5}}}
    agent = script(
        tmp_path,
        f"print({json.dumps(json.dumps({'type': 'assistant', **usage}))}, flush=True)\n"
        f"print({json.dumps(json.dumps(retry))}, flush=True)\ntime.sleep(600)",
    )
    seen: list[Run] = []

    def look(run: Run) -> str:
        shown = registry.find(FOLDER, "ann")
        if shown and shown.run and shown.run.retrying_until:
            seen.append(shown.run)
        return "seen" if seen else ""

    with runner(stream="claude") as ours:
        ours.update(phase=Phase.RUNNING)
        ours.run(command(agent, folder=tmp_path), look)
        assert (ours.state.tokens_in, ours.state.tokens_out, ours.state.estimated) == (70, 5, True)
    assert seen[0].retry_reason == "overloaded"
    assert (seen[0].tokens_in, seen[0].tokens_estimated) == (70, True)


def test_costs_are_estimated_where_prices_are_known_and_marked(tmp_path: Path) -> None:
    usage = {
        "type": "turn.completed",
        "usage": {"input_tokens": 1_000_000, "output_tokens": 500_000},
    }
    agent = script(tmp_path, f"print({json.dumps(json.dumps(usage))})")
    ours = runner(stream="codex")
    ours._prices = (2.0, 10.0)
    with ours:
        run = ours.run(command(agent, folder=tmp_path), go_on)
    assert (run.cost, run.cost_estimated) == (7.0, True)
    assert (ours.state.cost, ours.state.estimated) == (7.0, True)


def test_a_participant_has_one_runner(tmp_path: Path) -> None:
    with runner(), pytest.raises(LoopRunning), runner():
        pass
    with runner("ann"), runner("ben"):
        assert [each.participant for each in registry.runners(FOLDER)] == ["ann", "ben"]


def test_secrets_are_masked_in_what_others_see(tmp_path: Path) -> None:
    key = "sk-ant-" + "Zq8" * 10
    agent = script(tmp_path, f'print("using {key}")')
    with runner() as ours:
        ours.update(command=("agent", "--api-key", "verysecret", f"--x={key}"))
        ours.run(command(agent, folder=tmp_path), go_on)
    shown = registry.find(FOLDER, "ann")
    assert shown is not None
    assert key not in repr(shown)
    assert "verysecret" not in repr(shown)
    assert shown.lines == ("using sk-a********",)


def test_old_runs_make_room(tmp_path: Path) -> None:
    agent = script(tmp_path, "")
    with runner() as ours:
        for _ in range(3):
            ours.run(command(agent, folder=tmp_path), go_on)
        run = ours.state.run
        assert run is not None
        ours.update(run=replace(run, number=KEPT_RUNS + 1))
        ours.run(command(agent, folder=tmp_path), go_on)
        names = sorted(path.name for path in ours.where.runs.iterdir())
    assert names == ["00003.err", "00003.out", "00032.err", "00032.out"]


# --- when a runner dies --------------------------------------------------------------------

ORPHAN = """
import sys
from pathlib import Path
from tests.agents.support import command
from tests.agents.support import go_on
from tests.agents.support import runner
with runner() as ours:
    ours.update(phase="running")
    ours.run(command(sys.argv[1], folder=Path(sys.argv[2])), go_on)
"""


def dead_runner(tmp_path: Path, agent: str) -> int:
    """Kill a runner whose program runs and has said something; returns the program's pid."""
    process = subprocess.Popen(
        [sys.executable, "-c", ORPHAN, agent, str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )

    def said_something() -> bool:
        shown = registry.find(FOLDER, "ann")
        return bool(shown and shown.run and Path(shown.run.out).read_bytes())

    wait_for(said_something, "the first words of the program")
    process.kill()
    process.wait()
    shown = registry.find(FOLDER, "ann")
    assert shown is not None
    assert shown.run is not None
    return shown.run.process.pid


def test_a_killed_runner_is_shown_as_dead_and_its_program_as_alive(tmp_path: Path) -> None:
    agent = script(tmp_path, 'print("here", flush=True); time.sleep(600)')
    pid = dead_runner(tmp_path, agent)
    shown = registry.find(FOLDER, "ann")
    assert shown is not None
    assert (shown.alive, shown.died, shown.program_alive) == (False, True, True)
    stopped = registry.stop(FOLDER, "ann", grace=2)
    assert stopped.done, stopped.sentence
    wait_for(lambda: is_gone(pid), "the end of the program")
    shown = registry.find(FOLDER, "ann")
    assert shown is not None
    assert (shown.died, shown.phase, shown.program_alive) == (False, Phase.STOPPED, False)


def test_the_next_runner_takes_the_program_over_and_loses_nothing(tmp_path: Path) -> None:
    agent = script(
        tmp_path,
        'print("before", flush=True)\n'
        f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.02)\n"
        'print("after", flush=True)',
    )
    dead_runner(tmp_path, agent)
    with runner() as ours:
        unfinished = ours.unfinished()
        assert unfinished is not None
        assert unfinished.process.alive()
        assert ours.unfinished() is None
        (tmp_path / "go").touch()
        run = ours.take_over(unfinished, go_on)
    assert run.lines == ("before", "after")
    assert (run.exit_code, run.signal, run.exit) == (None, None, "ended unseen")


def test_a_program_that_ended_with_nobody_watching_is_still_read(tmp_path: Path) -> None:
    agent = script(tmp_path, 'print("here", flush=True); time.sleep(600)')
    pid = dead_runner(tmp_path, agent)
    os.killpg(pid, signal.SIGKILL)
    wait_for(lambda: is_gone(pid), "the end of the program")
    with runner() as ours:
        unfinished = ours.unfinished()
        assert unfinished is not None
        assert ours.take_over(unfinished, go_on).lines == ("here",)


KILLED_AT_THE_START = """
import os, signal, sys
from acp_core.agents import session
from tests.agents.test_running import ORPHAN
begin = session.start_program
def start(*given):
    begin(*given)
    os.kill(os.getpid(), signal.SIGKILL)
session.start_program = start
exec(ORPHAN)
"""


def test_a_program_whose_start_the_killed_runner_did_not_note_is_taken_over_too(
    tmp_path: Path,
) -> None:
    """Otherwise the next runner starts the agent a second time, beside the first."""
    go = tmp_path / "go"
    waits = f"while not os.path.exists({str(go)!r}): time.sleep(0.02)"
    agent = script(tmp_path, f'print("begun", os.getpid(), flush=True)\n{waits}')
    words = [sys.executable, "-c", KILLED_AT_THE_START, agent, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(words, cwd=ROOT, env=env).returncode == -signal.SIGKILL
    with runner() as ours:
        unfinished = ours.unfinished()
        assert unfinished is not None and unfinished.number == 1
        shown = registry.find(FOLDER, "ann")
        assert shown is not None and shown.run == unfinished and shown.program_alive
        go.touch()
        ended = ours.take_over(unfinished, go_on)
        assert ended.lines == (f"begun {unfinished.process.pid}",)
        again = ours.run(command(agent, folder=tmp_path), go_on)
    assert (again.number, again.exit_code) == (2, 0)


def test_after_a_reboot_nothing_is_alive(tmp_path: Path) -> None:
    """The same process ids may be there again; their births are others."""
    now = identify(os.getpid())
    assert now is not None
    assert now.alive()
    assert not replace(now, created=now.created - 86_400, boot="another boot").alive()
    assert not replace(now, created=now.created - 86_400, boot="", since_boot=-1.0).alive()
    with runner() as ours:
        ours.update(phase=Phase.WAITING)
    where = ours.where
    before = replace(ours.state, process=replace(now, created=1.0, boot="another boot"))
    where.state.write_bytes(codec.encode(before))
    shown = registry.find(FOLDER, "ann")
    assert shown is not None
    assert (shown.alive, shown.died) == (False, True)


def test_a_clock_that_is_set_makes_no_process_another() -> None:
    now = identify(os.getpid())
    assert now is not None
    if now.boot:
        assert replace(now, created=now.created + 3600).alive()


def test_a_state_that_cannot_be_read_is_not_a_loop(tmp_path: Path) -> None:
    with runner() as ours:
        pass
    for garbage in (b"", b"{", b"[]", b"\xff" * 100):
        ours.where.state.write_bytes(garbage)
        assert registry.runners() == []
        assert registry.find(FOLDER, "ann") is None
    with runner():
        assert len(registry.runners()) == 1


def test_a_registry_reads_again_only_what_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = registry.Registry()
    with runner("ann") as first, runner("ben"):
        assert len(looked.runners()) == 2
        reads: list[object] = []
        load = registry.load
        monkeypatch.setattr(registry, "load", lambda where: reads.append(where) or load(where))
        assert len(looked.runners(FOLDER)) == 2
        assert reads == []
        first.update(phase=Phase.WAITING, note="parked")
        notes = [each.shown.note for each in looked.runners(FOLDER)]
        assert notes == ["parked", ""]
        assert reads == [first.where]
        assert looked.runners("/elsewhere") == []


def test_a_message_is_taken_once() -> None:
    with runner() as ours:
        registry.nudge(FOLDER, "ann", "please go on", datetime.now(UTC))
        shown = registry.find(FOLDER, "ann")
        assert shown is not None
        assert shown.nudge_waiting
        assert registry.take_nudge(ours.where) == "please go on"
        assert registry.take_nudge(ours.where) is None


def test_a_loop_that_runs_is_not_forgotten() -> None:
    with runner() as ours:
        assert not registry.forget(FOLDER, "ann")
    assert registry.forget(FOLDER, "ann")
    assert not ours.where.folder.exists()
    assert registry.forget(FOLDER, "ann")


def test_outside_the_main_thread_a_runner_works_too(tmp_path: Path) -> None:
    agent = script(tmp_path, 'print("hello")')
    ended: list[Run] = []

    def work() -> None:
        with runner() as ours:
            ended.append(ours.run(command(agent, folder=tmp_path), go_on))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ended[0].lines == ("hello",)


def test_a_state_of_another_version_is_carried_over(tmp_path: Path) -> None:
    agent = script(tmp_path, "")
    with runner() as ours:
        ours.run(command(agent, folder=tmp_path), go_on)
        ours.update(turns=4, tokens_in=9)
    with runner() as again:
        assert (again.state.turns, again.state.tokens_in) == (4, 9)
        assert again.next_number() == 2
    assert saved().turns == 0
