"""What a cycle shows beyond the common words."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from acp_core.model import Panel, format
from acp_core.protocols.cycle.collaboration import open_cycles
from tests.protocols.cycle.making import (
    NOW,
    PROGRESS,
    agent,
    agents,
    blocker,
    coordination,
    cycle,
    panel,
    read,
    task,
    write,
)


def shown(root: Path, id: str) -> Panel:
    return next(each for each in read(root).panels if each.id == id)


def plan(root: Path, *tasks: dict[str, Any], **more: Any) -> list[tuple[int, str, str, str]]:
    """Depth, id, what blocks it and path of each task."""
    found = shown(cycle(root, plan={"tasks": list(tasks)} | more), "plan")
    return [(row.depth, row.cells[0], row.cells[3], row.cells[2]) for row in found.rows]


def test_the_plan_is_a_tree_that_says_what_each_task_waits_for(tmp_path: Path) -> None:
    tasks = [
        task("T1", "in_progress"),
        task("T3", "pending", "T2"),
        task("T2", "pending", "T1"),
        task("T4", "done"),
        task("T5", "pending", "T4"),
    ]
    assert plan(tmp_path, *tasks, critical_path=["T2"]) == [
        (0, "T1", "", ""),
        (1, "T2", "waits for T1 (in progress)", "critical"),
        (2, "T3", "waits for T2 (pending)", ""),
        (0, "T4", "", ""),
        (1, "T5", "", ""),
    ]


def test_a_task_that_is_blocked_says_why(tmp_path: Path) -> None:
    tasks = [
        task("T1", "blocked") | {"blocked_reason": "no fixture data"},
        task("T2", "blocked"),
        task("T3", "pending", "T9"),
        task("T4", "pending", "T5"),
        task("T5", "pending", "T4"),
    ]
    assert [waits for _, _, waits, _ in plan(tmp_path, *tasks)] == [
        "no fixture data",
        "blocked, no reason given",
        "waits for T9, which is not a task",
        "waits for T5 (pending), in a circle",
        "waits for T4 (pending), in a circle",
    ]


def test_a_critical_path_that_nobody_told_is_worked_out(tmp_path: Path) -> None:
    tasks = [
        task("T1", "done"),
        task("T2", "pending", "T1"),
        task("T3", "pending", "T1") | {"effort": "large"},
        task("T4", "pending", "T2", "T3"),
        task("T5", "pending") | {"estimated_hours": 2},
    ]
    paths = {id: path for _, id, _, path in plan(tmp_path, *tasks)}
    assert {id for id, path in paths.items() if path} == {"T3", "T4"}
    assert paths["T3"] == "critical, computed"


def test_tasks_without_an_id_of_their_own_are_shown(tmp_path: Path) -> None:
    tasks = [task("T1"), task("T1", "pending"), {"title": "No id"}]
    assert [id for _, id, _, _ in plan(tmp_path, *tasks)] == ["T1", "T1", ""]


def test_feedback_is_a_thread_that_says_whether_it_was_answered(tmp_path: Path) -> None:
    def to(target: str, clock: str, **more: str) -> dict[str, str]:
        at = f"2026-03-02T{clock}:00+08:00"
        made = {"timestamp": at, "source": "vas", "target": target, "type": "bug_report"}
        return made | {"content": f"Fix {target}"} | more

    entries = [
        to("cd", "18:12", run="1-cd-2"),
        to("ra", "19:00"),
        to("cd", "19:50"),
        to("qa", "19:51"),
        to("ra", "19:00", id="FB-5"),
        to("ra", "19:00", id="FB-6", sent_at="2026-03-02T19:40:00+08:00"),
    ]
    cycle(tmp_path, coordination=coordination(feedback_log=entries))
    write(tmp_path, f"{PROGRESS}/coordination/messages/1-cd-2.md", "## FEEDBACK FROM VAS\n")
    found = shown(tmp_path, "feedback")
    assert found.shape == "thread"
    assert [(row.cells[0], row.cells[1], row.checked) for row in found.rows] == [
        ("vas to cd", "answered", True),
        ("vas to ra", "late", False),
        ("vas to cd", "not answered", False),
        ("vas to qa", "", None),
        ("vas to ra", "not sent yet", None),
        ("vas to ra", "not answered", False),
    ]
    assert found.rows[0].target.document == f"{PROGRESS}/coordination/messages/1-cd-2.md"
    when = format.dated(datetime(2026, 3, 2, 10, 12, tzinfo=UTC))
    assert found.rows[0].cells[4] == when, "as times are shown elsewhere"


def test_a_time_that_is_none_is_shown_as_it_stands(tmp_path: Path) -> None:
    entry = {"timestamp": "soon", "source": "vas", "target": "cd"}
    cycle(tmp_path, coordination=coordination(feedback_log=[entry]))
    assert panel(tmp_path, "feedback")[0][4] == "soon"


def test_feedback_becomes_late_by_itself(tmp_path: Path) -> None:
    entry = {"timestamp": "2026-03-02T19:50:00+08:00", "source": "vas", "target": "ra"}
    cycle(tmp_path, "paused", agents=agents(cd=agent("waiting")),
          coordination=coordination(feedback_log=[entry]))  # fmt: skip
    opened = open_cycles(str(tmp_path))
    first = opened.refresh(NOW)
    assert first.recheck_at is not None
    later = opened.refresh(first.recheck_at)
    assert [f.code for f in first.findings] == []
    assert [f.code for f in later.findings] == ["A37"]


def test_tests_stand_by_iteration(tmp_path: Path) -> None:
    def results(iteration: int, failed: int) -> dict[str, Any]:
        counts = {"total": 20, "passed": 20 - failed, "failed": failed}
        return {"version": f"1.{iteration - 1}.0", "iteration": iteration, "summary": counts}

    records = [{"number": 1, "completed_at": "x", "test_results": {"total_tests": 20,
                "failed_tests": ["a", "b", "c"], "pass_rate": 85}}, {"number": 2}]  # fmt: skip
    state = {"version": "1.1.0", "total_tests": 20, "failed_tests": [], "pass_rate": 1}
    cycle(tmp_path, current_iteration=2, iterations=records, test_results=state)
    write(tmp_path, f"{PROGRESS}/vas/history/test-results-v1.0.0.json", results(1, 3))
    now = results(2, 1) | {"coverage": {"lines": 81}}
    write(tmp_path, f"{PROGRESS}/vas/test-results.json", now)
    assert panel(tmp_path, "tests") == [
        ("1", "20 tests, 3 failed, 85 %", "not collected", "", "vas/history/test-results-v1.0.0.json"),
        ("2", "20 tests, 1 failed, 95 %", "81 %", "", "vas/test-results.json"),
        ("2", "20 tests, 0 failed, 100 %", "not collected", "", "state"),
    ]  # fmt: skip


def test_the_tests_that_failed_are_named_by_their_suites(tmp_path: Path) -> None:
    cases = [{"name": "quoting", "status": "failed"}, {"name": "empty", "status": "passed"}]
    held = {
        "summary": {"total": 2, "passed": 1, "failed": 1},
        "by_suite": [{"tests": cases}, {"tests": 3}],
    }
    cycle(tmp_path, test_results=None)
    write(tmp_path, f"{PROGRESS}/vas/test-results.json", held)
    assert panel(tmp_path, "tests")[0][3] == "quoting"


def test_what_blocks_somebody_is_shown_where_only_its_file_tells_it(tmp_path: Path) -> None:
    row = {"ts": "2026-03-02T18:40:00+08:00", "agent": "cd", "type": "blocker",
           "data": {"issue": "No fixture data", "severity": "high", "impact": "x"}}  # fmt: skip
    cycle(tmp_path, coordination=coordination(blockers=[blocker()]))
    write(tmp_path, f"{PROGRESS}/coordination/discoveries.ndjson", json.dumps(row) + "\n")
    write(
        tmp_path,
        f"{PROGRESS}/cd/issues.md",
        "# I - v1.0.0\n### Issue 1: no limit\n- Blocker: Yes\n",
    )
    known, found = shown(tmp_path, "blockers").rows
    assert (known.cells[0], known.checked) == ("BLK-001", False)
    assert found.cells[1:4] == ("No fixture data", "cd", "only in coordination/discoveries.ndjson")
    assert (found.target.document, found.target.line) == (
        f"{PROGRESS}/coordination/discoveries.ndjson",
        1,
    )


@pytest.fixture
def rewritten(tmp_path: Path) -> Path:
    cycle(tmp_path, requirements={"version": "1.1.0"}, exploration={"version": "1.2.0"})
    write(tmp_path, f"{PROGRESS}/ra/requirements.md", "# R - v1.1.0\n- FR-1\n- FR-2 \x1b[31mnew\n")
    write(tmp_path, f"{PROGRESS}/ra/history/requirements-v1.0.0.md", "# R - v1.0.0\n- FR-1\n")
    write(tmp_path, f"{PROGRESS}/ra/history/requirements-v0.9.0.md", "# R - v0.9.0\n")
    write(tmp_path, f"{PROGRESS}/ep/exploration.md", "# E - v1.0.0\n")
    write(tmp_path, f"{PROGRESS}/coordination/timeline.md", "- 2026-03-02T18:00:00+08:00 X\n")
    return tmp_path


def test_documents_bear_their_versions_and_show_what_changed(rewritten: Path) -> None:
    rows = shown(rewritten, "versions").rows
    assert [(row.depth, row.cells) for row in rows] == [
        (0, ("ra/requirements.md", "1.1.0", "1.1.0", "0.9.0, 1.0.0")),
        (1, ("changes since 1.0.0", "", "", "")),
        (0, ("ep/exploration.md", "1.0.0", "1.2.0", "")),
    ]
    opened = open_cycles(str(rewritten))
    opened.refresh(NOW)
    assert rows[1].target.document is not None
    text = opened.load(rows[1].target.document).text
    assert text.split("\n")[0] == "ra/requirements.md since v1.0.0: +2 -1 lines"
    assert "\n-# R - v1.0.0\n+# R - v1.1.0\n - FR-1\n" in text
    assert "\x1b" not in text


def test_documents_come_in_the_order_of_the_agents_and_the_past_last(rewritten: Path) -> None:
    titles = [each.title for each in read(rewritten).documents]
    assert titles == [
        "ra/requirements.md v1.1.0",
        "ep/exploration.md v1.0.0",
        "coordination/timeline.md",
        "ra/history/requirements-v0.9.0.md",
        "ra/history/requirements-v1.0.0.md",
        "ra/requirements.md since v1.0.0",
        "cycle-v1-20260302T180000-csvexprt.json",
    ]


def test_a_version_that_is_a_link_or_too_long_is_not_compared(rewritten: Path) -> None:
    write(rewritten, f"{PROGRESS}/ra/requirements.md", "# R - v1.1.0\n" + "- FR\n" * 3_000)
    opened = open_cycles(str(rewritten))
    snapshot = opened.refresh(NOW)
    id = next(each.id for each in snapshot.documents if " since " in each.id)
    assert opened.load(id).note.startswith("too long")
    for name in ("0.9.0", "1.0.0"):
        (rewritten / PROGRESS / f"ra/history/requirements-v{name}.md").unlink()
    (rewritten / PROGRESS / "ra/history/requirements-v1.0.0.md").symlink_to("/etc/hostname")
    assert not [each for each in opened.refresh(NOW).documents if " since " in each.id]
    with pytest.raises(KeyError):
        opened.load(id)
