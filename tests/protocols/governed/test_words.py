"""What stands in a run's files is said in sentences; what is not known is said as it stands."""

from __future__ import annotations

import pytest

from acp_core.protocols.governed.view.wording import blocked_by, gate_called
from tests.protocols.governed import making


@pytest.mark.parametrize(
    ("on", "said"),
    [
        ("escalation:retries-exhausted:pm", "the turn of pm was rejected at its last attempt"),
        ("escalation:operator:legal-review", "somebody stopped it: legal review: Which licence?"),
        ("human:which lamp", "it needs a human: which lamp"),
        ("hook:before_gate:audit", "the hook audit held it up (before gate)"),
        ("gate_action:ship", "what the gate ship does when it opens failed"),
        ("non_progress:p", "the gate p was asked for again and again, and is not met"),
        ("policy:no-friday", "the policy no-friday forbids it"),
        ("budget:exhausted", "its budget is used up"),
        ("timeout:per_turn", "its time is up (per turn)"),
        ("dispatch:no_runtime", "a turn could not be given out: no runtime"),
        (f"turn:failed_start:{making.TURN}", "no program took the turn of pm"),
        ("turns:failed_start", "no program took a turn"),
        (f"turn:stalled:{making.TURN}", "the turn of pm has stalled"),
        (
            "operator_commit_reconcile_refused",
            "commits that somebody made beside it could not be taken in",
        ),
        ("something:new", "something:new"),
        ("a\x1b[31mb\nc", "a␛[31mb␤c"),
        (7, "it does not say what"),
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
