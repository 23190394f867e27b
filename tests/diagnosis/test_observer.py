"""Loops and processes, as the fleet sees them: real ones."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.agents.state import Phase
from acp_core.diagnosis.observer import Observer, Pulse
from acp_core.diagnosis.processes import UnmanagedProcesses, busy
from acp_core.fleet import Fleet
from acp_core.loops.wording import is_idle
from acp_core.model import Runner, Snapshot
from acp_core.model.turn import Mode
from acp_core.protocols.folder.collaboration import FolderCollaboration
from acp_core.protocols.kit.diagnosis import Patience
from tests.agents.support import ROOT, wait_for
from tests.loops import support

Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start processes that end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str, **more: object) -> subprocess.Popen[bytes]:
        options: dict[str, object] = {"env": {**os.environ, "PYTHONPATH": str(ROOT)}} | more
        started.append(
            subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
                **options,  # type: ignore[call-overload]
            )
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


class TestPulse:
    def test_it_stops_with_one_of_the_processes(self, spawn: Spawn) -> None:
        first, second = (spawn("sleep", "600") for _ in range(2))
        pulse = Pulse()
        assert not pulse
        pulse.follow([first.pid, second.pid])
        assert pulse
        assert not pulse.stopped()
        first.kill()
        wait_for(pulse.stopped, "the end of a process")
        pulse.follow([])
        assert not pulse.stopped()

    def test_a_process_that_is_no_more(self, spawn: Spawn) -> None:
        gone = spawn(sys.executable, "-c", "")
        gone.wait()
        pulse = Pulse()
        pulse.follow([gone.pid])
        assert pulse.stopped()


class TestStrangers:
    def waiter(self, spawn: Spawn, folder: Path, who: str = "reader") -> subprocess.Popen[bytes]:
        words = ("--folder", folder.name, "--participant", who)
        return spawn(sys.executable, "-m", "acp_core", "wait", *words, cwd=folder.parent)

    def test_a_waiter_that_nobody_here_started(self, spawn: Spawn, tmp_path: Path) -> None:
        folder = support.make(tmp_path / "cache")
        strangers = UnmanagedProcesses()
        assert strangers.of(str(folder), ()) == ()
        waiter = self.waiter(spawn, folder)
        wait_for(lambda: strangers.forget() or strangers.of(str(folder), ()), "a stranger")
        (claim,) = strangers.of(str(folder), ())
        assert (claim.participant, claim.pid, claim.waits) == ("reader", waiter.pid, True)
        assert strangers.of(str(tmp_path), ()) == ()

    def test_an_agent_that_waits_by_itself_runs_the_collaboration(
        self, spawn: Spawn, tmp_path: Path
    ) -> None:
        folder = support.make(tmp_path / "cache")
        collaboration = FolderCollaboration(str(folder))
        observer = Observer()

        def diagnosed() -> Snapshot:
            observer.forget_processes()
            now = datetime.now(UTC)
            return observer.diagnosed(
                observer.diagnosis(), collaboration, collaboration.refresh(now), now
            )

        assert is_idle(diagnosed())
        self.waiter(spawn, folder)
        wait_for(lambda: diagnosed().runners == (Runner("reader"),), "the agent")
        assert not is_idle(diagnosed())

    def test_what_our_own_loop_runs_is_no_stranger(self, tmp_path: Path) -> None:
        folder = support.make(tmp_path / "cache")
        preset = support.command(tmp_path, "--alone", name="waits")
        support.start(folder, "reader", preset, mode=Mode.ALONE)
        strangers = UnmanagedProcesses()
        wait_for(
            lambda: any("wait" in each for each in children_of(folder, "reader")), "its waiter"
        )
        loops = tuple(registry.runners(str(folder)))
        strangers.forget()
        assert strangers.of(str(folder), loops) == ()
        strangers.forget()
        assert strangers.of(str(folder), ()) != ()


def children_of(folder: Path, participant: str) -> list[str]:
    """The command lines of what a participant's program runs."""
    import psutil

    found = registry.find(str(folder), participant)
    if found is None or found.run is None or not found.program_alive:
        return []
    try:
        children = psutil.Process(found.run.process.pid).children(recursive=True)
        return [" ".join(each.cmdline()) for each in children]
    except psutil.Error:
        return []


def test_a_program_with_a_busy_child(tmp_path: Path) -> None:
    folder = support.make(tmp_path / "cache")
    preset = support.command(tmp_path, "--alone", name="waits")
    support.start(folder, "reader", preset, mode=Mode.ALONE)
    wait_for(lambda: children_of(folder, "reader"), "a child")
    wait_for(lambda: "wait" in busy(support.state(folder, "reader")), "it to wait")
    registry.stop(str(folder), "reader", grace=0.5)
    assert busy(support.state(folder, "reader")) == ""


class TestObserver:
    def test_it_tells_whose_loops_changed(self, tmp_path: Path) -> None:
        folder = support.make(tmp_path / "cache")
        observer = Observer(Patience())
        assert observer.loops(str(folder)) == ()
        support.start(folder, "reader", support.command(tmp_path))
        support.wait_for_phase(folder, "reader", Phase.WAITING)
        assert observer.refresh() == {str(folder)}
        wait_for(lambda: observer.refresh() == frozenset(), "it to change no more")
        (loop,) = observer.loops(str(folder))
        assert loop.alive
        assert observer.alive
        assert Path(loop.place) in observer.folders([str(folder)])
        os.kill(loop.pid, signal.SIGKILL)
        wait_for(observer.stopped, "its end to be noticed")
        assert observer.refresh() == {str(folder)}
        assert observer.loops(str(folder))[0].died

    def test_by_whatever_name_the_folder_is_known(self, tmp_path: Path) -> None:
        folder = support.make(tmp_path / "cache")
        (tmp_path / "link").symlink_to(folder)
        support.start(folder, "reader", support.command(tmp_path))
        assert len(Observer(Patience()).loops(str(tmp_path / "link"))) == 1


def test_a_fault_of_the_diagnosis_hides_no_collaboration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = support.make(tmp_path / "cache")

    def fails(*_: object) -> None:
        raise ValueError("a fault")

    monkeypatch.setattr("acp_core.diagnosis.engine.causes_of_turns", fails)
    fleet = Fleet([folder], discover=False)
    (seen,) = fleet.read()
    asyncio.run(fleet.close())
    assert (seen.phase, seen.causes) == ("drafting", ())


class TestInTheFleet:
    def test_one_look_tells_the_causes(self, tmp_path: Path) -> None:
        folder = support.make(tmp_path / "cache")
        idle = support.behave(tmp_path, "idle idle")
        support.start(folder, "server", support.command(tmp_path, idle), retries=0)
        support.wait_for_phase(folder, "server", Phase.GAVE_UP)
        fleet = Fleet([folder], discover=False)
        (seen,) = fleet.read()
        asyncio.run(fleet.close())
        assert [each.code for each in seen.causes] == ["B3"]
        assert [each.code for each in seen.needs] == ["B3"]
        assert "ended without an event" in seen.headline

    async def test_a_loop_that_is_killed_is_noticed(self, tmp_path: Path) -> None:
        folder = support.make(tmp_path / "cache")
        hang = support.behave(tmp_path, "hang")
        support.start(folder, "server", support.command(tmp_path, hang))
        wait_for(lambda: support.state(folder, "server").program_alive, "its program")
        state = support.state(folder, "server")
        fleet = Fleet([tmp_path])
        seen: Snapshot | None = None
        told: set[str] = set()
        killed = False
        async with asyncio.timeout(60):
            async for batch in fleet.changes():
                seen = next(iter(batch.snapshots), seen)
                told.update(batch.loops)
                if seen and not killed:
                    assert seen.causes == ()
                    os.kill(state.pid, signal.SIGKILL)
                    killed = True
                if seen and seen.causes:
                    break
        assert seen is not None
        assert seen.causes[0].code == "B2"
        assert "its agent is still running" in seen.causes[0].sentence
        assert str(folder) in told
        assert fleet.loops(str(folder))[0].died
        await fleet.close()

    async def test_a_new_loop_is_noticed(self, tmp_path: Path) -> None:
        folder = support.make(tmp_path / "cache")
        fleet = Fleet([tmp_path])
        started = False
        async with asyncio.timeout(60):
            async for batch in fleet.changes():
                if batch.snapshots and not started:
                    await asyncio.to_thread(
                        support.start, folder, "reader", support.command(tmp_path)
                    )
                    started = True
                if batch.loops:
                    break
        assert [each.participant for each in fleet.loops(str(folder))] == ["reader"]
        await fleet.close()

    async def test_loops_that_were_known_before_are_followed_too(self, tmp_path: Path) -> None:
        folder = support.make(tmp_path / "cache")
        hang = support.behave(tmp_path, "hang idle")
        support.start(folder, "server", support.command(tmp_path, hang), retries=0)
        wait_for(lambda: support.state(folder, "server").program_alive, "its program")
        observer = Observer(Patience())
        observer.refresh()
        fleet = Fleet([tmp_path], observer=observer)
        stopped = False
        seen: Snapshot | None = None
        async with asyncio.timeout(60):
            async for batch in fleet.changes():
                seen = next(iter(batch.snapshots), seen)
                if batch.complete and not stopped:
                    run = support.state(folder, "server").run
                    assert run is not None
                    os.killpg(run.process.pid, signal.SIGKILL)
                    stopped = True
                if seen and seen.causes:
                    break
        assert seen is not None
        assert (seen.causes[0].code, seen.causes[0].wanted) == ("B2", True)
        await fleet.close()
