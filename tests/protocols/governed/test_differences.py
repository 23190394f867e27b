"""docs/governed.md lists where results are judged otherwise than by the existing program: each is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from acp_core.protocols.governed.rules import results
from acp_core.protocols.governed.rules.results import apply_corrections
from tests.hygiene.sources import ROOT
from tests.protocols.governed import making
from tests.protocols.governed.making import Object


class Case(NamedTuple):
    """What is otherwise in a sound result of the developer, and what is offered for it."""

    more: Object
    offered: Object
    without: str = ""


DECISION = making.result()["decisions"][0]
HELP = {"status": "needs_human", "needs_human_reason": "Which lamp?"}
CASES = {
    "`run_id` is missing": Case({}, {"run_id": making.RUN}, "run_id"),
    "`run_id` is another run's": Case({"run_id": "run_x"}, {"run_id": making.RUN}),
    "`runtime_id` is missing": Case({}, {"runtime_id": "manual-dev"}, "runtime_id"),
    "`summary` is missing": Case({}, {"summary": "One lamp."}, "summary"),
    "`decisions` is missing (any role)": Case({}, {"decisions": []}, "decisions"),
    "`objections` is missing": Case({}, {"objections": []}, "objections"),
    "`proposed_next_role` is missing": Case(
        {}, {"proposed_next_role": "human"}, "proposed_next_role"
    ),
    "`proposed_next_role` may not come next": Case(
        {"proposed_next_role": "qa"}, {"proposed_next_role": "human"}
    ),
    "`files_changed` is called `files_modified`": Case(
        {"files_modified": ["lamp.py"]}, {"files_changed": ["lamp.py"]}, "files_changed"
    ),
    "a changed file is an object with a `path`": Case(
        {"files_changed": [{"path": "lamp.py", "action": "create"}]},
        {"files_changed[0]": "lamp.py"},
    ),
    "`artifact` is missing": Case({}, {"artifact": {"type": "workspace", "ref": None}}, "artifact"),
    "`artifact` is a `workspace` without files in a request for help": Case(
        HELP | {"files_changed": []}, {"artifact.type": "review"}
    ),
    "`status` is a synonym (`done`, `success`, `error`, ...)": Case(
        {"status": "success"}, {"status": "completed"}
    ),
    "an id is not of the form DEC-NNN or OBJ-NNN": Case(
        {"decisions": [DECISION | {"id": "D1"}]}, {"decisions[0].id": "DEC-001"}
    ),
    "two decisions, or two objections, have one id": Case(
        {"decisions": [DECISION, dict(DECISION)]}, {"decisions[1].id": "DEC-002"}
    ),
    "a decision's `category` is unknown": Case(
        {"decisions": [DECISION | {"category": "misc"}]},
        {"decisions[0].category": "implementation"},
    ),
    "a decision's `rationale` is empty": Case(
        {"decisions": [DECISION | {"rationale": ""}]}, {"decisions[0].rationale": "One lamp."}
    ),
    "`pass`, and a command failed": Case(
        {
            "verification": {
                "status": "pass",
                "machine_evidence": [{"command": "x", "exit_code": 1}],
            }
        },
        {"verification.status": "fail"},
    ),
}


def test_the_table_lists_these_cases_and_no_others() -> None:
    text = (ROOT / "docs/governed.md").read_text("utf-8").split("| In the result |", 1)[1]
    table = text.split("\n\n", 1)[0]
    assert list(re.findall(r"^\| ([^|]+) \|", table, re.M)) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_each_case_is_refused_and_corrected_as_the_table_says(name: str) -> None:
    case = CASES[name]
    state = making.state(
        phase="implementation",
        active_turns={making.TURN: making.turn(assigned_role="dev", runtime_id="manual-dev")},
    )
    sound = making.result(
        role="dev", runtime_id="manual-dev", phase_transition_request=None,
        files_changed=["lamp.py"], artifact={"type": "workspace", "ref": None},
    )  # fmt: skip
    assert results.check(sound, state, making.config()).ok
    given = {key: value for key, value in (sound | case.more).items() if key != case.without}
    verdict = results.check(given, state, making.config())
    assert not verdict.ok
    assert {each.field: each.value for each in verdict.corrections} == case.offered
    after = results.check(apply_corrections(given, verdict.corrections), state, making.config())
    assert after.ok, after.errors


def test_a_reviewer_s_silence_is_no_request_and_agreement_no_completion() -> None:
    """What both accept, and understand differently: the result stays as it was written."""
    state = making.under_way()
    for more in ({}, HELP | {"needs_human_reason": "All is well, go on"}):
        given = making.result(phase_transition_request=None, **more)
        verdict = results.check(given, state, making.config())
        assert verdict.ok and verdict.corrections == ()


def test_a_path_out_of_the_repository_is_refused() -> None:
    state = making.under_way()
    given = making.result(files_changed=[".planning/../../x"])
    assert "leads out of the repository" in results.check(given, state, making.config()).errors[0]


REFUSED = {
    "a file in `files_changed` whose path leads out": ("test_a_path_out_of_the_repository_is_refused",),
    "a role without an objection, whatever it may write": (
        "test_objections_are_mandatory_for_all_where_the_run_says_so",
    ),
    "in a run that acp started: a bundle that differs": (
        "test_what_is_missing_more_or_changed_is_named_and_taken_only_on_a_human_s_word",
        "test_an_agent_that_edits_the_state_is_found_and_its_turn_refused",
        "test_a_policy_that_opens_gates_by_itself_is_an_error_and_is_not_followed",
    ),
}  # fmt: skip
OTHERWISE = {
    "A role that only reviews completes its turn": (
        "test_a_reviewer_s_silence_is_no_request_and_agreement_no_completion",
    ),
    "`needs_human` with a reason that sounds like agreement": (
        "test_a_reviewer_s_silence_is_no_request_and_agreement_no_completion",
    ),
}


@pytest.mark.parametrize(
    ("lead", "shown"),
    [
        ("acp refuses the following, which `agentxchain` does not check:", REFUSED),
        ("Both accept the following, but interpret it differently:", OTHERWISE),
    ],
)
def test_each_row_of_the_lists_is_held_by_tests_and_no_other_stands_there(
    lead: str, shown: dict[str, tuple[str, ...]]
) -> None:
    text = (ROOT / "docs/governed.md").read_text("utf-8").split(f"{lead}\n\n", 1)[1]
    rows = re.split(r"^\* ", text.split("\n\n", 1)[0], flags=re.M)[1:]
    listed = [" ".join(row.split()) for row in rows]
    assert len(listed) == len(shown)
    assert all(row.startswith(name) for row, name in zip(listed, shown, strict=True))
    tests = "".join(path.read_text("utf-8") for path in Path(__file__).parent.glob("test_*.py"))
    assert [name for names in shown.values() for name in names if f"def {name}(" not in tests] == []
