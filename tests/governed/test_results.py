"""A turn result is judged as it is; what could be mended is offered, never done."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.protocols.governed.results import check
from tests.governed import making

CONFIG = making.config()
STATE = making.state(active_turns={making.TURN: making.turn()})
DEV_STATE = making.state(
    phase="implementation",
    active_turns={making.TURN: making.turn(assigned_role="dev", runtime_id="manual-dev")},
)


def dev(**more: Any) -> dict[str, Any]:
    of_dev = {
        "role": "dev",
        "runtime_id": "manual-dev",
        "files_changed": ["src/lamp.py"],
        "artifact": {"type": "workspace", "ref": None},
        "objections": [],
        "phase_transition_request": "verification",
    }
    return making.result(**(of_dev | more))


def test_a_sound_result_passes() -> None:
    assert check(making.result(), STATE, CONFIG).ok
    assert check(dev(), DEV_STATE, CONFIG).ok


@pytest.mark.parametrize(
    ("change", "stage", "error"),
    [
        ({"schema_version": "1.1"}, "schema", 'schema_version must be "1.0", got "1.1".'),
        ({"role": "PM"}, "schema", "role must match pattern ^[a-z0-9_-]+$."),
        ({"summary": "<one line>"}, "schema", "unfilled template placeholder"),
        ({"files_changed": [7]}, "schema", "files_changed[0] must be a string."),
        ({"run_completion_request": "yes"}, "schema", "must be a boolean or null."),
        ({"turn_id": "turn_x"}, "assignment", "turn_id mismatch"),
        ({"role": "qa"}, "assignment", "role mismatch"),
        ({"files_changed": ["src/a.py"]}, "artifact", "claims product file changes: src/a.py"),
        ({"files_changed": [".planning/../../x"]}, "artifact", "leads out of the repository"),
        ({"artifact": {"type": "commit"}}, "artifact", "must be a review"),
        ({"verification": {"status": "skipped", "commands": [""]}}, "verification", "commands[0]"),
        ({"objections": []}, "protocol", "must raise at least one objection"),
        ({"proposed_next_role": "qa"}, "protocol", "is not in the allowed_next_roles"),
        ({"phase_transition_request": "shipping"}, "protocol", "is not a defined phase"),
        ({"phase_transition_request": "verification"}, "protocol", "next phase is"),
        ({"run_completion_request": True}, "protocol", "mutually exclusive"),
    ],
)
def test_each_rule_refuses_at_its_stage(change: dict[str, Any], stage: str, error: str) -> None:
    verdict = check(making.result(**change), STATE, CONFIG)
    assert verdict.stage == stage
    assert any(error in told for told in verdict.errors)


def test_a_failing_command_is_no_pass_unless_it_was_expected() -> None:
    proof: dict[str, Any] = {"command": "make test", "exit_code": 1}
    checked = {"status": "pass", "machine_evidence": [proof]}
    assert check(dev(verification=checked), DEV_STATE, CONFIG).stage == "verification"
    proof["expected_exit_code"] = 1
    assert check(dev(verification=checked), DEV_STATE, CONFIG).ok


def test_objections_are_mandatory_for_all_where_the_run_says_so() -> None:
    strict = CONFIG | {"rules": {"mandatory_objections": True}}
    assert check(dev(), DEV_STATE, strict).stage == "protocol"


def test_repairs_are_offered_and_nothing_is_repaired() -> None:
    given_result = making.result(status="done", run_id="run_other", proposed_next_role="qa")
    del given_result["decisions"]
    before = copy.deepcopy(given_result)
    verdict = check(given_result, STATE, CONFIG)
    assert given_result == before and not verdict.ok
    assert {c.field: c.value for c in verdict.corrections} == {
        "run_id": making.RUN,
        "decisions": [],
        "status": "completed",
        "proposed_next_role": "human",
    }


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=6,
)


@given(field=st.sampled_from(sorted(making.result())), value=values)
def test_any_value_gives_a_verdict(field: str, value: object) -> None:
    verdict = check(making.result(**{field: value}), STATE, CONFIG)
    assert verdict.ok == (not verdict.stage)


@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_a_result_is_an_object(value: object) -> None:
    assert check(value, STATE, CONFIG).errors == ("Turn result must be a JSON object.",)
