"""Budgets of sub-agents: one that is capped is parked with a need, and its task is done once a person raises it."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.agents import registry
from acp_core.cli.main import run as acp_main
from acp_core.fleet import Fleet
from tests.agents.support import wait_for
from tests.protocols.workspaces.running import acp, begun, entries, prepare, program, states
from tests.support import paid


def capped(root: Path) -> list[str]:
    return [each.participant for each in registry.runners(str(root)) if each.shown.capped]


def dispatched(tmp_path: Path, budget: str) -> Path:
    """Two tasks of $0.25 each, one after the other, of which a budget allows one."""
    root = prepare(tmp_path / "run", "ann", "ben")
    paid.settings(*program(tmp_path / "beside"))
    ended = acp(
        "dispatch", root, "--program", "paid", "--jobs", "1", "--detach", "--budget", budget
    )
    assert ended.code == 0, ended.text
    wait_for(lambda: capped(root), "an agent to be held")
    return root


@pytest.mark.parametrize("scope", ["collaboration", pytest.param("day", marks=pytest.mark.slow)])
def test_a_capped_task_is_parked_with_a_need_and_done_when_the_budget_is_raised(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], scope: str
) -> None:
    root = dispatched(tmp_path, f"{scope}=0.2usd")
    (held,) = capped(root)
    assert begun(tmp_path / "beside") == [each for each in ("ann", "ben") if each != held]
    (snapshot,) = Fleet([root], discover=False).read()
    need = next(each for each in snapshot.needs if each.remedy == "raise_budget")
    assert need.about.participant == held and "is used up: $0.25 of $0.20" in need.sentence
    words = ["act", str(root), "raise_budget", "--budget", f"{scope}=9usd", "--yes"]
    assert acp_main(words, lambda paths, settings: 99) == 0
    assert f"{held} continues" in capsys.readouterr().out
    wait_for(lambda: set(states(root).values()) == {"success"}, "both tasks to be done")
    assert sorted(begun(tmp_path / "beside")) == ["ann", "ben"]
    assert {each["attempt"] for each in entries(root).values()} == {1}


@pytest.mark.slow
def test_a_task_that_a_person_gives_up_waits_for_no_budget(tmp_path: Path) -> None:
    root = dispatched(tmp_path, "collaboration=0.2usd")
    (held,) = capped(root)
    ended = acp("triage", root, held, "gap", "--reason", "Too dear")
    assert ended.code == 0, ended.text
    wait_for(lambda: entries(root)[held].get("ended_at"), "the end of the attempt")
    assert entries(root)[held]["exit"] == "was not started (a person decided: gap)"
    assert capped(root) == []


def test_a_budget_that_is_none_is_refused_before_anything_starts(tmp_path: Path) -> None:
    root = prepare(tmp_path / "run", "ann")
    paid.settings(*program(tmp_path / "beside"))
    ended = acp("dispatch", root, "--program", "paid", "--budget", "turn=many")
    assert ended.code == 2 and "must be an amount such as" in ended.text
    assert begun(tmp_path / "beside") == []
