"""What real cycles do otherwise than the specification says is read as it was meant."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from acp_core.model import Status
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.collaboration import open_cycles
from tests.protocols.cycle.making import (
    HOME,
    ID,
    NOW,
    PROGRESS,
    STATE,
    agent,
    agents,
    cycle,
    panel,
    read,
    write,
)
from tests.protocols.cycle.making import state as made


def test_a_z_behind_the_time_of_the_cycle_s_own_id_is_local_time(tmp_path: Path) -> None:
    cycle(tmp_path, created_at="2026-03-02T18:00:00.123Z", updated_at="2026-03-02T11:00:00Z")
    started = read(tmp_path).started
    assert started == datetime(2026, 3, 2, 10, 0, 0, 123_000, tzinfo=UTC)


def test_a_z_of_a_cycle_with_another_id_is_utc(tmp_path: Path) -> None:
    other = "cycle-auto-9"
    write(tmp_path, f"{HOME}/{other}.json", made(cycle_id=other, created_at="2026-03-02T11:00:00Z"))
    assert read(tmp_path).started == NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    "written",
    ["2026-03-02T18:30:00+08:00", "2026-03-02 18:30", "2026/03/02 18:30:00", " 2026-03-02T10:30Z"],
)
def test_times_are_read_in_the_forms_that_people_write(written: str) -> None:
    assert schema.moment(written) == datetime(2026, 3, 2, 10, 30, tzinfo=UTC)


def test_no_age_is_told_from_a_time_that_lies_ahead(tmp_path: Path) -> None:
    ahead = agent("running", started_at="2026-03-03T18:00:00+08:00")
    (turn,) = read(cycle(tmp_path, agents=agents(cd=ahead))).turns
    assert turn.since == NOW - timedelta(minutes=1)


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"pass_rate": 1, "failed_tests": [], "total_tests": 215}, (100, 0)),
        ({"pass_rate": 0.85, "failed_tests": ["a", "b", "c"], "total_tests": 20}, (85, 3)),
        ({"pass_rate": 92, "failed_tests": ["a"], "total_tests": 20}, (92, 1)),
        ({"pass_rate": "92%", "failed_tests": ["a"], "total_tests": 20}, (92, 1)),
        ({"pass_rate": 1, "failed_tests": 99, "total_tests": 100}, (1, 99)),
        ({"pass_rate": 0, "failed_tests": ["a"], "total_tests": 1}, (0, 1)),
        ({"summary": {"total": 20, "passed": 17, "failed": 3}}, (85, 3)),
        ({"output_file": "x", "summary": {"total": 8, "failed": 2, "pass_rate": "75%"}}, (75, 2)),
        ({}, (None, None)),
    ],
)
def test_a_pass_rate_means_the_same_in_each_of_its_forms(
    told: dict[str, object], shown: tuple[float | None, int | None]
) -> None:
    found = state.Tests(told)
    assert (found.rate, found.failed) == shown


@pytest.mark.parametrize(
    ("told", "shown"),
    [(0, None), ("78%", 78), (0.78, 78), ({"lines": 81}, 81), ({"lines": 0}, None), ([], None)],
)
def test_no_coverage_is_not_collected(told: object, shown: float | None) -> None:
    assert state.Tests({"coverage": told}).coverage == shown


def test_what_a_state_leaves_out_is_unknown(tmp_path: Path) -> None:
    """An orchestrator that follows the published steps loses what its agents found."""
    bare = {name: {"status": "completed", "output_files": []} for name in schema.AGENTS}
    value = made("completed", agents=bare)
    for key in ("plan", "test_results", "coordination", "current_iteration", "current_phase"):
        del value[key]
    write(tmp_path, STATE, value)
    snapshot = read(tmp_path)
    assert snapshot.headline.startswith("marked completed, but not proven;")
    assert [need.sentence for need in snapshot.needs] == ["Completed, but no tests ran"]
    assert (snapshot.round, snapshot.status) == (None, Status.COMPLETED)


@pytest.mark.parametrize(
    "head",
    [
        "# R - v1.2.0",
        "# R - Version 1.2.0",
        "# R (v1.2.0)",
        "# R\n\n| **Version** | 1.2.0 |",
        "# R\n\n| Version | 1.2.0 |\n| Since | 1.0.0 |",
        "# R\n" + "\n" * 13 + "v1.2.0",
    ],
)
def test_a_version_stands_in_one_of_five_forms(head: str) -> None:
    assert schema.version_in(head) == (1, 2, 0)


@pytest.mark.parametrize("head", ["", "# R\n" + "\n" * 14 + "v1.2.0", "10.0.0.12", "v1.2"])
def test_what_is_no_version_is_none(head: str) -> None:
    assert schema.version_in(head) is None


def test_backslashes_part_folders(tmp_path: Path) -> None:
    listed = [f".workflow\\.cycle\\{ID}.progress/ra/requirements.md"]
    cycle(tmp_path, agents=agents(ra=agent(output_files=listed)))
    write(tmp_path, f"{PROGRESS}/ra/requirements.md", "# R\n")
    assert {finding.code for finding in read(tmp_path).findings} == {"A15"}


def test_line_ends_that_are_spelled_out_are_line_ends(tmp_path: Path) -> None:
    assert read(cycle(tmp_path, description="Do it\\n\\nNow")).objective == "Do it Now"
    spelled = "# Issues\\n\\n### Issue 1: No limit\\n- Blocker: Yes\\n"
    assert state.read_issues(spelled).blockers == (state.Item("No limit", 3),)


def test_issues_tell_what_blocks_and_what_is_asked() -> None:
    text = """# Issues - v1.0.0

## Open Issues
### Issue 1: Newline inside a cell
- Blocker: No
### Issue 2: No fixture data
- **Blocker**: Yes

## Resolved Issues
### Issue 3: Gone
- Blocker: Yes

## Questions for RA
- Q1: Is the header row optional?
- [x] Q2: Which delimiter?
- None
"""
    found = state.read_issues(text)
    assert [item.text for item in found.blockers] == ["No fixture data"]
    assert found.questions == (state.Item("Is the header row optional?", 14),)


def test_a_plan_without_json_is_read_from_its_text(tmp_path: Path) -> None:
    text = (
        "# Plan - v1.0.0\n- [x] **TASK-001**: Module\n- [ ] TASK-002: Button\n"
        "  - Depends on: TASK-001\n| TASK-003 | Tests | small |\nSee TASK-009.\n"
    )
    assert [(t["id"], t["title"], t.get("status")) for t in state.tasks_in_text(text)] == [
        ("TASK-001", "Module", "completed"),
        ("TASK-002", "Button", "pending"),
        ("TASK-003", "Tests", None),
    ]
    cycle(tmp_path, plan=None)
    write(tmp_path, f"{PROGRESS}/ep/plan.md", text)
    assert [row[0] for row in panel(tmp_path, "plan")] == ["TASK-001", "TASK-002", "TASK-003"]
    write(tmp_path, f"{PROGRESS}/ep/plan.json", {"tasks": [{"id": "T1"}]})
    assert [row[0] for row in panel(tmp_path, "plan")] == ["T1"]


def test_each_form_of_a_line_of_the_coordination_is_an_event(tmp_path: Path) -> None:
    cycle(tmp_path)
    lines = [
        "- 2026-03-02T18:01:00+08:00 RA: drafted",
        "- 2026-03-02T18:02:00+08:00: only a text",
        "- 2026-03-02T18:03:00+08:00 COMPLETE",
        "- 2026-03-02T18:04:00+08:00 ITER-2: goes on",
        "- 2026-03-02 18:05 EP: without an offset",
        "- [2026-03-02T18:06:00+08:00] CD: in brackets",
        "- no time at all",
        "- 12 files",
    ]
    write(tmp_path, f"{PROGRESS}/coordination/timeline.md", "\n".join(lines))
    told = [
        (e.actor, e.summary, e.at and (e.at - NOW).total_seconds() // 60 + 120)
        for e in read(tmp_path).events
        if e.line
    ]
    assert told == [
        ("ra", "drafted", 1),
        ("orchestrator", "only a text", 2),
        ("orchestrator", "COMPLETE", 3),
        ("orchestrator", "goes on", 4),
        ("ep", "without an offset", 5),
        ("cd", "in brackets", 6),
    ]


def test_a_clock_without_a_day_runs_on_past_midnight(tmp_path: Path) -> None:
    cycle(tmp_path)
    text = "## Timeline\n- [23:50:00] CD: Begins\n- [00:10:00] CD: Ends\n## Decision Records\n- [18:30:00] RA: Yes\n"
    write(tmp_path, f"{PROGRESS}/coordination/feedback.md", text)
    told = {e.summary: e.at for e in read(tmp_path).events if e.kind in ("note", "decided")}
    assert told == {
        "Begins": datetime(2026, 3, 2, 15, 50, tzinfo=UTC),
        "Ends": datetime(2026, 3, 2, 16, 10, tzinfo=UTC),
        "Yes": datetime(2026, 3, 2, 10, 30, tzinfo=UTC),
    }


def test_decisions_and_blockers_of_the_log_say_what_became_of_them(tmp_path: Path) -> None:
    cycle(tmp_path)
    text = """## Decision Records
- [18:31:00] RA Clarification: OAuth optional?
  - Decision: Optional
  - Impact: FR-003

## Blockers & Resolutions
- [18:30:00] Blocker: Migration of users
  - Reported by: CD
  - Status: Resolved
- BLK-2 without a time
  - Reported by: VAS

## Cross-Agent Dependencies
  - Note: of none
"""
    write(tmp_path, f"{PROGRESS}/coordination/feedback.md", text)
    told = [(e.kind, e.actor, e.summary) for e in read(tmp_path).events if e.line]
    assert told == [
        ("blocked", "cd", "Migration of users · Status: Resolved"),
        (
            "decided",
            "orchestrator",
            "RA Clarification: OAuth optional? · Decision: Optional · Impact: FR-003",
        ),
    ]


def test_when_documents_were_written_is_told_by_their_files(tmp_path: Path) -> None:
    cycle(tmp_path)
    write(tmp_path, f"{PROGRESS}/ra/requirements.md", "# R - v1.0.0\n", ago=600)
    write(tmp_path, f"{PROGRESS}/ra/edge-cases.md", "# E - v1.0.0\n", ago=590)
    write(tmp_path, f"{PROGRESS}/ep/plan.json", {}, ago=300)
    write(tmp_path, f"{PROGRESS}/ra/history/requirements-v0.9.0.md", "# R\n", ago=300)
    written = [e for e in read(tmp_path).events if e.kind == "written"]
    assert [(e.actor, e.summary, e.at_source) for e in written] == [
        ("ra", "edge-cases.md, requirements.md", "file time"),
        ("ep", "plan.json", "file time"),
    ]


@pytest.mark.parametrize("ago", [300, -200_000])
def test_the_times_of_copied_files_tell_nothing(tmp_path: Path, ago: float) -> None:
    cycle(tmp_path)
    write(tmp_path, f"{PROGRESS}/ra/requirements.md", "# R - v1.0.0\n", ago=300)
    write(tmp_path, f"{PROGRESS}/ep/plan.json", {}, ago=ago)
    assert not [e for e in read(tmp_path).events if e.kind == "written"]


def test_a_log_that_holds_lines_in_place_of_rows_is_read(tmp_path: Path) -> None:
    cycle(tmp_path)
    line = "- 2026-03-02T18:30:00+08:00 USER: DEC-001 Stream\n"
    write(tmp_path, f"{PROGRESS}/coordination/decisions.log", line)
    assert ("user", "DEC-001 Stream") in {(e.actor, e.summary) for e in read(tmp_path).events}


def test_a_state_that_vanishes_is_bridged_by_the_last_good_one(tmp_path: Path) -> None:
    opened = open_cycles(str(cycle(tmp_path)))
    write(tmp_path, f"{PROGRESS}/ra/requirements.md", "# R - v1.0.0\n")
    assert opened.refresh(NOW).phase == "cd"
    (tmp_path / STATE).unlink()
    gone = opened.refresh(NOW)
    assert (gone.phase, gone.source.state.value) == ("cd", "stale")


@pytest.mark.parametrize(
    ("plan", "ids"),
    [
        (None, []),
        ({"version": "1.0.0", "output_file": "ep/plan.json", "summary": {"total_tasks": 1}}, ["F"]),
        ({"tasks": [{"id": "S"}]}, ["S"]),
        ({"tasks": "none"}, ["F"]),
    ],
)
def test_a_plan_may_be_told_or_referred_to(tmp_path: Path, plan: object, ids: list[str]) -> None:
    cycle(tmp_path, plan=plan)
    if ids == ["F"]:
        write(tmp_path, f"{PROGRESS}/ep/plan.json", json.dumps({"tasks": [{"id": "F"}]}))
    assert [row[0] for row in panel(tmp_path, "plan")] == ids


def test_a_row_that_is_older_than_its_cycle_stands_at_the_time_of_its_file(tmp_path: Path) -> None:
    cycle(tmp_path)
    log = [{"timestamp": "2024-01-01T00:00:00+08:00", "file": "old.py"},
           {"timestamp": "2026-03-02T18:20:00+08:00", "file": "new.py"}]  # fmt: skip
    write(tmp_path, f"{PROGRESS}/cd/changes.log", "".join(json.dumps(row) + "\n" for row in log))
    told = {e.summary: (e.at, e.at_source) for e in read(tmp_path).events if e.kind == "log"}
    assert told["old.py"] == (NOW - timedelta(seconds=60), "file time")
    assert told["new.py"][1] == "recorded"
