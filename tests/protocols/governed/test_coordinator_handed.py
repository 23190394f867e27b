"""What is done in an initiative of the existing program's layout is handed to that program."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.model.action import OutcomeState
from acp_core.protocols.kit.diagnosis import DiagnosisContext
from tests.protocols.governed import house, making
from tests.protocols.governed.acting import (
    acted,
    initiative_actions,
    open_folder,
    refused,
    seen,
)
from tests.protocols.governed.test_engine_actions import asked
from tests.protocols.governed.test_engine_actions import stand_in as stand_in
from tests.protocols.governed.test_read import NOW

GATE = {
    "gate_type": "phase_transition", "gate": "phase_transition:planning->implementation",
    "from": "planning", "to": "implementation", "requested_at": making.AT,
}  # fmt: skip


def waiting(root: Path) -> Path:
    """An initiative whose cross-repo gate waits."""
    barriers = tuple(("all_repos_accepted", "pending", ()) for _ in house.WORK)
    streams = house.everywhere(making.state())
    return house.make_house(root, streams, barriers=barriers, status="paused", pending_gate=GATE)


def test_without_that_program_nothing_is_offered(tmp_path: Path) -> None:
    root = waiting(tmp_path / "house")
    assert initiative_actions(str(root)) == []
    (need,) = seen(root).needs
    assert need.code == "GATE" and need.remedy == ""
    refused("coordinator", "step", root)


def test_the_gate_is_opened_by_it(tmp_path: Path, stand_in: Path) -> None:
    root = waiting(tmp_path / "house")
    before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
    collaboration = open_folder(root)
    snapshot = collaboration.refresh(NOW)
    assert [need.remedy for need in snapshot.needs] == ["approve_barrier"]
    cause = next(c for c in collaboration.causes(DiagnosisContext(snapshot, NOW)) if c.code == "D9")
    assert cause.remedy == "approve_barrier"
    actions = {action.name: action for action in initiative_actions(str(root))}
    assert list(actions) == ["resync", "approve_barrier", "coordinate"]
    approve = actions["approve_barrier"]
    assert approve.preview(approve.inputs()).command == ("agentxchain", "multi", "approve-gate")
    done = approve.perform(approve.inputs())
    assert done.state is OutcomeState.DONE and "done by the program" in done.sentence
    assert asked(stand_in) == [["multi", "approve-gate"]]
    assert {p: p.read_bytes() for p in root.rglob("*") if p.is_file()} == before


def test_by_commands(tmp_path: Path, stand_in: Path) -> None:
    root = str(waiting(tmp_path / "house"))
    assert "runs: agentxchain multi approve-gate\n" in acted(
        "coordinator", "approve-barrier", root, "--dry-run"
    )
    refused("coordinator", "approve-barrier", root)  # nobody decides
    acted("coordinator", "approve-barrier", root, "--as", "Ann", "--yes")
    acted("coordinator", "step", root, "--json")
    acted("coordinator", "resync", root)
    assert asked(stand_in) == [["multi", "approve-gate"], ["multi", "step"], ["multi", "resync"]]
    (stand_in.parent / "log.mode").write_text("--fail")
    assert "Cannot do that" in refused("coordinator", "step", root)


def test_an_agent_opens_no_gate(
    tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = waiting(tmp_path / "house")
    approve = initiative_actions(str(root))[1]
    monkeypatch.setenv("ACP_GOVERNED_TURN", making.TURN)
    assert approve.preview(approve.inputs()).refused
    assert approve.perform(approve.inputs()).state is OutcomeState.REFUSED
    refused("coordinator", "approve-barrier", root, "--as", "Ann", "--yes")
    assert asked(stand_in) == []
