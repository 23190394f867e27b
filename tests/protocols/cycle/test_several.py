"""Several cycles in one project: one is shown, the others are not forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.model import OutcomeState
from acp_core.model.clock import utc_now
from acp_core.protocols.cycle.collaboration import Cycles, open_cycles
from acp_core.protocols.cycle.read import scan
from tests.protocols.cycle import conducting, making
from tests.protocols.cycle.conducting import done, refused
from tests.protocols.cycle.making import HOME, NOW, coordination, decision, state, write

pytestmark = pytest.mark.usefixtures("nothing_is_left")

OTHER = "cycle-v1-20260301T180000-tooltips"


def project(root: Path, word: str = "paused") -> Cycles:
    """A cycle at work, and an older one in which a person is asked."""
    making.cycle(root)
    asked = coordination(pending_decisions=[decision()])
    held = state(word, cycle_id=OTHER, title="Tooltips", coordination=asked,
                 updated_at="2026-03-01T19:00:00+08:00")  # fmt: skip
    write(root, f"{HOME}/{OTHER}.json", held)
    return open_cycles(str(root))


def test_the_one_that_waits_elsewhere_is_told_once_and_shown_on_demand(tmp_path: Path) -> None:
    cycles = project(tmp_path)
    first = cycles.refresh(NOW)
    assert first.name == "Export as CSV"
    (need,) = [each for each in first.needs if each.code == "elsewhere"]
    assert need.sentence == "Another cycle needs you: Tooltips: Large exports"
    rows = next(each for each in first.panels if each.id == "cycles").rows
    assert [(row.cells[0], row.target.action) for row in rows] == [
        ("Tooltips", "select"), ("Export as CSV", None),
    ]  # fmt: skip
    show = next(each for each in cycles.actions(NOW) if each.name == need.remedy)
    given = show.inputs(**dict(need.given))
    assert OTHER in show.preview(given).sentence
    before = sorted(tmp_path.rglob("*"))
    assert show.perform(given).state is OutcomeState.DONE
    assert sorted(tmp_path.rglob("*")) == before
    then = cycles.refresh(NOW)
    assert then.name == "Tooltips"
    assert [each.code for each in then.needs] == ["decision"]
    assert "decide" in [each.name for each in cycles.actions(NOW)]
    assert done(tmp_path, "decide", "DEC-001", "1")["cycle"] == OTHER
    show = next(each for each in cycles.actions(NOW) if each.name == "select")
    show.perform(show.inputs(cycle="the active cycle"))
    assert cycles.refresh(NOW).name in ("Tooltips", "Export as CSV")
    assert scan.wanted(tmp_path) == ""


def test_one_that_is_over_is_no_need(tmp_path: Path) -> None:
    needs = project(tmp_path, "completed").refresh(NOW).needs
    assert "elsewhere" not in [each.code for each in needs]


def test_alone_there_is_nothing_to_choose(tmp_path: Path) -> None:
    cycles = open_cycles(str(making.cycle(tmp_path)))
    cycles.refresh(NOW)
    assert "select" not in [each.name for each in cycles.actions(NOW)]
    scan.choose(tmp_path, "cycle-gone")  # it was removed since
    assert cycles.refresh(NOW).name == "Export as CSV"


def test_one_orchestrator_conducts_one_cycle_at_a_time(tmp_path: Path) -> None:
    conducting.start(tmp_path, ra=["sleep 60"])
    second = "cycle-v1-20260302T190000-tooltips"
    done(tmp_path, "start", "Tooltips", "--cycle", second, "--no-run")
    assert "is already running in this project" in refused(
        tmp_path, "run", "--cycle", second, "--command", conducting.AGENT
    )
    told = done(tmp_path, "feedback", "cd", "Use a comma", "--cycle", second)
    assert f"the project's orchestrator is running {conducting.ID}" in told["sentence"]
    told = done(tmp_path, "status", "--cycle", second)
    assert (told["cycle"], told["conducts"]) == (second, conducting.ID)
    cycles = open_cycles(str(tmp_path))
    scan.choose(tmp_path, second)
    assert cycles.refresh(utc_now()).name == "Tooltips"
    pause = next(each for each in cycles.actions(utc_now()) if each.name == "extend")
    shown = pause.preview(pause.inputs(text="And more"))
    assert "this cycle has to wait" in str(shown.warnings)
