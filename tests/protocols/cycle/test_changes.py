"""What a person's word changes in a cycle's state, and what is refused; without any process."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_core.model.errors import Refused
from acp_core.protocols.cycle.read import progress as read_progress
from acp_core.protocols.cycle.write import changes, layout, store
from tests.protocols.cycle import making
from tests.protocols.cycle.making import ID, NOW, agent, agents, write


def over() -> dict[str, object]:
    """A cycle that goes on, in which nobody is at work."""
    iterations = [{"number": 1}, {"number": 2}]
    return making.state(
        agents=agents(cd=agent("completed"), vas=agent("completed")),
        iterations=iterations, current_iteration=2,
    )  # fmt: skip


def test_who_is_at_work_is_not_told_to_begin_again() -> None:
    state = making.state()
    with pytest.raises(Refused, match=r"cd is working$"):
        changes.rerun(state, NOW, "cd")
    with pytest.raises(Refused, match="cd is working and depends on ep"):
        changes.rerun(state, NOW, "ep")
    state = over()
    changes.rerun(state, NOW, "cd")
    assert [each["status"] for each in state["agents"].values()] == [  # type: ignore[attr-defined]
        "completed", "completed", "idle", "idle",
    ]  # fmt: skip


def test_what_is_taken_as_it_is_ends_its_own_iteration_and_stands_among_the_decisions(
    tmp_path: Path,
) -> None:
    (tmp_path / "coordination").mkdir()
    state = over()
    changes.accept(state, NOW, "Good enough")
    first, second = state["iterations"]  # type: ignore[misc]
    assert "completed_at" not in first and second["resolved"] is False
    box = state["coordination"][layout.OUTBOX]  # type: ignore[index]
    box += [["other.md", "no"], ["timeline.md"], 5]  # another program's
    for _ in range(2):  # a kill may come before it is known to be written
        layout.flush(tmp_path, state)
    lines = (tmp_path / "coordination" / read_progress.DECISIONS).read_text().splitlines()
    assert len([line for line in lines if "DEC-001" in line]) == 1
    assert not (tmp_path / "coordination" / "other.md").exists()


def test_a_blocker_that_is_gone_lets_the_cycle_go_on_unless_a_decision_waits() -> None:
    for pending, status in (([], "running"), ([making.decision()], "paused")):
        kept = making.coordination(blockers=[making.blocker(id="B-1")], pending_decisions=pending)
        state = making.state("paused", coordination=kept)
        changes.resolve(state, NOW, "B-1", "The key is there")
        assert state["status"] == status
    completed = making.state(
        "completed", coordination=making.coordination(blockers=[making.blocker(id="B-1")])
    )
    changes.resolve(completed, NOW, "B-1", "The key is there")
    assert completed["status"] == "completed"


def test_an_iteration_begins_without_the_errors_of_the_one_before() -> None:
    state = making.state(agents=agents(cd=agent("failed", error="No disk")))
    changes.begin_iteration(state, NOW, ("cd", "vas"))
    assert "error" not in state["agents"]["cd"] and state["agents"]["cd"]["status"] == "idle"


@pytest.mark.parametrize("given", ["yes", 1, []])
def test_what_another_account_asks_for_is_checked(given: object) -> None:
    act, name = "resolve", "workaround"
    with pytest.raises(Refused, match="workaround must be true or false"):
        changes.requested_edit(act, {"blocker": "B-1", "resolution": "x", name: given})
    changes.requested_edit(act, {"blocker": "B-1", "resolution": "x", name: True})
    changes.requested_edit(act, {"blocker": "B-1", "resolution": "x"})


def test_a_rebuilt_state_knows_who_had_a_turn_by_what_they_left(tmp_path: Path) -> None:
    progress = tmp_path / f"{ID}.progress"
    for name in ("ra/requirements.md", "ep/plan.json", "cd/.hidden", "cd/implementation.md"):
        write(progress, name, "# Export\n" if name.endswith(".md") else "{}")
    state = store.rebuilt_state(progress, ID, NOW)
    done = {name: each["status"] for name, each in state["agents"].items()}
    assert done == {"ra": "completed", "ep": "completed", "cd": "completed", "vas": "idle"}
    assert state["current_phase"] == "vas"
    assert [Path(each).name for each in layout.listed(progress, "cd")] == ["implementation.md"]
    write(progress, "vas/test-results.json", {"total_tests": 1, "failed_tests": []})
    (progress / "cd/implementation.md").unlink()
    (progress / "ep/plan.json").unlink()
    again = store.rebuilt_state(progress, ID, NOW)
    done = {name: each["status"] for name, each in again["agents"].items()}
    assert done == {"ra": "completed", "ep": "idle", "cd": "idle", "vas": "completed"}
    assert again["current_phase"] == "ep"


def test_a_log_that_was_written_anew_or_removed_is_said(tmp_path: Path) -> None:
    log = tmp_path / "cd/changes.log"
    log.parent.mkdir()
    log.write_text("one\n")
    known, said = layout.watch_logs(tmp_path, {})
    assert said == []
    log.write_text("one\ntwo\n")
    known, said = layout.watch_logs(tmp_path, known)
    assert said == []
    log.write_text("won\ntwo\nthree\n")
    known, said = layout.watch_logs(tmp_path, known)
    assert said == ["cd/changes.log: the first 8 bytes have changed"]
    log.unlink()
    assert layout.watch_logs(tmp_path, known)[1] == ["cd/changes.log is missing: it had 14 bytes"]
