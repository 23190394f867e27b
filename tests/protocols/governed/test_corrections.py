"""Whatever is offered as a correction of a result makes it one that passes."""

from __future__ import annotations

from typing import Any

import pytest

from acp_core.protocols.governed.rules import results
from acp_core.protocols.governed.rules.results import apply_corrections, corrections
from tests.protocols.governed import making
from tests.protocols.governed.making import Object

HELP = {"status": "needs_human", "needs_human_reason": "Which lamp?"}


def check(role: str, **more: Any) -> tuple[results.Verdict, Object, results.Verdict]:
    """The verdict of a result of this role, the corrected result, and the verdict of that."""
    state = making.state(active_turns={
        making.TURN: making.turn(assigned_role=role, runtime_id=f"manual-{role}")
    })  # fmt: skip
    given = making.result(role=role, runtime_id=f"manual-{role}", phase_transition_request=None)
    given |= more
    given = {key: value for key, value in given.items() if value is not ...}
    verdict = results.check(given, state, making.config())
    new = apply_corrections(given, verdict.corrections)
    return verdict, new, results.check(new, state, making.config())


@pytest.mark.parametrize(
    ("role", "more", "stage", "field", "value"),
    [
        ("dev", HELP | {"artifact": {"type": "workspace"}}, "artifact", "artifact.type", "review"),
        ("dev", HELP | {"summary": ...}, "schema", "summary", "Which lamp?"),
        ("dev", {"summary": " ", "files_changed": ["lamp.py"], "artifact": {"type": "commit"}},
         "schema", "summary", "One lamp."),
        ("dev", HELP | {"summary": ..., "needs_human_reason": None, "decisions": []},
         "schema", "summary", "No summary was given."),
        ("dev", {"files_changed": ["lamp.py"]}, "artifact", "artifact.type", "workspace"),
        ("pm", {"artifact": {"type": "workspace"}, "files_changed": [".planning/a.md"]},
         "artifact", "artifact.type", "review"),
        ("pm", {"artifact": {"type": "commit"}}, "artifact", "artifact.type", "review"),
        ("pm", {"artifact": ..., "files_changed": [".planning/a.md"]},
         "schema", "artifact", {"type": "review", "ref": None}),
    ],
)  # fmt: skip
def test_what_is_offered_passes(
    role: str, more: Object, stage: str, field: str, value: object
) -> None:
    verdict, _, after = check(role, **more)
    assert verdict.stage == stage
    assert {each.field: each.value for each in verdict.corrections} == {field: value}
    assert after.ok, after.errors


@pytest.mark.parametrize(("field", "prefix"), [("decisions", "DEC"), ("objections", "OBJ")])
def test_an_id_that_two_entries_bear_is_found_and_corrected(field: str, prefix: str) -> None:
    first = making.result()[field][0]
    entries = [first | {"statement": statement} for statement in ("A", "B", "C")]
    entries[2]["id"] = f"{prefix}-002"
    verdict, new, after = check("pm", **{field: entries})
    assert verdict.errors == (f'{field}[1].id "{prefix}-001" is the id of an earlier one.',)
    assert [each.reason for each in verdict.corrections] == ["an earlier one has this id"]
    assert [each["id"] for each in new[field]] == [
        f"{prefix}-001",
        f"{prefix}-003",
        f"{prefix}-002",
    ]
    assert after.ok, after.errors


def test_no_empty_list_is_offered_where_an_objection_is_demanded() -> None:
    verdict, _, _ = check("pm", objections=...)
    assert verdict.errors == ("Missing required field: objections",)
    assert verdict.corrections == ()


@pytest.mark.parametrize("status", ["pass", "fail", "skipped"])
def test_only_a_pass_with_a_failing_command_is_offered_as_a_failure(status: str) -> None:
    evidence = [{"command": "make", "exit_code": 2}]
    verification = {"status": status, "machine_evidence": evidence}
    found = corrections(making.result(verification=verification), making.state(), making.config())
    offered = [(each.field, each.value) for each in found]
    assert (("verification.status", "fail") in offered) == (status == "pass")


def test_an_id_of_another_form_says_which_form_it_should_have() -> None:
    first = making.result()["decisions"][0]
    entries = [first | {"id": id} for id in ("one", "one", "DEC-001")]
    found = corrections(making.result(decisions=entries), making.state(), making.config())
    assert [(each.field, each.value, each.reason) for each in found] == [
        ("decisions[0].id", "DEC-002", "the form is DEC-NNN"),
        ("decisions[1].id", "DEC-003", "the form is DEC-NNN"),
    ]
