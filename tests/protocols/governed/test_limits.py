"""What a run may spend, and what only the existing program carries out, is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import Loaded, Log
from acp_core.protocols.governed.view.run import limits
from tests.protocols.governed import making
from tests.protocols.governed.acting import open_folder, seen
from tests.protocols.governed.test_read import NOW


def test_an_escalation_that_was_resolved_is_shown_no_more(tmp_path: Path) -> None:
    root = making.make_run(tmp_path)
    raised = {"kind": "raised", "type": "needs_legal", "detail": "Licence"}
    lines = [raised | {"escalation_id": f"hesc_{number}"} for number in (0, 1)]
    lines.append({"kind": "resolved", "escalation_id": "hesc_0"})
    making.write_lines(root / ".agentxchain/human-escalations.jsonl", *lines)
    snapshot = seen(root)
    (panel,) = (each for each in snapshot.panels if each.id == "limits")
    assert [row.cells[2] for row in panel.rows] == ["hesc_1: Licence"]


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
    collaboration = open_folder(root)
    names = {document.id for document in collaboration.refresh(NOW).documents}
    assert {".agentxchain/reviews/turn_1-qa-review.md", "HUMAN_TASKS.md"} <= names
    assert "Review" in collaboration.load(".agentxchain/reviews/turn_1-qa-review.md").text
