"""What a run may spend, and what only the existing program carries out, is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.protocols.governed.collaboration import open_folder
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import Loaded, Log
from acp_core.protocols.governed.view.panels import limits
from tests.protocols.governed import making
from tests.protocols.governed.test_read import NOW


def rows(root: Path) -> list[tuple[str, ...]]:
    snapshot = open_folder(str(root)).refresh(NOW)
    panel = next(panel for panel in snapshot.panels if panel.id == "limits")
    return [row.cells for row in panel.rows]


def test_a_run_without_any_shows_none(tmp_path: Path) -> None:
    assert rows(making.make_run(tmp_path)) == []


def test_budget_policies_delegations_and_the_rest_are_shown(tmp_path: Path) -> None:
    of_state = making.state(
        budget_status={"spent_usd": 1.5, "remaining_usd": 48.5},
        budget_reservations={making.TURN: {"reserved_usd": 2, "role_id": "pm"}},
        delegation_queue=[{"delegation_id": "del-001", "parent_role": "pm", "to_role": "dev",
                           "charter": "Measure the hall", "status": "pending"}],
    )  # fmt: skip
    root = making.make_run(tmp_path, of_state=of_state)
    config = making.config(
        budget={"per_turn_max_usd": 2, "per_run_max_usd": 50, "on_exceed": "pause_and_escalate"},
        policies=[{"id": "no-secrets", "rule": "forbid_paths", "action": "block"}],
        approval_policy={"phase_transitions": {"default": "require_human"}},
        rules={"max_turn_retries": 2, "mandatory_objections": True},
    )
    config["routing"]["implementation"] |= {"max_concurrent_turns": 2, "timeout_minutes": 30}
    making.write(root / "agentxchain.json", config)
    raised = {
        "kind": "raised",
        "escalation_id": "hesc_1",
        "type": "needs_legal",
        "detail": "Licence",
    }
    done = [raised | {"escalation_id": "hesc_0"}, {"kind": "resolved", "escalation_id": "hesc_0"}]
    making.write_lines(root / ".agentxchain/human-escalations.jsonl", *done, raised)
    decision = {"id": "DEC-007", "statement": "Lamps are round.", "status": "active"}
    making.write_lines(root / ".agentxchain/repo-decisions.jsonl", decision)
    found = rows(root)
    assert found[0] == ("escalation", "needs legal", "hesc_1: Licence")
    assert ("spent", "1.5 of 50 USD", "when used up: pause and escalate") in found
    assert ("reserved", "2 USD", f"pm {making.TURN}") in found
    assert ("turns at once", "2", "implementation; acp gives out one") in found
    assert ("time of a turn", "30 min", "implementation") in found
    assert ("delegation", "pending", "del-001 pm to dev: Measure the hall") in found
    assert ("approval", "require human", "phase transitions") in found
    assert ("for all runs", "active", "DEC-007: Lamps are round.") in found
    assert [row[:2] for row in found if row[0] == "policy"] == [("policy", "block")]
    assert not any("hesc_0" in row[2] for row in found)


VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.just(10**400), st.floats(), st.text(max_size=5),
    st.lists(st.one_of(st.integers(), st.dictionaries(st.text(max_size=3), st.text(max_size=3))),
             max_size=2),
    st.dictionaries(st.sampled_from(["run_completion", "phase_transitions", "a"]),
                    st.one_of(st.integers(), st.dictionaries(st.text(max_size=3), st.text())),
                    max_size=2),
)  # fmt: skip
CONFIGURED = ("budget", "policies", "approval_policy", "timeouts", "rules", "routing")
STATE = ("budget_status", "budget_reservations", "delegation_queue", "pending_delegation_review")


@settings(max_examples=40, deadline=None)
@given(
    of_config=st.dictionaries(st.sampled_from(CONFIGURED), VALUES),
    of_budget=st.dictionaries(st.sampled_from(["per_run_max_usd", "per_turn_max_usd"]), VALUES),
    of_state=st.dictionaries(st.sampled_from(STATE), VALUES),
)
def test_whatever_stands_there_is_borne(
    of_config: dict[str, Any], of_budget: dict[str, Any], of_state: dict[str, Any]
) -> None:
    read = Run(
        Path("/nowhere"), Loaded({"budget": of_budget} | of_config), Loaded(of_state), Log(()),
        Log(()), Log(()), Loaded({}), (),
    )  # fmt: skip
    for row in limits(read).rows:
        assert all("\n" not in cell and len(cell) < 2_000 for cell in row.cells)


def test_reviews_and_tasks_are_documents(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    place = root / ".agentxchain/reviews"
    place.mkdir()
    (place / "turn_1-qa-review.md").write_text("# Review\n")
    (root / "HUMAN_TASKS.md").write_text("# Tasks\n")
    collaboration = open_folder(str(root))
    names = {document.id for document in collaboration.refresh(NOW).documents}
    assert {".agentxchain/reviews/turn_1-qa-review.md", "HUMAN_TASKS.md"} <= names
    assert "Review" in collaboration.load(".agentxchain/reviews/turn_1-qa-review.md").text
