"""What answers cost counts in the budget of the day, with what loops and other runs cost."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from acp_core.agents import budgets, presets
from acp_core.model.clock import utc_now
from acp_core.protocols.wire.conduct.answering import USED_UP, Costs
from tests.agents.support import end_what_runs
from tests.protocols.wire.support import served, until
from tests.protocols.wire.test_answering import settled, task_of
from tests.protocols.wire.test_answering_live import answer, held, live


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ACP_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ACP_CONFIG", str(tmp_path / "config"))
    yield
    end_what_runs(tmp_path)


def budget(day: str) -> None:
    folder = Path(os.environ["ACP_CONFIG"])
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(f'[budgets]\nday = "{day}"\n')


def today() -> tuple[int, int]:
    """The tokens of the day, and its cents."""
    spent = budgets.spent_on(utc_now())
    return spent.tokens, round(100 * spent.usd)


def test_answers_count_and_none_is_begun_once_the_day_is_used_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    budget("0.01usd")
    with served(tmp_path, on_message=live(tmp_path / "a")) as agent:
        answer(agent, "Ann", "c1")
        assert today() == (1050, 1)
        refused = settled(agent, task_of(agent, "once more")["id"])
        assert (refused["status"], refused["error"]) == ("failed", USED_UP)
    assert today() == (1050, 1)
    assert "the budget for today is used up: $0.01 of $0.01" in caplog.text


@pytest.mark.slow
def test_an_answer_is_stopped_when_the_day_is_used_up_meanwhile(tmp_path: Path) -> None:
    budget("4ktokens")
    with served(tmp_path, on_message=live(tmp_path / "a", behaviour="spend")) as agent:
        stopped = settled(agent, task_of(agent, "work")["id"])
        assert (stopped["status"], stopped["error"]) == ("failed", USED_UP)
        until(lambda: held(tmp_path) == [], "everybody's end")
    assert today()[0] >= 4_000


def test_an_attempt_is_counted_once_whoever_saw_its_end(tmp_path: Path) -> None:
    once = replace(presets.any_command(["true"]), stream="claude")
    folder = tmp_path / "attempt"
    folder.mkdir()
    (folder / "out").write_text('{"type": "result", "total_cost_usd": 0.25, "result": "done"}\n')
    for _ in range(2):  # an agent, and the one after it
        Costs("wire://A", "A", once).count(folder, live=False)
    assert today() == (0, 25)
