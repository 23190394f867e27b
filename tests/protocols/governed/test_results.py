"""A turn result is judged as it is; what could be mended is offered, never done."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.model.text import clean_line
from acp_core.protocols.governed.rules.results import apply_corrections, check
from acp_core.protocols.governed.schema import Line
from tests.protocols.governed import making
from tests.protocols.governed.making import Object

CONFIG = making.config()
STATE = making.under_way()
DEV_STATE = making.state(
    phase="implementation",
    active_turns={making.TURN: making.turn(assigned_role="dev", runtime_id="manual-dev")},
)


def dev(**more: Any) -> Object:
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
def test_each_rule_refuses_at_its_stage(change: Object, stage: str, error: str) -> None:
    verdict = check(making.result(**change), STATE, CONFIG)
    assert verdict.stage == stage
    assert any(error in told for told in verdict.errors)


def test_a_failing_command_is_no_pass_unless_it_was_expected() -> None:
    proof: Object = {"command": "make test", "exit_code": 1}
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


@settings(deadline=None)
@given(field=st.sampled_from(sorted(making.result())), value=values)
def test_any_value_gives_a_verdict(field: str, value: object) -> None:
    verdict = check(making.result(**{field: value}), STATE, CONFIG)
    assert verdict.ok == (not verdict.stage)


@pytest.mark.parametrize("value", [None, [], "x", 7])
def test_a_result_is_an_object(value: object) -> None:
    assert check(value, STATE, CONFIG).errors == ("Turn result must be a JSON object.",)


def delegation(**more: Any) -> Object:
    made = {
        "id": "del-001",
        "to_role": "qa",
        "charter": "Try it.",
        "acceptance_contract": ["Works"],
    }
    return made | more


PROXY = making.config()
PROXY["roles"]["dev"] |= {"write_authority": "proposed"}
PROXY["runtimes"]["manual-dev"] = {"type": "api_proxy"}
BOTH = making.config()
for routed in BOTH["routing"].values():
    routed["allowed_next_roles"] = ["dev", "qa", "human"]


@pytest.mark.parametrize(
    ("change", "stage", "error"),
    [
        ({"delegations": [7]}, "schema", "delegations[0] must be an object."),
        ({"delegations": [delegation(id="d-1")]}, "schema", "must match pattern del-NNN."),
        ({"delegations": [delegation(to_role="QA")]}, "schema", "to_role must match"),
        ({"delegations": [delegation(charter=" ")]}, "schema", "charter must be"),
        ({"delegations": [delegation(acceptance_contract=[])]}, "schema", "acceptance_contract"),
        ({"delegations": [delegation(required_decision_ids=[])]}, "schema", "non-empty array"),
        ({"delegations": [delegation(required_decision_ids=["X"])]}, "schema", "DEC-NNN"),
        ({"delegations": [delegation(required_decision_ids=["DEC-1"] * 2)]}, "schema", "twice"),
        ({"delegations": [delegation(to_role="dev")]}, "protocol", "itself"),
        ({"delegations": [delegation(to_role="cook")]}, "protocol", "not a defined role"),
        ({"delegations": [delegation(to_role="pm")]}, "protocol", "allowed_next_roles"),
        ({"delegations": [delegation(), delegation()]}, "protocol", "is used twice"),
        ({"delegations": [delegation(id=f"del-00{i}") for i in range(6)]}, "protocol", "at most 5"),
        ({"delegations": [delegation()], "run_completion_request": True,
          "phase_transition_request": None}, "protocol", "mutually exclusive"),
        ({"files_changed": [".planning/x.md"]}, "artifact", "names no product file"),
        ({"verification": {"status": "skipped", "produced_files": [{"path": ""}]}},
         "verification", "path must be"),
        ({"verification": {"status": "skipped", "produced_files": [
            {"path": "src/lamp.py", "disposition": "ignore"}]}}, "verification", "to be ignored"),
        ({"verification": {"status": "skipped", "produced_files": [
            {"path": "a", "disposition": "artifact"}] * 2}}, "verification", "named twice"),
        ({"needs_human_reason": "<why>"}, "schema", "unfilled template placeholder"),
    ],
)  # fmt: skip
def test_what_the_rarer_rules_refuse(change: Object, stage: str, error: str) -> None:
    sound = dev(objections=making.result()["objections"])
    assert check(sound, DEV_STATE, BOTH).ok
    verdict = check(sound | change, DEV_STATE, BOTH)
    assert verdict.stage == stage, verdict
    assert any(error in each for each in verdict.errors), verdict.errors


def test_sound_delegations_and_an_earlier_turn_with_code_are_no_errors() -> None:
    asked = dev(delegations=[delegation(required_decision_ids=["DEC-001"])])
    assert check(asked, DEV_STATE, BOTH).ok
    notes = dev(files_changed=[".planning/IMPLEMENTATION_NOTES.md"])
    assert not check(notes, DEV_STATE, CONFIG).ok
    before = (Line(1, making.accepted(phase="implementation", files_changed=["src/a.py"])),)
    assert check(notes, DEV_STATE, CONFIG, before).ok


def test_a_role_that_proposes_through_a_service_hands_its_changes_in() -> None:
    proposed = dev(artifact={"type": "patch", "ref": None})
    verdict = check(proposed, DEV_STATE, PROXY)
    assert verdict.stage == "artifact" and "proposed_changes" in verdict.errors[0]
    for change, sound in (
        ({"path": "src/a.py", "action": "create", "content": "A = 1\n"}, True),
        ({"path": "src/a.py", "action": "delete"}, True),
        ({"path": "src/a.py", "action": "modify"}, False),
        ({"path": "", "action": "rename", "content": ""}, False),
    ):
        assert check(proposed | {"proposed_changes": [change]}, DEV_STATE, PROXY).ok is sound


@pytest.mark.parametrize(
    "change",
    [
        {"status": "done"},
        {"run_id": "run_x"},
        {"files_changed": [{"path": "src/lamp.py", "action": "create"}]},
        {"decisions": [{"id": "D1", "category": "lamp", "statement": "One."}]},
        {"objections": [{"id": "x", "severity": "low", "statement": "S.", "status": "raised"}]},
        {"verification": {"status": "pass",
                          "machine_evidence": [{"command": "x", "exit_code": 1}]}},
        {"proposed_next_role": "cook"},
    ],
)  # fmt: skip
def test_what_is_offered_makes_the_result_sound(change: Object) -> None:
    given = dev() | change
    before = copy.deepcopy(given)
    verdict = check(given, DEV_STATE, CONFIG)
    assert not verdict.ok
    mended = apply_corrections(given, verdict.corrections)
    assert check(mended, DEV_STATE, CONFIG).ok, check(mended, DEV_STATE, CONFIG)
    assert given == before
    if "verification" in change:
        assert mended["verification"]["status"] == "fail"


def test_missing_fields_are_offered_too() -> None:
    names = ("runtime_id", "decisions", "artifact", "proposed_next_role", "files_changed")
    given = {k: v for k, v in dev(files_modified=["src/lamp.py"]).items() if k not in names}
    mended = apply_corrections(given, check(given, DEV_STATE, CONFIG).corrections)
    assert check(mended, DEV_STATE, CONFIG).ok, check(mended, DEV_STATE, CONFIG)


@pytest.mark.parametrize(
    ("said", "offered"),
    [("Scope", "scope"), ("scope \u2028\x85\x0b", "scope"), ("lamp", "implementation")],
)
def test_a_category_in_other_letters_is_known(said: str, offered: str) -> None:
    decision = {"id": "DEC-009", "category": said, "statement": "One.", "rationale": "Two."}
    given = dev() | {"decisions": [decision]}
    corrections = check(given, DEV_STATE, CONFIG).corrections
    assert apply_corrections(given, corrections)["decisions"][0]["category"] == offered
    assert all(clean_line(each.reason) == each.reason for each in corrections)
