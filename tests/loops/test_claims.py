"""Nobody plays a participant twice: whatever was lost here, and whoever started the first loop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import stat
from pathlib import Path

import pytest

from acp_core.agents import program, registry
from acp_core.agents.loop_directory import place
from acp_core.agents.program import Command
from acp_core.agents.state import Phase, Run
from acp_core.cli.main import run as acp_main
from acp_core.diagnosis.processes import UnmanagedProcesses
from acp_core.files import claims, locked
from acp_core.loops import launch, process
from acp_core.loops.acts.steering import bind_stop
from acp_core.loops.launch import LaunchError
from acp_core.model.clock import utc_now
from acp_core.protocols.kit.binding import Location
from tests.agents.support import is_gone, wait_for
from tests.loops.support import (
    behave,
    command,
    events,
    make,
    spec,
    start,
    state,
    wait_for_phase,
)

ALICE = claims.of_participant("server")


def seen(folder: Path) -> claims.Seen:
    return claims.seen(folder, ALICE)


def running(folder: Path) -> Run:
    """The program that a loop has started, once it is noted."""
    wait_for_phase(folder, "server", Phase.RUNNING)
    wait_for(lambda: state(folder, "server").run, "the program to be noted")
    run = state(folder, "server").run
    assert run is not None
    return run


def start_unplanned(folder: Path, tmp_path: Path) -> None:
    """As somebody who asked for it just before the other loop began."""
    plan = launch.plan(spec(folder, "server"), command(tmp_path), ask_version=False, again=True)
    launch.start(plan.spec)


@pytest.mark.slow
def test_another_account_sees_who_plays_a_participant_and_starts_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "c")
    first = start(folder, "server", command(tmp_path, behave(tmp_path, "hang")))
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    assert registry.find(str(folder), "server") is None
    sentence = f"{claims.account(os.getuid())} plays server (pid {first.pid} on {claims.host()} si"
    plan = launch.plan(spec(folder, "server"), command(tmp_path), ask_version=False)
    assert plan.refused.startswith(f"server already has a loop: {sentence}")
    with pytest.raises(LaunchError) as refused:
        start_unplanned(folder, tmp_path)
    assert str(refused.value).startswith(f"server already has a loop: {sentence}")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    assert state(folder, "server").alive


@pytest.mark.slow
def test_another_account_sees_and_stops_a_loop_by_its_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "c")
    first = start(folder, "server", command(tmp_path, behave(tmp_path, "hang")))
    wait_for_phase(folder, "server", Phase.RUNNING)
    wait_for(lambda: seen(folder).child, "the program to be noted")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    (claim,) = UnmanagedProcesses().of(str(folder), ())
    assert (claim.participant, claim.pid) == ("server", first.pid)
    (participants, _) = bind_stop(Location(str(folder)), utc_now()).fields or ()
    assert participants.choices == ("server",)
    assert participants.default == ()  # a form ticks this account's loops alone
    code = acp_main(["stop", str(folder)], lambda paths, settings: 99)
    assert (code, capsys.readouterr().out) == (0, "server: stopped\n")
    assert is_gone(first.pid) and not seen(folder).held
    assert registry.stop(str(folder), "server") == (True, "server has no loop")


@pytest.mark.slow
def test_a_loop_that_only_its_claim_shows_is_listed_and_says_what_cannot_be_done_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "c")
    first = start(folder, "server", command(tmp_path, behave(tmp_path, "hang")))
    wait_for(lambda: seen(folder).child, "the program to be noted")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    wait_for(lambda: listed(folder, capsys), "it to be more than one that just begins")
    (found,) = listed(folder, capsys)
    account = claims.account(os.getuid())
    assert (found["participant"], found["pid"], found["account"]) == ("server", first.pid, account)
    assert (found["alive"], found["state"]) == (True, "elsewhere") and found["since"]
    for words in (["nudge", str(folder), "server", "go on"], ["logs", str(folder)]):
        assert acp_main(words, lambda paths, settings: 99) == 2
        said = capsys.readouterr().err
        assert f"{account} plays server (pid {first.pid} on " in said
        assert f"only {account} can " in said
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    (own,) = listed(folder, capsys)
    assert own["account"] is None and own["state"] == "running"


def listed(folder: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    assert acp_main(["ps", str(folder), "--json"], lambda paths, settings: 99) == 0
    found: list[dict[str, object]] = json.loads(capsys.readouterr().out)["loops"]
    return found


def test_losing_the_state_folder_ends_the_loop_and_never_starts_a_program_twice(
    tmp_path: Path,
) -> None:
    folder = make(tmp_path / "c")
    behaviour = behave(tmp_path, "hang")
    first = start(folder, "server", command(tmp_path, behaviour))
    run = running(folder)
    shutil.rmtree(tmp_path / "state")
    wait_for(lambda: is_gone(first.pid) and is_gone(run.process.pid), "the loop to stop itself")
    assert not place(str(folder), "server").folder.exists()  # nothing was written
    again = start(folder, "server", command(tmp_path, behaviour))
    assert again.pid != first.pid and seen(folder).held


@pytest.mark.slow
def test_nobody_starts_a_program_beside_the_one_that_a_killed_loop_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "c")
    behaviour = behave(tmp_path, "hang")
    first = start(folder, "server", command(tmp_path, behaviour))
    run = running(folder)
    wait_for(lambda: seen(folder).child, "the program to be noted")
    os.kill(first.pid, signal.SIGKILL)
    wait_for(lambda: is_gone(first.pid), "the loop to be gone")
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "another account's"))
    with pytest.raises(LaunchError, match=rf"\(process {run.process.pid}\) is still running"):
        start_unplanned(folder, tmp_path)
    assert not is_gone(run.process.pid)
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    again = start(folder, "server", command(tmp_path, behaviour))  # whose program it is goes on
    assert running(folder).process.pid == run.process.pid
    assert again.pid != first.pid


def test_a_loop_whose_claim_is_removed_stops_and_leaves_the_new_one_alone(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    first = start(folder, "reader", command(tmp_path))
    wait_for_phase(folder, "reader", Phase.WAITING)
    shutil.rmtree(folder / ".acp")
    wait_for(lambda: is_gone(first.pid), "the loop to stop itself")
    assert len(events(folder)) == 1
    assert start(folder, "reader", command(tmp_path)).alive


@pytest.mark.slow
def test_a_loop_of_acp_0_1_which_has_no_claim_is_not_doubled(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    with place(str(folder), "server").locked(), pytest.raises(LaunchError, match="has a loop"):
        start_unplanned(folder, tmp_path)
    assert not seen(folder).held


def test_a_folder_that_is_away_for_a_moment_stops_no_loop(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    first = start(folder, "reader", command(tmp_path))
    wait_for_phase(folder, "reader", Phase.WAITING)
    folder.rename(tmp_path / "away")
    assert not seen(folder).held and claims.seen(tmp_path / "away", "loops/reader").held
    (tmp_path / "away").rename(folder)
    assert claims.seen(folder, "loops/reader").held and not is_gone(first.pid)


def test_where_locks_mean_nothing_no_loop_is_started_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "c")
    monkeypatch.setattr(locked, "here", lambda: (locked.Mount("/", "cifs"),))
    with pytest.raises(LaunchError) as refused:
        process.run(spec(folder, "server", program="x", preset=command(tmp_path).as_table()))
    assert "is on a file system without locks that all can see (cifs)" in str(refused.value)
    assert not (folder / ".acp").exists()


def test_a_program_in_a_shared_folder_leaves_what_the_others_can_change(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o2770)
    before = os.umask(0o022)
    try:
        for cwd, mode in ((folder, 0o664), (tmp_path, 0o644)):
            path = cwd / "made"
            words = ("/bin/sh", "-c", f"echo x > '{path}'")
            run = program.start_program(
                Command(words, str(cwd), program.environment()), cwd / "o", cwd / "e"
            )
            wait_for(run.poll, "it to end")
            assert stat.S_IMODE(path.stat().st_mode) == mode
    finally:
        os.umask(before)
