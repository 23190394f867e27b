"""Budgets of a cycle: an agent that is capped is parked with a need; it has neither crashed nor is it started again."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.cli.main import run as acp_main
from tests.agents.support import is_gone, wait_for
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import AGENT, ID, WHAT, acp, diagnosed, state, wait_for_end
from tests.support import paid

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def begin(root: Path, *words: str) -> None:
    paid.settings(*shlex.split(AGENT))
    conducting.behave(root)
    conducting.done(root, "start", WHAT, "--cycle", ID, "--agent", "paid", *words)


def is_capped(root: Path, name: str) -> bool:
    loop = registry.find(str(root), name)
    return loop is not None and loop.shown.capped


@pytest.mark.slow
def test_a_capped_agent_is_parked_with_a_need_and_the_cycle_completes_when_it_is_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(tmp_path, "--budget", "collaboration=0.4usd")  # an agent costs $0.25
    wait_for(lambda: is_capped(tmp_path, "cd"), "CD to be held")
    assert conducting.calls(tmp_path) == ["ra work", "ep work"]
    _, snapshot = diagnosed(tmp_path)
    (need,) = snapshot.needs
    assert "the budget for this collaboration is used up: $0.50 of $0.40" in need.sentence
    assert (need.about.participant, need.remedy) == ("cd", "raise_budget")
    assert dict(need.given)["budget"] == "collaboration=1usd"
    words = ["act", str(tmp_path), "raise_budget", "--budget", "collaboration=9usd", "--yes"]
    assert acp_main(words, lambda paths, settings: 99) == 0
    said = capsys.readouterr().out
    assert "cd continues" in said and "Fixed." in said
    assert wait_for_end(tmp_path)["status"] == "completed"
    assert conducting.runs(tmp_path) == ["1-ra@1", "1-ep@1", "1-cd@1", "1-vas@1"]  # begun once
    agents = state(tmp_path)["agents"]
    assert not any(each.get("attempts") for each in agents.values()), agents
    assert not state(tmp_path).get("phase_errors")


def test_an_orchestrator_that_leaves_where_a_person_is_waited_for_leaves_a_capped_agent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begin(tmp_path, "--budget", "participant=0.2usd", "--no-run")
    for _ in range(2):
        words = ("run", "--agent", "paid", "--foreground", "--leave", "--folder", str(tmp_path))
        code, out, err = acp(*words, "--budget", "collaboration=0.2usd")
        assert code == 4, (out, err)
        assert "ep: the budget for this collaboration is used up" in out
    assert conducting.calls(tmp_path) == ["ra work"]
    assert state(tmp_path)["agents"]["ep"]["status"] == "running"
    _, snapshot = diagnosed(tmp_path)
    assert "raise_budget" in {need.remedy for need in snapshot.needs}
    words = ["act", str(tmp_path), "raise_budget", "--budget", "collaboration=9usd", "--yes"]
    assert acp_main(words, lambda paths, settings: 99) == 0
    assert "start ep again" in capsys.readouterr().out
    _, snapshot = diagnosed(tmp_path)
    assert "raise_budget" not in {need.remedy for need in snapshot.needs}
    code, out, err = acp("run", "--foreground", "--folder", str(tmp_path), "--budget", "turn=x")
    assert code == 2 and "must be an amount such as" in err


@pytest.mark.slow
def test_an_orchestrator_that_is_killed_while_it_holds_holds_again(tmp_path: Path) -> None:
    begin(tmp_path, "--budget", "turn=0.2usd", "--budget", "collaboration=0.2usd")
    wait_for(lambda: is_capped(tmp_path, "ep"), "EP to be held")
    for each in registry.runners(str(tmp_path)):
        if each.participant == "orchestrator":
            os.kill(each.pid, signal.SIGKILL)
            wait_for(lambda each=each: is_gone(each.pid), "its end")
    conducting.done(tmp_path, "run", "--agent", "paid")
    wait_for(lambda: is_capped(tmp_path, "ep"), "EP to be held again")
    assert conducting.calls(tmp_path) == ["ra work"]
    assert state(tmp_path)["agents"]["ep"]["status"] == "running"
