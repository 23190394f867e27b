"""What a run's files mean, without a dispatcher: how far it is, and why something was decided."""

from __future__ import annotations

from pathlib import Path

from acp_core.model import PhaseState
from acp_core.protocols.workspaces import state
from acp_core.protocols.workspaces.read import scan
from acp_core.protocols.workspaces.schema import Run
from tests.protocols.workspaces.making import NOW, agent, run, states, write

COORD = "agent-workspaces/.coord"
DONE, CURRENT, AHEAD = PhaseState.DONE, PhaseState.CURRENT, PhaseState.AHEAD


def read(root: Path) -> Run:
    return scan.scan(root, scan.listed(root), NOW)


def test_the_first_step_that_does_not_pass_is_the_current_one() -> None:
    assert state.phase_states((True, False, True)) == (DONE, CURRENT, AHEAD)
    assert state.phase_states((False, False)) == (CURRENT, AHEAD)
    assert state.phase_states((True, True)) == (DONE, DONE)


def test_the_reason_of_a_decision_is_that_of_the_last_one_on_this_very_agent(
    tmp_path: Path,
) -> None:
    root = run(tmp_path)
    agent(root, "cy", "partial")
    made = [
        {"agent": "ben", "decision": "accept", "reason": "Ben is right"},
        {"agent": "cy", "decision": "gap", "reason": "Too late"},
        {"agent": "cy", "decision": "accept", "reason": "Good enough"},
    ]
    write(root, f"{COORD}/triage.json", {"decisions": made})
    found = {each.name: state.reason(each, read(root)) for each in read(root).agents}
    assert found == {"ann": "", "ben": "Ben is right", "cy": "Good enough"}


def test_an_error_in_what_an_agent_handed_in_makes_it_inconsistent_and_advice_does_not(
    tmp_path: Path,
) -> None:
    root = run(tmp_path)
    assert states(root) == {"ann": "success", "ben": "success"}
    (root / "agent-workspaces/ben/output.md").unlink()
    assert states(root) == {"ann": "success", "ben": "inconsistent"}


def test_a_final_output_is_too_old_where_an_input_is_more_than_two_seconds_newer(
    tmp_path: Path,
) -> None:
    """Some file systems know no shorter times."""
    root = run(tmp_path)
    for ago, is_older in ((3602.0, False), (3602.5, True)):
        write(root, "integration/final-output.md", "# All\n", ago)
        assert state.older_than_inputs(read(root)) is is_older
