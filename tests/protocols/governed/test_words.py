"""What stands in a run's files is said in sentences; what is not known is said as it stands."""

from __future__ import annotations

import pytest

from acp_core.protocols.governed.schema import blocked_by, gate_called
from tests.protocols.governed import making


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("escalation:retries-exhausted:pm", "the turn of pm was rejected on its last attempt"),
        ("escalation:operator:legal-review", "a human stopped the run: legal review: Which licence?"),
        ("human:which lamp", "a human must decide: which lamp"),
        ("hook:before_gate:audit", "the hook audit blocked it (before gate)"),
        ("gate_action:ship", "the action on opening the gate ship failed"),
        ("non_progress:p", "the gate p was requested repeatedly but is not met"),
        ("policy:no-friday", "the policy no-friday does not allow it"),
        ("budget:exhausted", "the budget is used up"),
        ("timeout:per_turn", "the time limit has passed (per turn)"),
        ("dispatch:no_runtime", "a turn could not be assigned: no runtime"),
        (f"turn:failed_start:{making.TURN}", "the turn of pm failed to start"),
        ("turns:failed_start", "a turn failed to start"),
        (f"turn:stalled:{making.TURN}", "the turn of pm has stalled"),
        (
            "operator_commit_reconcile_refused",
            "commits made outside the run could not be integrated",
        ),
        ("something:new", "something:new"),
        ("a\x1b[31mb\nc", "a␛[31mb␤c"),
        (7, "no reason given"),
    ],
)  # fmt: skip
def test_by_what_a_run_is_blocked(on: object, said: str) -> None:
    turns = {making.TURN: making.turn()}
    state = making.state(blocked_on=on, active_turns=turns, escalation={"detail": "Which licence?"})
    assert blocked_by(state) == said


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("planning_signoff", "planning_signoff"),
        ("phase_transition:planning->implementation", "from planning to implementation"),
        ("initiative_ship", "initiative ship"),
        ("phase_transition:odd", "phase_transition:odd"),
    ],
)
def test_a_gate_is_called_what_a_human_would_call_it(name: str, called: str) -> None:
    assert gate_called(name) == called
