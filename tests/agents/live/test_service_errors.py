"""Every way in which a live agent tells that its model service refuses it is understood as what it is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.agents.failures import FailureClass, failure_of
from acp_core.agents.state import Run
from acp_core.loops.attempts import LATE
from tests.agents.live.support import Participant
from tests.agents.service_errors import LATER, OPENED, PROMPTED, WEEKLY

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
UNTIL = {
    "": None,
    WEEKLY: datetime(2026, 11, 25, 10, 40, tzinfo=UTC),
    LATER: NOW + timedelta(minutes=10),
}
SHAPES = ("claude", "codex", "opencode", "gemini", "qwen")


def late(run: Run) -> str:
    """The time of the turn is over once the agent was asked, and works or keeps silent."""
    return LATE if run.silent or run.retrying or run.tool else ""


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_every_answer_of_a_refused_agent_has_its_class(tmp_path: Path, shape: str) -> None:
    names = [name for name in PROMPTED if name.startswith(f"{shape}/")]
    ann = Participant(tmp_path, "--shape", shape, behaviour=" ".join(names))
    with ann.session:
        for name in names:
            row = PROMPTED[name]
            run = ann.take_turn(late if row.silent else lambda run: "")
            found = failure_of(replace(run, started=NOW, ended=NOW), {}, NOW)
            assert found.is_dated == (row.field is not None), name
            assert (found.kind.value, found.until) == (row.kind, UNTIL[row.until]), (name, run)
            assert bool(run.stopped) == row.silent, name


@pytest.mark.parametrize("name", OPENED)
def test_an_agent_without_a_login_is_understood_when_its_session_begins(
    tmp_path: Path, name: str
) -> None:
    ann = Participant(tmp_path, "--shape", name.partition("/")[0], "--login", "none")
    with ann.session:
        assert failure_of(ann.take_turn(), {}, NOW).kind is FailureClass.LOGIN


@pytest.mark.slow
def test_an_agent_that_worked_until_its_time_was_over_had_no_trouble_with_its_service(
    tmp_path: Path,
) -> None:
    ann = Participant(tmp_path, behaviour="hang")
    with ann.session:
        run = ann.take_turn(lambda run: LATE if run.tool else "")
        assert run.stopped == LATE
        assert failure_of(run, {}, NOW).kind is FailureClass.AGENT
