"""An agent's documents stay as it wrote them: what another run changes is put back, and said."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.protocols.cycle.collaboration import Cycles
from acp_core.protocols.cycle.read import orchestrator_spec
from tests.protocols.cycle import conducting
from tests.protocols.cycle.conducting import ID, acp, calls, progress, state
from tests.protocols.cycle.making import NOW
from tests.support.private import open_to_others

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def conduct(root: Path, *words: str, **behaviour: list[str]) -> tuple[int, str]:
    """A whole cycle in this process, until it is over or a person is wanted; its code and log."""
    conducting.behave(root, **behaviour)
    code, out, _ = acp(
        "start", conducting.WHAT, "--folder", str(root), "--cycle", ID, "--command",
        conducting.AGENT, "--foreground", "--leave", *words,
    )  # fmt: skip
    return code, out


def findings(root: Path) -> list[str]:
    found = Cycles(str(root)).refresh(NOW).findings
    return [f"{each.severity.value}: {each.message}" for each in found if each.code == "A96"]


def written(root: Path) -> str:
    return (progress(root) / "ra/requirements.md").read_text()


@pytest.mark.parametrize("how", ["overwrite", "erase"])
def test_what_another_agent_wrote_over_is_put_back_and_said(tmp_path: Path, how: str) -> None:
    code, out = conduct(tmp_path, cd=[f"{how} ra/requirements.md"])
    assert code == 0
    assert written(tmp_path) == "# Requirements - v1.0.0\n\n- FR-001: export as CSV\n"
    assert "cd changed ra/requirements.md, which only ra writes: put back" in out
    told = ["warning: cd changed ra/requirements.md, which only ra writes; acp restored it"]
    assert findings(tmp_path) == told
    (row,) = state(tmp_path)["coordination"]["overwrites"]
    assert (row["run"], row["put_back"]) == ("1-cd", True)
    assert open_to_others() == []
    if how == "overwrite":
        assert "cd says so" in (progress(tmp_path) / row["kept_as"]).read_text()
    timeline = (progress(tmp_path) / "coordination/timeline.md").read_text()
    assert timeline.count("cd changed ra/requirements.md") == 1


@pytest.mark.slow
def test_what_an_agent_writes_again_itself_is_its_own(tmp_path: Path) -> None:
    code, _ = conduct(tmp_path, cd=["ask ra", "buggy"])
    assert code == 0
    assert findings(tmp_path) == []
    assert "overwrites" not in state(tmp_path)["coordination"]


@pytest.mark.slow
def test_what_a_person_changes_between_two_runs_stays(tmp_path: Path) -> None:
    assert conduct(tmp_path, cd=["ask user"])[0] == 4
    mine = written(tmp_path) + "\n- FR-002: mine\n"
    (progress(tmp_path) / "ra/requirements.md").write_text(mine)
    acp("decide", "DEC-001", "1", "--folder", str(tmp_path))
    conducting.wait_for_end(tmp_path)
    assert state(tmp_path)["status"] == "completed"
    assert written(tmp_path) == mine


def lose_copies(root: Path) -> None:
    """Remove the copies that the orchestrator keeps; it still knows what they were."""
    for each in (orchestrator_spec.where(str(root)).folder / f"outputs-{ID}").iterdir():
        if each.name != "digests.json":
            each.unlink()


@pytest.mark.slow
def test_what_cannot_be_put_back_is_a_persons_to_decide(tmp_path: Path) -> None:
    conducting.start(tmp_path, cd=["hold"])
    conducting.wait_for(lambda: "start cd" in log(tmp_path), "CD to be at work")
    lose_copies(tmp_path)
    requirements = progress(tmp_path) / "ra/requirements.md"
    requirements.write_text("# Requirements - v1.0.0\n\nNothing\n")
    (tmp_path / "go").touch()
    asked = conducting.wait_for_status(tmp_path, "paused", "completed")
    (decision,) = asked["coordination"]["pending_decisions"]
    assert decision["agent"] == "ra"
    assert decision["options"] == ["Run it again", "Continue anyway", "Stop the cycle"]
    (found,) = findings(tmp_path)
    assert found.startswith("error: cd changed ra/requirements.md")
    acp("decide", "DEC-001", "2", "--folder", str(tmp_path))
    ended = conducting.wait_for_status(tmp_path, "completed")
    assert ended["agents"]["ra"]["run"] == "1-ra"
    assert calls(tmp_path)[-1].startswith("vas")


def log(root: Path) -> str:
    path = root / "calls.log"
    return path.read_text() if path.exists() else ""
