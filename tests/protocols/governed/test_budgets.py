"""Budgets of roles: a turn that is capped is parked with a need, and goes on once a person raises the budget."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.agents.loop_directory import place
from acp_core.fleet import Fleet
from acp_core.person import paths
from tests.agents.live.commands import acp, begin, configure
from tests.agents.live.support import left_of
from tests.agents.support import wait_for
from tests.protocols.governed import playing
from tests.support import paid


def is_capped(root: Path) -> bool:
    loop = registry.find(str(root), "pm")
    return loop is not None and loop.shown.capped


def raised(root: Path, budget: str) -> str:
    ended = acp("act", root, "raise_budget", "--budget", budget, "--yes")
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.slow
def test_a_capped_role_is_parked_with_a_need_and_takes_its_turn_when_the_budget_is_raised(
    tmp_path: Path,
) -> None:
    root = playing.repository(tmp_path / "lamp")
    paid.settings(*shlex.split(playing.agent(tmp_path / "bin")))
    assert acp("governed", "init", root, "--goal", "Light", "--agent", "pm=paid").returncode == 0
    assert acp("governed", "step", root, "--budget", "participant=x").returncode == 2
    assert acp("governed", "step", root).returncode == 0
    words = ("--reason", "Say more", "--by", "ben", "--yes")
    assert acp("governed", "reject-turn", root, *words).returncode == 0
    step = begin("governed", "step", root, "--budget", "participant=0.2usd")
    wait_for(lambda: is_capped(root), "the role to be held")
    (snapshot,) = Fleet([root], discover=False).read()
    (need,) = [each for each in snapshot.needs if each.remedy == "raise_budget"]
    assert need.about.participant == "pm"
    assert "the budget for this participant is used up: $0.25 of $0.20" in need.sentence
    assert "B2" not in {each.code for each in snapshot.causes}  # nobody died
    assert "pm continues" in raised(root, "participant=9usd")
    said, _ = step.communicate(timeout=120)
    assert step.returncode == 0, said
    assert "is used up" in said and "raise_budget" in said and "staged:" in said


@pytest.mark.slow
def test_a_live_turn_is_cancelled_at_its_budget_and_goes_on_when_it_is_raised(
    tmp_path: Path,
) -> None:
    root = playing.repository(tmp_path / "lamp")
    configure(tmp_path / "agent", playing.agent(tmp_path / "bin"), behaviour="spend act")
    assert acp("governed", "init", root, "--goal", "Light", "--agent", "pm=mine").returncode == 0
    with (paths.config_folder() / "config.toml").open("a") as file:
        file.write('[permissions]\npolicy = "all"\n')
    step = begin("governed", "step", root, "--budget", "turn=3ktokens")
    wait_for(lambda: is_capped(root), "the turn to be stopped")
    loop = registry.find(str(root), "pm")
    assert loop is not None and loop.run is not None and loop.run.live
    assert "the budget for this turn is used up: 5,000 of 3,000 tokens" in loop.run.stopped
    raised(root, "turn=90ktokens")
    said, _ = step.communicate(timeout=120)
    assert step.returncode == 0 and "staged:" in said, said
    assert [each.name for each in (tmp_path / "agent" / "home").iterdir()] == ["s0"]
    assert left_of(place(str(root), "pm")) == []
