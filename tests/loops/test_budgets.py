"""Budgets: a loop warns, stops its program or starts none, and goes on once a person raises them."""

from __future__ import annotations

import json
import os
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from acp_core.agents import budgets, presets, registry
from acp_core.agents.budgets import Cap, Spent, Use, caps_of
from acp_core.agents.presets import Preset
from acp_core.agents.state import Phase
from acp_core.cli.main import run as acp_main
from acp_core.fleet import Fleet
from acp_core.loops.acts.names import RAISE
from acp_core.model.errors import Refused
from tests.agents.support import wait_for
from tests.loops.support import (
    append,
    events,
    log,
    make,
    stand_in,
    start,
    state,
    wait_for_phase,
    wait_for_turns,
)
from tests.protocols.folder.support import make_v1
from tests.support import paid

DEAR = """\
import json, sys, time
sys.stdin.read()
for _ in range({steps}):
    part = {{"reason": "tool-calls", "cost": 0.5, "tokens": {{"input": 100, "output": 10}}}}
    print(json.dumps({{"type": "step_finish", "part": part}}), flush=True)
time.sleep(600)
"""


def acp(*words: str) -> int:
    return acp_main(list(words), lambda paths, settings: 99)


def dear(folder: Path, steps: int) -> Preset:
    """A program that tells what it costs while it works, and works for long."""
    path = folder / "dear.py"
    path.write_text(DEAR.format(steps=steps))
    return presets.parse(
        "dear", {"program": sys.executable, "args": [str(path)], "stream": "opencode"}
    )


def paying(folder: Path) -> Preset:
    """The stand-in, whose turns cost $0.25 and 1,100 tokens each, told at their end."""
    paid.settings(stand_in(folder, "agent"))
    from acp_core.person.settings import load

    return presets.load(load().presets)["paid"]


def capped(folder: Path, name: str, preset: Preset, *caps: str, **more: Any) -> str:
    """Start a loop with budgets; what it says once it holds."""
    start(folder, name, preset, caps=tuple(map(budgets.parse, caps)), **more)
    wait_for_phase(folder, name, Phase.GAVE_UP)
    assert state(folder, name).shown.capped
    return state(folder, name).shown.note


def test_a_turn_that_uses_up_its_budget_is_stopped_while_it_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "c")
    note = capped(folder, "server", dear(tmp_path, 3), "turn=1usd")
    assert note == "the budget for this turn is used up: $1.50 of $1.00"
    run = state(folder, "server").run
    assert run is not None and run.stopped == note and run.number == 1
    assert state(folder, "server").shown.attempt == 1
    assert acp("why", str(folder), "--json") == 1
    told = capsys.readouterr().out
    assert "server's loop holds: the budget for this turn is used up" in told
    assert "raise_budget" in told
    assert acp("act", str(folder), "raise_budget", "--budget", "turn=1.2usd", "--yes") == 2
    assert "is not enough: $1.50 of $1.00 are used" in capsys.readouterr().out
    assert acp("act", str(folder), "raise_budget", "--budget", "turn=100usd", "--yes") == 0
    assert "server continues" in capsys.readouterr().out
    wait_for(lambda: getattr(state(folder, "server").run, "number", 0) == 2, "another attempt")
    assert not state(folder, "server").shown.capped


def test_what_is_told_at_the_end_of_a_turn_stops_the_next_one(tmp_path: Path) -> None:
    folder, preset = make(tmp_path / "c"), paying(tmp_path)
    start(folder, "server", preset, caps=(Cap("participant", "usd", 0.2),))
    wait_for_turns(folder, "server", 1)
    assert events(folder)[-1]["event"] == "proposal_submitted"  # it had begun: it was let end
    for name in ("reader", "reviewer"):
        append(folder, name, "review_submitted", 2)
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    assert "for this participant is used up: $0.25 of $0.20" in state(folder, "server").shown.note
    assert events(folder)[-1]["from"] == "reviewer"


def test_a_turn_that_somebody_else_takes_ends_the_hold(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    capped(folder, "server", dear(tmp_path, 3), "turn=1usd")
    append(folder, "server", "proposal_submitted", 1)
    wait_for_phase(folder, "server", Phase.WAITING)
    assert not state(folder, "server").shown.capped


def test_the_loops_of_a_collaboration_share_a_budget(tmp_path: Path) -> None:
    folder, preset = make(tmp_path / "c"), paying(tmp_path)
    start(folder, "server", preset)
    wait_for_turns(folder, "server", 1)
    note = capped(folder, "reader", preset, "collaboration=1ktokens")
    assert note == "the budget for this collaboration is used up: 1,100 of 1,000 tokens"
    assert events(folder)[-1]["from"] == "server"


def test_a_budget_of_the_day_counts_all_collaborations_until_midnight(tmp_path: Path) -> None:
    preset = paying(tmp_path)
    first, second = make(tmp_path / "a"), make(tmp_path / "b")
    start(first, "server", preset)
    wait_for_turns(first, "server", 1)
    note = capped(second, "server", preset, "day=1ktokens", "day=9usd")
    assert note == "the budget for today is used up: 1,100 of 1,000 tokens"
    assert len(events(second)) == 1
    now = datetime.now(UTC)
    assert budgets.spent_on(now) == Spent(1_100, paid.COST)
    assert budgets.spent_on(now + timedelta(days=1)) == Spent()


def test_a_budget_that_is_nearly_used_up_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, preset = make(tmp_path / "c"), paying(tmp_path)
    start(folder, "server", preset, caps=(Cap("participant", "usd", 0.3),))
    wait_for_turns(folder, "server", 1)
    for name in ("reader", "reviewer"):
        append(folder, name, "review_submitted", 2)
    wait_for_turns(folder, "server", 2)
    assert "the budget for this participant is used to 83%: $0.25 of $0.30" in log(folder, "server")
    assert acp("ps", str(folder), "--json") == 0
    (loop,) = json.loads(capsys.readouterr().out)["loops"]
    (use,) = loop["budget"]
    assert (use["scope"], use["unit"], use["limit"]) == ("participant", "usd", 0.3)


def test_a_budget_that_is_nearly_used_up_needs_a_person_before_anything_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = make(tmp_path / "c")
    start(folder, "server", dear(tmp_path, 9), caps=(Cap("turn", "usd", 5.0),))
    wait_for(lambda: [use.is_near for use in state(folder, "server").shown.budget] == [True], "80%")
    (snapshot,) = Fleet([folder], discover=False).read()
    (need,) = snapshot.needs
    assert need.sentence == "server: the budget for this turn is used to 90%: $4.50 of $5.00"
    assert need.remedy == RAISE and dict(need.given)["budget"] == "turn=10usd"
    assert acp("act", str(folder), "raise_budget", "--budget", "turn=10usd", "--yes") == 0
    wait_for(lambda: not Fleet([folder], discover=False).read()[0].needs, "no need any more")
    assert state(folder, "server").phase is Phase.RUNNING
    capsys.readouterr()


def test_a_hold_uses_up_nothing_of_the_time_of_a_turn(tmp_path: Path) -> None:
    folder = make(tmp_path / "c")
    capped(folder, "server", dear(tmp_path, 3), "turn=1usd", turn_limit=3600.0)
    wait_for(lambda: state(folder, "server").shown.turn_deadline is None, "no limit")
    assert acp("act", str(folder), "raise_budget", "--budget", "turn=100usd", "--yes") == 0
    raised = datetime.now(UTC)
    wait_for(lambda: getattr(state(folder, "server").run, "number", 0) == 2, "another attempt")
    until = state(folder, "server").shown.turn_deadline
    assert until and until > raised + timedelta(seconds=3590)


@pytest.mark.slow
@pytest.mark.parametrize("scope", budgets.SCOPES)
def test_each_budget_of_a_launch_stops_the_agent_and_continues_when_it_is_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scope: str
) -> None:
    folder, program = make(tmp_path / "c"), stand_in(tmp_path, "agent")
    paid.settings(program)
    spender = dear(tmp_path, 3).args[0]
    (tmp_path / "config" / "config.toml").open("a").write(
        f'[presets.dear]\nprogram = "{sys.executable}"\nargs = ["{spender}"]\nstream = "opencode"\n'
    )
    words = ("launch", str(folder), "server=dear", "--budget", f"{scope}=1.2usd")
    assert acp(*words) == 0, capsys.readouterr().err
    wait_for_phase(folder, "server", Phase.GAVE_UP)
    shown = state(folder, "server").shown
    assert shown.capped and "is used up: $1.50 of $1.20" in shown.note
    run = state(folder, "server").run
    assert run is not None and run.stopped == shown.note
    assert acp("why", str(folder)) == 1
    assert "raise_budget" in capsys.readouterr().out
    assert acp("act", str(folder), "raise_budget", "--budget", f"{scope}=100usd", "--yes") == 0
    wait_for(lambda: getattr(state(folder, "server").run, "number", 0) == 2, "another attempt")


def test_money_that_a_program_does_not_tell_is_said_to_be_unknown() -> None:
    found = budgets.uses([Cap("turn", "usd", 2)], {"turn": Spent(5_000, 1.7, unknown=True)})
    assert found[0].figures == "≥$1.70 of $2.00"
    assert Use("turn", "tokens", 9, 10).figures == "9 of 10 tokens"


def test_budgets_come_from_the_settings_and_the_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    usual = {"turn": "2usd, 500ktokens", "day": "20usd"}
    assert set(caps_of(usual, ["turn=3usd"])) == {
        Cap("turn", "usd", 3.0),
        Cap("turn", "tokens", 500_000.0),
        Cap("day", "usd", 20.0),
    }
    for wrong in ("turn", "turn=", "turn=2", "turn=0usd", "week=2usd", "turn=-1usd"):
        with pytest.raises(Refused):
            budgets.parse(wrong)
    folder, program = make(tmp_path / "c"), stand_in(tmp_path, "agent")
    config = tmp_path / "config" / "config.toml"
    config.parent.mkdir()
    config.write_text('[budgets]\nday = "20"\n')
    assert acp("launch", str(folder), "server", "--", program) == 2
    assert 'budgets.day: expected amounts such as "2.50usd"' in capsys.readouterr().err
    config.write_text('[budgets]\nday = "20usd"\n')
    words = ("launch", str(folder), "server", "--budget", "turn=1Mtokens", "--", program)
    assert acp(*words) == 0, capsys.readouterr().err
    wait_for_turns(folder, "server", 1)
    budget = {(use.scope, use.unit) for use in state(folder, "server").shown.budget}
    assert budget == {("day", "usd"), ("turn", "tokens")}
    assert registry.runners(str(folder))[0].alive, shlex.join(words)


def test_when_a_program_says_what_it_takes_is_said_before_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(tmp_path / "c")
    for name in ("claude", "gemini", "opencode"):
        stand_in(tmp_path, name)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def warnings(program: str, *more: str) -> str:
        words = (f"server={program}", "--budget", "turn=1usd", "--dry-run", "--json", *more)
        assert acp("launch", str(folder), *words) == 0
        (loop,) = json.loads(capsys.readouterr().out)["loops"]
        return " ".join(each for each in loop["warnings"] if "reports" in each)

    assert "at the end of an attempt: the budget stops the next one" in warnings("claude")
    assert "Gemini CLI never reports its cost: limit its tokens instead" in warnings("gemini")
    assert "at the end of a turn of its live session" in warnings("opencode")
    assert warnings("opencode", "--once") == ""


def test_ps_says_which_budget_is_nearly_used_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = make(tmp_path / "c")
    start(folder, "server", dear(tmp_path, 9), caps=(Cap("turn", "usd", 5.0),))
    wait_for(lambda: bool(state(folder, "server").shown.budget), "the first measure")
    wait_for(lambda: state(folder, "server").shown.budget[0].is_near, "the share")
    assert acp("ps", str(folder)) == 0
    assert "budget for this turn is used to 90%: $4.50 of $5.00" in capsys.readouterr().out


def test_the_budget_goes_before_what_is_open_in_the_turn_that_it_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A message to a loop that starts nothing changes nothing: it is not advised."""
    folder = make_v1(tmp_path, "decision_review")
    capped(folder, "server", dear(tmp_path, 3), "turn=1usd")
    assert acp("why", str(folder), "--json") == 1
    first, *others = json.loads(capsys.readouterr().out)["snapshot"]["causes"]
    assert (first["remedy"], first["participant"]) == ("raise_budget", "server")
    assert any("questions must be classified" in each["headline"] for each in others)
    assert not any(each["wanted"] or each["remedy"] == "nudge" for each in others)
    acp("status", str(folder), "--json")
    (row,) = json.loads(capsys.readouterr().out)["collaborations"]
    assert [need["action"] for need in row["needs"]] == ["raise_budget"]
