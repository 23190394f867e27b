"""A loop that waits costs next to nothing, and is the same loop: seen, stopped, nudged, never lost."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from acp_core.agents import registry
from acp_core.agents.state import Phase, RunnerState
from acp_core.cli.main import run as acp_main
from acp_core.files import claims, requests
from acp_core.history.store import open_recording
from acp_core.loops import launch, parking
from acp_core.loops.supervisor import SPARE
from acp_core.model.clock import utc_now
from tests.agents.support import ROOT, is_gone, wait_for
from tests.loops.support import (
    append,
    behave,
    command,
    events,
    log,
    make,
    spec,
    start,
    state,
    wait_for_phase,
    wait_for_turns,
)
from tests.support.private import open_to_others

SUPERVISOR = "acp_core.loops.supervisor"


def of_state(folder: Path, word: str) -> list[psutil.Process]:
    """The processes whose state folder is this one, and whose command line has the word."""
    found = []
    for each in psutil.process_iter():
        try:
            if each.environ().get("ACP_STATE") == str(folder) and word in each.cmdline():
                found.append(each)
        except psutil.Error:
            continue
    return found


def supervisors(tmp_path: Path) -> list[psutil.Process]:
    return of_state(tmp_path / "state", SUPERVISOR)


def the_only(
    listed: Callable[[Path], list[psutil.Process]], tmp_path: Path, what: str
) -> psutil.Process:
    """The only one of them; one that is starting a program is seen twice until that program runs."""
    seen: list[psutil.Process] = []

    def is_alone() -> bool:
        seen[:] = listed(tmp_path)
        return len(seen) == 1

    wait_for(is_alone, what)
    return seen[0]


def the_supervisor(tmp_path: Path) -> psutil.Process:
    """The only one: others, that two loops started at once, have ended."""
    return the_only(supervisors, tmp_path, "one supervisor")


def the_watchdog(tmp_path: Path) -> psutil.Process:
    return the_only(watchdogs, tmp_path, "one watchdog")


def is_gone_for_good(process: psutil.Process) -> bool:
    """Whether a process has ended that nobody may have waited for."""
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def is_parked(pid: int) -> bool:
    """Whether a loop's process is the shell that waits for it."""
    try:
        return "acp-parked" in psutil.Process(pid).cmdline()
    except psutil.Error:
        return False


def park(folder: Path, participant: str = "reader", *words: str, **more: object) -> RunnerState:
    """Start a loop that is not waited for, and wait until it is parked."""
    found = start(folder, participant, command(folder.parent, *words), **more)
    wait_for_parked(found.pid)
    return state(folder, participant)


def wait_for_parked(pid: int) -> None:
    wait_for(lambda: is_parked(pid), f"process {pid} to be parked")


def propose(folder: Path) -> None:
    """The server takes its turn: now the reader is waited for."""
    wait_for_turns(folder, "server", 1) if registry.find(str(folder), "server") else start(
        folder, "server", command(folder.parent, name="other")
    )
    wait_for(lambda: len(events(folder)) > 1, "the proposal")


@pytest.mark.slow
def test_parked_loops_are_one_supervisor_and_a_shell_each_and_seen_as_they_were(
    tmp_path: Path,
) -> None:
    folders = [make(tmp_path / f"c{number}") for number in range(2)]
    loops = [park(folder, who) for folder in folders for who in ("reader", "reviewer")]
    wait_for(lambda: all(is_parked(each.pid) for each in loops), "all to be parked")
    supervisor = the_supervisor(tmp_path)
    assert open_to_others() == []
    beside = supervisor.children()  # nothing is read while nothing changes
    assert all("acp-watchdog" in each.cmdline() for each in beside)
    modules = of_state(tmp_path / "state", "-m")
    assert {each.pid for each in modules} == {supervisor.pid, *(each.pid for each in loops)}
    for each in registry.runners():
        assert each.alive and each.phase is Phase.WAITING
        found = claims.seen(each.folder, claims.of_participant(each.participant))
        assert found.held and found.owner and found.owner.process == claims.this_process(each.pid)


@pytest.mark.slow
def test_a_parked_loop_takes_its_turn_in_its_own_process_and_is_parked_again(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "c")
    plan = launch.plan(
        spec(folder, "reader"), command(tmp_path, behave(tmp_path, "hang")), ask_version=False
    )
    before = launch.start(plan.spec, env={"ACP_TEST_GIVEN": "at the launch"})
    wait_for_parked(before.pid)
    propose(folder)
    after = wait_for_phase(folder, "reader", Phase.RUNNING)
    assert (after.pid, after.started, after.alive) == (before.pid, before.started, True)
    wait_for(lambda: state(folder, "reader").program_alive, "the program")
    run = state(folder, "reader").run
    assert run is not None
    program = psutil.Process(run.process.pid)
    assert program.environ()["ACP_TEST_GIVEN"] == "at the launch"
    open_there = []
    for each in Path(f"/proc/{program.pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it closes files meanwhile
            open_there.append(os.readlink(each))
    assert not [each for each in open_there if "lock" in each]
    assert log(folder, "reader").count("starts") == 1


@pytest.mark.slow
def test_a_change_that_makes_it_nobodys_turn_starts_no_loop(tmp_path: Path) -> None:
    """What a process used so far tells whether it was anything but a shell meanwhile."""
    folder = make(tmp_path / "c")
    propose(folder)
    server = state(folder, "server")
    wait_for_parked(server.pid)
    before = psutil.Process(server.pid).cpu_times()
    append(folder, "reader", "review_submitted", 2)
    wait_for(lambda: of_state(tmp_path / "state", "acp_core.loops.due"), "the change to be read")
    wait_for(lambda: not of_state(tmp_path / "state", "acp_core.loops.due"), "it to be read")
    assert psutil.Process(server.pid).cpu_times() == before
    append(folder, "reviewer", "review_submitted", 2)
    wait_for_turns(folder, "server", 2)
    assert state(folder, "server").pid == server.pid


@pytest.mark.slow
def test_a_loop_goes_on_though_its_supervisor_is_killed(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    loops = [park(folder, who) for who in ("reader", "reviewer")]
    first = the_supervisor(tmp_path)
    first.kill()
    wait_for(
        lambda: [each for each in supervisors(tmp_path) if each != first], "another supervisor"
    )
    for each in loops:
        wait_for_parked(each.pid)
        assert state(folder, each.participant).alive
    propose(folder)
    wait_for_turns(folder, "reader", 1)
    assert state(folder, "reader").pid == loops[0].pid


def recorded_phase(folder: Path, participant: str) -> str:
    """What the recording says last of a loop."""
    store = open_recording(str(folder))
    assert store is not None
    said = [each.content for each in store.loops() if each.participant == participant]
    store.close()
    return str(json.loads(said[-1])["phase"])


@pytest.mark.slow
def test_a_parked_loop_is_stopped_like_any_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "c")
    one, other = park(folder), park(folder, "reviewer")
    code = acp_main(["stop", str(folder), "reader"], lambda paths, settings: 99)
    assert (code, capsys.readouterr().out) == (0, "reader: stopped\n")
    stopped = state(folder, "reader")
    assert is_gone(one.pid) and stopped.phase is Phase.STOPPED
    # it was not started again for that: else it would name the signal
    assert stopped.shown.note == "stopped" and "the loop ends: stopped" in log(folder, "reader")
    assert recorded_phase(folder, "reader") == "stopped"
    found = claims.seen(folder, claims.of_participant("reader"))
    assert not found.held and found.owner and found.owner.ended
    assert is_parked(other.pid)
    os.kill(other.pid, signal.SIGKILL)
    wait_for(lambda: state(folder, "reviewer").died, "the other to be seen as killed")
    supervisor = the_supervisor(tmp_path)
    wait_for(lambda: is_gone_for_good(supervisor), "the supervisor to end, unneeded")


@pytest.mark.slow
def test_a_parked_loop_hears_a_message_and_what_another_account_asks(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    before = park(folder)
    registry.nudge(str(folder), "reader", "look again", utc_now())
    wait_for(lambda: "a person says: look again" in log(folder, "reader"), "the message")
    assert state(folder, "reader").pid == before.pid
    other = park(folder, "reviewer")
    requests.ask(folder, claims.of_participant("reviewer"), requests.STOP, {})
    wait_for(lambda: is_gone(other.pid), "the loop that was asked to stop")
    assert state(folder, "reviewer").shown.note.startswith("stopped because ")


@pytest.mark.slow
def test_a_parked_loop_ends_when_its_time_is_over(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    found = park(folder, deadline=utc_now() + timedelta(seconds=5))
    wait_for(lambda: is_gone(found.pid), "the end")
    assert state(folder, "reader").shown.note == "the deadline passed"


@pytest.mark.slow
@pytest.mark.parametrize("removed", ["c/.acp", "state"])
def test_a_parked_loop_that_lost_its_claim_or_its_state_ends(tmp_path: Path, removed: str) -> None:
    folder = make(tmp_path / "c")
    first = park(folder)
    supervisor = the_supervisor(tmp_path)
    shutil.rmtree(tmp_path / removed)
    wait_for(lambda: is_gone(first.pid), "the loop to end")
    if removed == "state":
        assert not (tmp_path / "state/loops").exists()  # nothing was written
    again = park(folder)
    assert again.pid != first.pid
    assert len(events(folder)) == 1
    assert is_gone_for_good(supervisor) is (removed == "state")


@pytest.mark.slow
def test_a_parked_loop_waits_for_a_folder_that_is_away(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    first = park(folder)
    folder.rename(tmp_path / "away")
    append(tmp_path / "away", "server", "blocked", 1)
    assert is_parked(first.pid)
    (tmp_path / "away").rename(folder)
    wait_for(lambda: is_gone(first.pid), "the loop to see that all is over")
    assert state(folder, "reader").phase is Phase.DONE


def test_a_parked_loop_whose_folder_was_removed_can_be_stopped(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    first = park(folder)
    shutil.rmtree(folder)
    assert registry.stop(str(folder), "reader").done
    assert is_gone(first.pid) and state(folder, "reader").shown.ended


LIMITED = """
import sys
from pathlib import Path
from tests.loops.support import command, start
for who in sys.argv[2:]:
    start(Path(sys.argv[1]), who, command(Path(sys.argv[1]).parent, name=who))
"""


@pytest.mark.slow
def test_more_loops_than_a_supervisor_can_have_open_wait_by_themselves(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    people = ["reader", "reviewer"]
    words = [sys.executable, "-c", LIMITED, str(folder), *people]
    limited = f"ulimit -n {SPARE + 1}; exec {shlex.join(words)}"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(["/bin/sh", "-c", limited], env=env, check=True)
    pids = [state(folder, who).pid for who in people]
    wait_for(lambda: any(map(is_parked, pids)), "one to be parked")
    supervisor = the_supervisor(tmp_path)
    wait_for(
        lambda: any("the loop keeps checking by itself" in log(folder, who) for who in people),
        "the other to be refused",
    )
    assert sum(map(is_parked, pids)) == 1
    assert [state(folder, who).alive for who in people] == [True, True]
    propose(folder)
    for who in people:
        wait_for_turns(folder, who, 1)
    assert supervisor.is_running()


@pytest.mark.slow
def test_every_state_folder_has_a_supervisor_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "c")
    park(folder)
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("ACP_STATE", str(tmp_path / "another account's"))
        other = park(folder, "reviewer")
        of_theirs = tmp_path / "another account's"
        theirs = the_only(lambda _: of_state(of_theirs, SUPERVISOR), tmp_path, "their supervisor")
        mine = the_supervisor(tmp_path)
        mine.kill()
        assert theirs.is_running() and is_parked(other.pid)
        registry.stop(str(folder), "reviewer")


def watchdogs(tmp_path: Path) -> list[psutil.Process]:
    return of_state(tmp_path / "state", "acp-watchdog")


def suspend_both(tmp_path: Path) -> psutil.Process:
    """Stop the supervisor, and the watchdog that would replace it."""
    supervisor, watchdog = the_supervisor(tmp_path), the_watchdog(tmp_path)
    supervisor.suspend()
    watchdog.kill()
    return supervisor


@pytest.mark.slow
def test_a_stopped_supervisor_is_replaced_and_parked_loops_take_their_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_SPEED", "20")
    folder = make(tmp_path / "c")
    parked = park(folder)
    first = the_supervisor(tmp_path)
    first.suspend()
    propose(folder)
    wait_for_turns(folder, "reader", 1)
    assert state(folder, "reader").pid == parked.pid
    assert is_gone_for_good(first)
    wait_for(lambda: watchdogs(tmp_path), "the watchdog of another supervisor")


@pytest.mark.slow
def test_a_watchdog_ends_with_its_supervisor_and_is_replaced_where_it_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_SPEED", "20")
    folder = make(tmp_path / "c")
    park(folder)
    first = the_watchdog(tmp_path)
    first.kill()
    wait_for(lambda: [each for each in watchdogs(tmp_path) if each != first], "another watchdog")
    code = acp_main(["stop", str(folder), "reader"], lambda paths, settings: 99)
    assert code == 0
    wait_for(lambda: not supervisors(tmp_path), "the supervisor to end")
    wait_for(lambda: not watchdogs(tmp_path), "its watchdog to end")


@pytest.mark.slow
def test_a_stopped_supervisor_that_nobody_replaces_is_named_with_its_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ACP_SPEED", "20")
    folder = make(tmp_path / "c")
    parked = park(folder)
    supervisor = suspend_both(tmp_path)
    propose(folder)
    wait_for(parking.silent, "the supervisor to be silent for long")
    cure = f"kill -KILL {supervisor.pid}"
    said = {}
    for words in (["ps"], ["status", str(folder)], ["why", str(folder)], ["doctor"]):
        acp_main(words, lambda paths, settings: 99)
        said[words[0]] = " ".join("".join(capsys.readouterr()).split())
    assert all(cure in each for each in said.values()), said
    subprocess.run(shlex.split(cure), check=True)
    wait_for_turns(folder, "reader", 1)
    assert state(folder, "reader").pid == parked.pid


@pytest.mark.slow
def test_a_loop_that_wants_to_be_parked_replaces_a_stopped_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACP_SPEED", "20")
    folder = make(tmp_path / "c")
    park(folder)
    supervisor = suspend_both(tmp_path)
    wait_for(parking.silent, "the supervisor to be silent for long")
    park(folder, "reviewer")
    assert is_gone_for_good(supervisor)
