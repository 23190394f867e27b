"""Budgets of what is done once: its program is stopped, and the same attempt goes on once a person raises them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import budgets, registry
from acp_core.agents.assignment import perform
from acp_core.agents.program import Program
from acp_core.agents.session import Session
from acp_core.agents.state import Phase, Run, RunnerState
from acp_core.model.errors import Refused
from tests.agents.support import FOLDER, script, wait_for
from tests.agents.test_assignments import Chore

RUN = "run 1"
DEAR = """\
import json
open("started", "a").write("x")
dear = not os.path.exists("cheap")
for _ in range(3 if dear else 1):
    part = {"reason": "tool-calls", "cost": 0.5, "tokens": {"input": 100, "output": 10}}
    print(json.dumps({"type": "step_finish", "part": part}), flush=True)
time.sleep(600 if dear else 0)
"""


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))


class Errand(Chore):
    """One whose program says what it costs while it works."""

    def __init__(self, folder: Path, key: str = "errand/1", **more: Any) -> None:
        super().__init__(script(folder, DEAR), key)
        self.leaves = more.get("leaves", False)
        self.turn = "errand"
        self.over: list[str] = []
        self.unwanted = ""

    def program(self) -> Program:
        made = super().program()
        return replace(made, preset=replace(made.preset, stream="opencode"))

    def counts(self, run: Run) -> bool:
        return True

    def withdrawn(self) -> str:
        return self.unwanted

    def held(self, why: str) -> None:
        self.over.append(why)


def do(work: Errand, name: str = "ann", run_id: str = RUN) -> Run:
    with Session.of(work.program(), name, run_id=run_id) as session:
        return perform(session, work)


def in_thread(work: Errand) -> Callable[[], Run]:
    """Do it beside the test; what gives its attempt."""
    found: list[Run] = []
    thread = threading.Thread(target=lambda: found.append(do(work)))
    thread.start()

    def end() -> Run:
        thread.join(60)
        assert not thread.is_alive()
        return found[0]

    return end


def shown(name: str = "ann") -> RunnerState:
    found = registry.find(FOLDER, name)
    assert found is not None
    return found


def parked(name: str = "ann") -> RunnerState:
    wait_for(lambda: registry.find(FOLDER, name), "its state")
    wait_for(lambda: shown(name).shown.capped, "the budget to be used up")
    return shown(name)


def starts(folder: Path) -> int:
    return len((folder / "started").read_text()) if (folder / "started").exists() else 0


@pytest.mark.parametrize(
    "scope",
    [
        each if each in ("turn", "day") else pytest.param(each, marks=pytest.mark.slow)
        for each in budgets.SCOPES
    ],
)
def test_a_program_is_stopped_and_the_attempt_goes_on_when_the_budget_is_raised(
    tmp_path: Path, scope: str
) -> None:
    budgets.choose(FOLDER, RUN, [f"{scope}=1.2usd"])
    work = Errand(tmp_path)
    end = in_thread(work)
    held = parked()
    assert (held.phase, held.alive) == (Phase.GAVE_UP, True)
    assert "is used up: $1.50 of $1.20" in held.shown.note
    assert held.run is not None and held.run.stopped == held.shown.note
    assert work.over == [held.shown.note]
    (tmp_path / "cheap").touch()
    budgets.raise_to(budgets.parse(f"{scope}=9usd"), FOLDER, "ann", RUN, datetime.now(UTC))
    run = end()
    assert (run.number, run.exit_code, run.stopped) == (2, 0, "")
    assert starts(tmp_path) == 2
    assert not shown().shown.capped


def test_a_session_that_was_killed_while_it_held_starts_nothing_again(tmp_path: Path) -> None:
    (tmp_path / "cheap").touch()
    do(Errand(tmp_path))
    budgets.choose(FOLDER, RUN, ["participant=0.4usd"])
    for _ in range(2):  # somebody starts it again and again
        work = Errand(tmp_path, "errand/2", leaves=True)
        run = do(work)
        assert run.stopped == "the budget for this participant is used up: $0.50 of $0.40"
        assert shown().shown.capped
    assert starts(tmp_path) == 1
    budgets.raise_to(budgets.parse("participant=9usd"), FOLDER, "ann", RUN, datetime.now(UTC))
    assert do(Errand(tmp_path, "errand/2")).exit_code == 0
    assert starts(tmp_path) == 2


def test_an_attempt_that_a_budget_stopped_is_made_anew_by_the_next_session(tmp_path: Path) -> None:
    budgets.choose(FOLDER, RUN, ["turn=1.2usd"])
    stopped = do(Errand(tmp_path, leaves=True))
    assert budgets.stopped_it(stopped.stopped)
    (tmp_path / "cheap").touch()
    budgets.raise_to(budgets.parse("turn=9usd"), FOLDER, "ann", RUN, datetime.now(UTC))
    assert (do(Errand(tmp_path)).exit_code, starts(tmp_path)) == (0, 2)


def test_what_nobody_wants_any_more_waits_for_no_budget(tmp_path: Path) -> None:
    budgets.choose(FOLDER, RUN, ["turn=1.2usd"])
    work = Errand(tmp_path)
    end = in_thread(work)
    parked()
    work.unwanted = "a person decided: skip"
    run = end()
    assert (run.exit, run.stopped) == ("was not started", "a person decided: skip")
    assert not shown().shown.capped


def test_all_attempts_at_a_turn_count_and_another_turn_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "cheap").touch()
    budgets.choose(FOLDER, RUN, ["turn=0.9usd"])
    assert do(Errand(tmp_path, "errand/1")).exit_code == 0
    do(Errand(tmp_path, "errand/2", leaves=True))  # it began below the limit
    assert "used up: $1.00 of $0.90" in do(Errand(tmp_path, "errand/3", leaves=True)).stopped
    other = Errand(tmp_path, "other/1")
    other.turn = "other"
    assert do(other).exit_code == 0


def test_a_share_of_a_budget_is_warned_of_and_shared_by_all_who_take_part(tmp_path: Path) -> None:
    (tmp_path / "cheap").touch()
    budgets.choose(FOLDER, RUN, ["collaboration=0.6usd"])
    do(Errand(tmp_path))
    of_ben = Errand(tmp_path, "errand/2", leaves=True)
    do(of_ben, "ben")  # it begins below the limit
    assert "the budget for this collaboration is used to 83%" in Path(shown("ben").log).read_text()
    assert "is used up: $1.00 of $0.60" in do(Errand(tmp_path, "errand/3", leaves=True)).stopped


def test_the_settings_cap_everything_and_another_run_has_its_own_budgets(tmp_path: Path) -> None:
    (tmp_path / "cheap").touch()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text('[budgets]\ncollaboration = "0.4usd"\n')
    do(Errand(tmp_path, leaves=True))  # it begins below the limit
    assert "used up" in do(Errand(tmp_path, "errand/2", leaves=True)).stopped
    budgets.choose(FOLDER, RUN, ["collaboration=9usd"])  # what is chosen counts more
    assert do(Errand(tmp_path, "errand/2")).exit_code == 0
    do(Errand(tmp_path, "errand/8", leaves=True), run_id="run 2")
    assert "$0.50 of $0.40" in do(Errand(tmp_path, "errand/9", leaves=True), run_id="run 2").stopped


def test_what_was_raised_for_a_day_ends_with_it(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    budgets.choose(FOLDER, RUN, ["day=1usd"])
    budgets.raise_to(budgets.parse("day=5usd"), FOLDER, "ann", RUN, now)

    def cap(folder: str, at: datetime) -> list[str]:
        return [str(each) for each in budgets.in_force(folder, "ann", RUN, lambda: at)()]

    assert cap(FOLDER, now) == ["day=5usd"]
    assert cap(FOLDER, now + timedelta(days=1)) == ["day=1usd"]
    assert cap("/another", now) == []  # it raises what is there, and caps nobody else
    budgets.raise_to(budgets.parse("turn=3usd"), FOLDER, "ann", RUN, now)
    budgets.choose(FOLDER, RUN, ["turn=2usd"])  # chosen anew: what was raised before is forgotten
    assert cap(FOLDER, now + timedelta(days=1)) == ["day=1usd", "turn=2usd"]
    with pytest.raises(Refused, match="must be one of"):
        budgets.choose(FOLDER, RUN, ["week=2usd"])
    for file in (tmp_path / "state" / "budgets").iterdir():
        file.write_text('{"run": 7, "everyone": ["x"], "own": []}')
    assert cap(FOLDER, now) == []
