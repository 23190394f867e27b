"""What is to be done once is done once, whoever of those who saw to it was killed, and when."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.agents import codec, limits, presets, registry
from acp_core.agents.assignment import LATE, Assignment, perform
from acp_core.agents.loop_directory import place
from acp_core.agents.processes import Identity, end, identify
from acp_core.agents.program import Attempt, Program, adopt_program
from acp_core.agents.program import start_program as spawn
from acp_core.agents.session import Session
from acp_core.agents.state import Phase, Run
from acp_core.files import atomic
from tests.agents.support import FOLDER, command, is_gone, saved, script, wait_for

VARIABLE = "ACP_TEST_ASSIGNMENT"
PRINT = f'print(os.environ["{VARIABLE}"], sys.stdin.read(), flush=True)'


class Chore(Assignment):
    """One with a program that prints its mark and what it was told."""

    def __init__(self, program: str, key: str = "chore/1", timeout: float | None = None) -> None:
        super().__init__(key, VARIABLE, timeout=timeout)
        self._program = program
        self.done = False

    def program(self) -> Program:
        preset = presets.any_command([self._program])
        return Program(preset, FOLDER, os.path.dirname(self._program))

    def prompt(self) -> str:
        return "do it"

    def mark(self, number: int) -> str:
        return f"{self.key}#{number}"

    def is_done(self) -> bool:
        return self.done

    def counts(self, run: Run) -> bool:
        return not run.stopped


def session(work: Chore) -> Session:
    return Session.of(work.program(), "ann")


def printed(run: Run) -> str:
    return Path(run.out).read_text()


def killed_after(work: Chore, run: Run | None, **state: object) -> None:
    """Leave behind what a session leaves that is killed: a state that says no end."""
    where = place(FOLDER, "ann")
    where.make()
    changes = {"turn": work.key, "own": 1, "run": run} | state
    atomic.replace(where.state, codec.encode(replace(saved(), **changes)), sync=False)  # type: ignore[arg-type]


def at_work(work: Chore, program: str, number: int = 1) -> Identity:
    """Start its program as a session would that is killed before it noted that."""
    where = place(FOLDER, "ann")
    where.make()
    ready = command(program, folder=Path(program).parent)
    ready = replace(ready, env={**ready.env, VARIABLE: work.mark(number)})
    files = [where.runs / f"{number:05}.{kind}" for kind in ("out", "err")]
    return spawn(ready, *files).identity


def test_it_is_done_once(tmp_path: Path) -> None:
    work = Chore(script(tmp_path, PRINT))
    with session(work) as ours:
        first = perform(ours, work)
    assert printed(first) == "chore/1#1 do it\n"
    with session(work) as ours:
        assert perform(ours, work) == first
    other = Chore(script(tmp_path, PRINT), "chore/2")
    with session(other) as ours:
        assert printed(perform(ours, other)) == "chore/2#2 do it\n"


def test_a_program_whose_start_was_not_noted_is_taken_over(tmp_path: Path) -> None:
    slow = f'{PRINT}\nwhile not os.path.exists("go"): time.sleep(0.02)\nprint("through")'
    work = Chore(script(tmp_path, slow))
    process = at_work(work, script(tmp_path, slow))
    out = place(FOLDER, "ann").runs / "00001.out"
    wait_for(lambda: out.exists() and out.read_text(), "the program to begin")
    killed_after(work, None)
    told = []

    def echo(line: str) -> None:
        told.append(line)
        (tmp_path / "go").touch()

    with Session.of(work.program(), "ann", echo=echo) as ours:
        run = perform(ours, work)
    assert told[0] == f"taking over process {process.pid}, which was started before"
    assert (run.number, run.process.pid) == (1, process.pid)
    assert printed(run).endswith("through\n")
    assert run.exit == "ended unseen"


def test_what_a_program_printed_that_nobody_noted_counts(tmp_path: Path) -> None:
    work = Chore(script(tmp_path, PRINT))
    process = at_work(work, script(tmp_path, PRINT))
    wait_for(lambda: is_gone(process.pid) or not process.alive(), "the program to end")
    killed_after(work, None)
    with session(work) as ours:
        run = perform(ours, work)
    assert (run.number, run.exit, run.lines) == (1, "ended unseen", ("chore/1#1",))


def test_a_program_that_works_for_something_else_is_stopped_first(tmp_path: Path) -> None:
    hangs = script(tmp_path, "time.sleep(600)", "hangs")
    before, work = Chore(hangs, "chore/1"), Chore(script(tmp_path, PRINT), "chore/2")
    process = at_work(before, hangs)
    where = place(FOLDER, "ann")
    out, err = (str(where.runs / f"00001.{kind}") for kind in ("out", "err"))
    killed_after(before, Run(1, process, saved().started, out=out, err=err))
    with session(work) as ours:
        run = perform(ours, work)
    assert not process.alive()
    assert (run.number, run.exit_code) == (2, 0)


def test_what_was_stopped_is_done_anew_and_what_is_done_elsewhere_is_not(tmp_path: Path) -> None:
    work = Chore(script(tmp_path, PRINT))
    with session(work) as ours:
        first = perform(ours, work)
    killed_after(work, replace(first, stopped="we were stopped"))
    with session(work) as ours:
        assert perform(ours, work).number == 2
    other = Chore(script(tmp_path, PRINT), "chore/2")
    other.done = True
    with session(other) as ours:
        unseen = perform(ours, other)
    assert (unseen.exit, unseen.out) == ("ended unseen", "")


def test_one_that_takes_too_long_is_stopped(tmp_path: Path) -> None:
    work = Chore(script(tmp_path, "time.sleep(600)"), timeout=0.2)
    with session(work) as ours:
        run = perform(ours, work)
    assert (run.stopped, run.exit) == (LATE, "killed by SIGTERM")


def test_an_attempt_ends_a_program_that_does_not_listen_with_what_it_started(
    tmp_path: Path,
) -> None:
    deaf = (
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        'child = subprocess.Popen(["sleep", "600"])\nprint(child.pid, flush=True)\ntime.sleep(600)'
    )
    out = tmp_path / "out"
    child = spawn(command(script(tmp_path, deaf), folder=tmp_path), out, tmp_path / "err")
    wait_for(lambda: out.read_text().endswith("\n"), "the program to listen no more")
    attempt = Attempt(child, grace=0.1)
    assert str(attempt.wait(0.1, "that is enough")) == "killed by SIGKILL"
    assert attempt.stopped == "that is enough"
    assert not attempt.stop("again")
    wait_for(lambda: is_gone(int(out.read_text())), "what it started to end")


def test_one_that_was_taken_over_is_ended_as_well() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        identity = identify(process.pid)
        assert identity is not None
        assert adopt_program(identity).poll() is None
        assert end([identity], 5.0)
        assert str(adopt_program(identity).poll()) == "ended unseen"
    assert end([identity], 0.0)  # it has ended already
    assert registry.runners() == []


REFUSED_TWICE = """
tries = len(open("tries").read()) if os.path.exists("tries") else 0
open("tries", "a").write("x")
if tries < 2:
    print("API Error: 503 Service Unavailable", file=sys.stderr)
    sys.exit(1)
print("done", flush=True)
"""


def test_an_outage_of_its_model_service_is_waited_for_and_costs_no_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(limits, "pause_after", lambda times: 0.1 * times)
    monkeypatch.setattr(Chore, "refused", lambda self, why: told.append(why))
    monkeypatch.setattr(Chore, "counts", lambda self, run: True)
    work = Chore(script(tmp_path, REFUSED_TWICE))
    with session(work) as ours:
        run = perform(ours, work)
        assert (run.number, run.exit_code, printed(run)) == (3, 0, "done\n")
        assert len(told) == 2 and "503" in told[0]
        assert (ours.state.waits, ours.state.retry_at, ours.state.failure) == (0, None, "")


LIMITED_FOR_LONG = """
tries = len(open("tries").read()) if os.path.exists("tries") else 0
open("tries", "a").write("x")
if tries < 6:
    print("You've hit your session limit · resets 10:53pm (UTC)", file=sys.stderr)
    sys.exit(1)
print("done", flush=True)
"""


class Clock:
    """A time of day that jumps to the end of each pause once that is noted."""

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.session: Session | None = None

    def __call__(self) -> datetime:
        state = self.session.state if self.session else None
        if state and state.phase is Phase.PAUSING and state.retry_at:
            self.now = max(self.now, state.retry_at)
        return self.now


def test_a_limit_is_waited_for_to_its_reset_and_tried_again_soon_after_it(tmp_path: Path) -> None:
    begins = datetime(2026, 5, 4, 22, 0, 20, tzinfo=UTC)
    first = datetime(2026, 5, 4, 22, 54, 2, tzinfo=UTC)
    clock, started = Clock(begins), []

    class Noted(Chore):
        def begin(self) -> None:
            started.append(clock.now)

    work = Noted(script(tmp_path, LIMITED_FOR_LONG))
    with Session.of(work.program(), "ann", clock=clock) as clock.session:
        run = perform(clock.session, work)
        assert printed(run) == "done\n" and run.number == 7
        assert clock.session.state.limit is None
    later = [first + timedelta(minutes=each) for each in (0, 1, 3, 8, 18, 28)]
    assert started == [begins, *later]


def test_a_limit_that_was_reset_while_nobody_watched_is_waited_for_no_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the next session finds printed is of the time when it was printed, and one refusal."""
    begins = datetime(2026, 5, 4, 22, 0, 20, tzinfo=UTC)
    work = Chore(script(tmp_path, LIMITED_FOR_LONG.replace("< 6", "< 1")))
    waits: list[datetime | None] = []
    with Session.of(work.program(), "ann", clock=lambda: begins) as ours:

        def interrupted() -> str:
            waits.append(ours.state.retry_at)
            return "it is killed"

        monkeypatch.setattr(work, "withdrawn", interrupted)
        refusal = perform(ours, work)
        assert refusal.stopped == "it is killed"
        state = ours.state
    assert waits[-1] == datetime(2026, 5, 4, 22, 54, 2, tzinfo=UTC)
    killed_after(
        work, state.run, failure="limit", limited=True, limit=state.limit, waits=1,
        retry_at=waits[-1], program="command", command=state.command,
    )  # fmt: skip
    again = Chore(work._program)
    morning = begins + timedelta(hours=10)
    with Session.of(again.program(), "ann", clock=lambda: morning) as ours:
        run = perform(ours, again)
        assert (run.started, printed(run)) == (morning, "done\n")


def test_what_nobody_wants_any_more_waits_for_no_model_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = Chore(script(tmp_path, REFUSED_TWICE))
    with session(work) as ours:

        def withdrawn() -> str:
            state = ours.state
            if state.waits:
                assert (state.phase, state.failure) == (Phase.PAUSING, "service")
                assert state.retry_at is not None and not state.limited
            return "nobody wants it" if state.waits else ""

        monkeypatch.setattr(work, "withdrawn", withdrawn)
        run = perform(ours, work)
        assert (run.stopped, run.out) == ("nobody wants it", "")
    assert (tmp_path / "tries").read_text() == "x"
