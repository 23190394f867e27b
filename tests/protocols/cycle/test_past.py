"""A cycle that nobody recorded can be gone through again, as far as its own files tell of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acp_core.history.past import Past, Then
from acp_core.model.past import Evidence
from acp_core.protocols import registry
from acp_core.protocols.cycle.past import CycleDerivation
from acp_core.protocols.discovery import identify
from tests.cli.support import Acp
from tests.protocols.cycle.making import HOME, ID, NOW, PROGRESS, STATE, task, write
from tests.protocols.cycle.making import state as made

DAY = "2026-03-02T"
TIMELINE = f"{PROGRESS}/coordination/timeline.md"


def stamp(clock: str) -> str:
    return f"{DAY}{clock}:00+08:00"


LINES = (
    ("18:00", "Orchestrator: created cycle"),
    ("18:01", "Orchestrator: iteration 1 begins, with ra, ep, cd, vas"),
    ("18:02", "RA: started, run 1-ra, for version 1.0.0"),
    ("18:10", "RA: completed, v1.0.0: One requirement"),
    ("18:11", "EP: started, run 1-ep, for version 1.0.0"),
    ("18:15", "EP: completed, v1.0.0: Two tasks"),
    ("18:16", "CD: started, run 1-cd, for version 1.0.0"),
    ("18:20", "CD: run 1-cd failed: it printed no PHASE_RESULT"),
    ("18:21", "CD: started, run 1-cd-2, for version 1.0.0"),
    ("18:30", "CD: completed, v1.0.0: Built"),
    ("18:31", "VAS: started, run 1-vas, for version 1.0.0"),
    ("18:35", "VAS: completed, v1.0.0: 2 of 10 fail"),
    ("18:36", "Orchestrator: iteration 2 begins, with cd, vas"),
    ("18:36", "Orchestrator: all documents go on with version 1.1.0"),
    ("18:37", "CD: started, run 2-cd, for version 1.1.0"),
    ("18:40", "CD: completed, v1.1.0: Undecided"),
    ("18:40", "CD: blocker BLK-001: Large exports?"),
    ("18:40", "Orchestrator: escalated to the user: DEC-001: Large exports?"),
    ("18:50", "User: decide: DEC-001: Refuse"),
    ("18:51", "CD: started, run 2-cd-2, for version 1.1.0"),
    ("18:55", "CD: completed, v1.1.0: Repaired"),
    ("18:56", "VAS: started, run 2-vas, for version 1.1.0"),
    ("18:59", "VAS: completed, v1.1.0: All pass"),
    ("19:00", "Orchestrator: cycle complete: all tests pass"),
)


def results_of(version: str, failed: int) -> dict[str, Any]:
    return {"version": version, "summary": {"total": 10, "passed": 10 - failed, "failed": failed}}


def finished(root: Path) -> Path:
    """A cycle of two iterations with an escalation; all its files were copied here at once."""
    agents: dict[str, Any] = {
        name: {"status": "completed", "output_files": [], "iterations_completed": 2, "ready": True}
        for name in ("ra", "ep", "cd", "vas")
    }
    agents["ra"]["output_files"] = [f"{PROGRESS}/ra/requirements.md"]
    decision = {"id": "DEC-001", "description": "Large exports?", "options": ["Stream", "Refuse"],
                "status": "implemented", "made_by": "user", "chosen_option": "Refuse", "blocker": "BLK-001",
                "asked_at": stamp("18:40"), "made_at": stamp("18:50")}  # fmt: skip
    blocker = {"id": "BLK-001", "description": "Large exports?", "reported_by": "cd",
               "status": "resolved", "resolution": "Refuse", "reported_at": stamp("18:40"),
               "resolved_at": stamp("18:50")}  # fmt: skip
    feedback = {"timestamp": stamp("18:36"), "source": "vas", "target": "cd", "type": "bug_report",
                "content": "2 of 10 fail"}  # fmt: skip
    value = made(
        "completed",
        agents=agents,
        current_iteration=2,
        plan={"version": "1.1.0", "tasks": [task("T1"), task("T2", "completed", "T1")]},
        requirements={"version": "1.1.0", "summary": {"text": "One requirement"}},
        test_results={"version": "1.1.0", "pass_rate": 100, "failed_tests": [], "total_tests": 10,
                      "last_run": stamp("18:59")},
        iterations=[
            {"number": 1, "started_at": stamp("18:01"), "completed_at": stamp("18:36"),
             "agent_results": {"vas": {"status": "failed"}}, "issues_found": ["2 of 10 fail"]},
            {"number": 2, "started_at": stamp("18:36"), "completed_at": stamp("19:00"),
             "agent_results": {"cd": {"status": "success"}, "vas": {"status": "success"}}},
        ],
        phase_errors=[{"phase": "cd", "error": "no PHASE_RESULT", "timestamp": stamp("18:20")}],
        coordination={"feedback_log": [feedback], "pending_decisions": [decision],
                      "blockers": [blocker]},
    )  # fmt: skip
    said = "PHASE_RESULT:\n- phase: cd\n- status: partial\n- tasks_completed: {}\n"
    files = {
        "ra/requirements.md": "# Requirements - v1.1.0\nOne, raised\n",
        "ra/history/requirements-v1.0.0.md": "# Requirements - v1.0.0\nOne\n",
        "cd/implementation.md": "# Implementation - v1.1.0\nRepaired\n",
        "cd/history/implementation-v1.0.0.md": "# Implementation - v1.0.0\nBuilt\n",
        "cd/changes.log": "".join(
            json.dumps({"timestamp": stamp(clock), "file": "csv.py", "action": "modify"}) + "\n"
            for clock in ("18:25", "18:54")
        ),
        "vas/test-results.json": results_of("1.1.0", 0),
        "vas/history/test-results-v1.0.0.json": results_of("1.0.0", 2),
        "coordination/phase-results/1-cd-2.txt": said.format("[T1]"),
        "coordination/phase-results/2-cd-2.txt": said.format("[T1, T2]"),
        "coordination/messages/2-cd.md": "## FEEDBACK FROM VAS\n",
        "coordination/timeline.md": "# Timeline\n\n"
        + "".join(f"- {stamp(clock)} {said}\n" for clock, said in LINES),
        "coordination/feedback.md": "# Feedback & Coordination Log - Version 1.1.0\n\n## Timeline\n"
        f"- [{stamp('18:02')}] RA: started, run 1-ra, for version 1.0.0\n\n## Decision Records\n"
        f"- [{stamp('18:40')}] DEC-001: Large exports?\n  - Decision: Refuse\n",
    }
    write(root, STATE, value)
    for name, content in files.items():
        write(root, f"{PROGRESS}/{name}", content)
    return root


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    found = identify(finished(tmp_path), registry.installed())
    assert found is not None
    opened = Past(found, NOW)
    yield opened
    opened.close()


def at(past: Past, clock: str) -> Then:
    place = past.nearest(datetime.fromisoformat(f"{DAY}{clock}:59+08:00"))
    assert place is not None
    return past.at(place)


def said(past: Past, clock: str, document: str) -> str:
    place = past.nearest(datetime.fromisoformat(f"{DAY}{clock}:59+08:00"))
    assert place is not None
    return past.text(place, f"{PROGRESS}/{document}").text


def statuses(then: Then) -> list[str]:
    return [row.cells[1] for row in panel(then, "pipeline")]


def panel(then: Then, id: str) -> Any:
    return next(each for each in then.snapshot.panels if each.id == id).rows


@pytest.mark.parametrize(
    ("clock", "headline", "agents"),
    [
        ("18:01", "running; iteration 1/5; no tests ran", "idle idle idle idle"),
        ("18:05", "running; iteration 1/5", "running idle idle idle"),
        ("18:12", "running", "completed running idle idle"),
        ("18:20", "running", "completed completed failed idle"),
        ("18:32", "iteration 1/5; no tests ran", "completed completed completed running"),
        ("18:36", "iteration 2/5; 10 tests, 2 failed, 80 %", "completed completed idle idle"),
        ("18:45", "paused, a decision is open; iteration 2/5", "completed completed waiting idle"),
        ("18:52", "running", "completed completed running idle"),
        ("19:00", "completed; iteration 2/5; 10 tests, 0 failed", "completed " * 4),
    ],
)
def test_who_was_at_work_at_a_moment_is_told_by_the_timeline(
    past: Past, clock: str, headline: str, agents: str
) -> None:
    then = at(past, clock)
    assert headline in then.snapshot.headline
    assert statuses(then) == agents.split()


def test_a_decision_was_pending_until_it_was_made(past: Past) -> None:
    before = at(past, "18:38").snapshot.panels
    assert not any(each.id == "decisions" and each.rows for each in before)
    assert panel(at(past, "18:45"), "decisions")[0].cells[2] == "pending"
    assert "open" in panel(at(past, "18:45"), "blockers")[0].cells
    after = at(past, "18:52")
    assert panel(after, "decisions")[0].cells[2] == "implemented"
    assert "resolved" in panel(after, "blockers")[0].cells


def test_a_document_held_what_its_version_of_then_held(past: Past) -> None:
    assert "One\n" in said(past, "18:30", "ra/requirements.md")
    assert "raised" in said(past, "18:36", "ra/requirements.md")
    assert "Built" in said(past, "18:38", "cd/implementation.md"), "it was not written anew yet"
    assert "Repaired" in said(past, "18:56", "cd/implementation.md")
    names = {each.id for each in at(past, "18:12").snapshot.documents}
    assert not any("/cd/" in name or "/vas/" in name for name in names)
    assert f"{PROGRESS}/ra/history/requirements-v1.0.0.md" not in names


def test_a_document_that_was_being_written_for_the_first_time_is_not_recorded(past: Past) -> None:
    then = at(past, "18:05")
    assert f"{PROGRESS}/ra/requirements.md" in then.missing
    assert then.snapshot.doubt == "not recorded: ra/requirements.md"
    assert at(past, "18:12").snapshot.doubt == ""


def test_logs_and_the_coordination_had_got_so_far(past: Past) -> None:
    assert said(past, "18:52", "cd/changes.log").count("\n") == 1
    assert said(past, "18:56", "cd/changes.log").count("\n") == 2
    assert "cycle complete" not in said(past, "18:52", "coordination/timeline.md")
    assert "Decision: pending" in said(past, "18:45", "coordination/feedback.md")
    assert "Decision: Refuse" in said(past, "18:52", "coordination/feedback.md")
    names = {each.id for each in at(past, "18:36").snapshot.documents}
    assert f"{PROGRESS}/coordination/messages/2-cd.md" not in names
    names = {each.id for each in at(past, "18:38").snapshot.documents}
    assert f"{PROGRESS}/coordination/messages/2-cd.md" in names


def test_tasks_are_done_once_cd_had_said_so(past: Past) -> None:
    def tasks(clock: str) -> list[str]:
        return [cells[1] for cells in (row.cells for row in panel(at(past, clock), "plan"))]

    assert tasks("18:20") == ["pending", "pending"]
    assert tasks("18:32") == ["completed", "pending"]
    assert tasks("18:56") == ["completed", "completed"]


def test_the_versions_of_a_document_are_found_by_the_end_of_its_name(tmp_path: Path) -> None:
    acp, root = Acp(tmp_path), tmp_path / "export"
    finished(root)
    assert acp("record", "--once", str(root)).returncode == 0
    write(root, f"{PROGRESS}/ra/requirements.md", "# Requirements - v1.2.0\nTwo\n", ago=30)
    found = acp("diff", str(root), "ra/requirements.md")
    assert found.returncode == 1, found.stderr
    assert "+Two" in found.stdout.splitlines()
    assert acp("diff", str(root), "requirements.txt").returncode == 2


def test_every_moment_is_read_in_either_direction(past: Past) -> None:
    there = [past.at(place).snapshot.headline for place in range(len(past.moments))]
    back = [past.at(place).snapshot.headline for place in reversed(range(len(past.moments)))]
    assert there == back[::-1]
    codes = {
        each.code for place in range(len(past.moments)) for each in past.at(place).snapshot.findings
    }
    assert not codes & {"A01", "A02", "A05", "A08", "A09", "A12", "A48", "A49", "A50", "A52"}


def test_a_plan_whose_tasks_were_marked_later_is_not_recorded(tmp_path: Path) -> None:
    value = made("completed", plan=None, requirements={"version": "1.0.0"})
    write(tmp_path, STATE, value)
    plan = {"version": "1.0.0", "tasks": [{"id": "T1", "title": "One", "status": "done"}]}
    write(tmp_path, f"{PROGRESS}/ep/plan.json", plan)
    rows = [
        {"timestamp": stamp("18:10"), "version": "1.0.0", "change": "first"},
        {"timestamp": stamp("18:30"), "version": "1.1.0", "change": "clarified"},
    ]
    log = "".join(json.dumps(row) + "\n" for row in rows)
    write(tmp_path, f"{PROGRESS}/ra/changes.log", log)
    write(tmp_path, f"{PROGRESS}/ep/changes.log", log)
    found = identify(tmp_path, registry.installed())
    assert found is not None
    past = Past(found, NOW)
    try:
        assert f"{PROGRESS}/ep/plan.json" in at(past, "18:17").missing
        assert panel(at(past, "18:17"), "pipeline")[0].cells[4] == "1.0.0"
        assert panel(at(past, "18:32"), "pipeline")[0].cells[4] == "1.1.0", "by RA's own log"
    finally:
        past.close()


def test_others_words_for_the_same_are_understood(tmp_path: Path) -> None:
    """The log that the specification shows: clock times, and no timeline.md."""
    told = [
        "[18:05:00] RA: Requirements analysis started",
        "[18:10:00] RA: Requirements completed, v1.0.0",
        "[18:10:01] EP: Starting exploration (depends on RA output)",
        "[18:15:00] EP: Architecture designed, plan.json v1.0.0",
        "[18:15:01] CD: Starting implementation (depends on EP plan)",
        "[18:30:00] CD: Implementation progressing, found blocker",
        "[18:31:00] RA: Clarified requirement after CD blocker",
        "[18:40:00] CD: Implementation complete",
        "[18:40:01] VAS: Starting validation",
        "[18:45:00] VAS: Testing complete, found failures",
        "[18:45:01] Orchestrator: Sending feedback to CD",
        "[18:50:01] Orchestrator: Cycle complete",
    ]
    value = made("completed")
    for name, agent in value["agents"].items():
        agent.pop("started_at"), agent.pop("completed_at")
        if name == "ep":
            agent["completed_at"] = stamp("18:15")
    write(tmp_path, STATE, value)
    log = "# Log\n## Timeline\n" + "".join(f"- {line}\n" for line in told)
    write(tmp_path, f"{PROGRESS}/coordination/feedback.md", log)
    found = identify(tmp_path, registry.installed())
    assert found is not None
    past = Past(found, NOW)
    try:
        kinds = [each.kind for each in past.present.events if each.line]
        assert kinds == ["started", "completed", "started", "note", "started", "blocked",
                         "clarified", "completed", "started", "completed", "feedback",
                         "completed"]  # fmt: skip
        assert statuses(at(past, "18:20")) == ["completed", "completed", "running", "idle"]
        assert statuses(at(past, "18:42")) == ["completed", "completed", "completed", "running"]
    finally:
        past.close()


@given(
    changed=st.dictionaries(
        st.sampled_from(["agents", "coordination", "iterations", "plan", "changes", "created_at",
                         "description", "task_history", "phase_errors", "current_iteration",
                         "status", "requirements", "test_results"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5)
            | st.sampled_from([stamp("18:20"), "2026-03-02 18:30", "9999-12-31T23:59:59-23:59"]),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                st.sampled_from(["ra", "status", "started_at", "pending_decisions", "blockers",
                                 "changes", "tasks", "id", "number", "agent_results"]),
                inner, max_size=3),
            max_leaves=6,
        ),
    ),
    lines=st.lists(st.text(max_size=20) | st.sampled_from([f"- {stamp(c)} {s}" for c, s in LINES])),
    minute=st.integers(0, 70),
)  # fmt: skip
def test_whatever_the_files_hold_a_moment_is_told_or_is_not(
    changed: dict[str, Any], lines: list[str], minute: int
) -> None:
    known = {
        STATE: json.dumps(made("completed") | changed).encode("utf-8", "replace"),
        TIMELINE: "\n".join(lines).encode("utf-8", "replace"),
        f"{PROGRESS}/cd/changes.log": b"\xff\n{}\n[" + b"[" * 50,
        f"{PROGRESS}/ra/requirements.md": b"# R v1.0.0",
        f"{PROGRESS}/ra/history/requirements-v9.md": b"",
        f"{HOME}/prep-package.json": b"{}",
    }
    moment = datetime(2026, 3, 2, 10, tzinfo=UTC).timestamp() + 60 * minute
    found = CycleDerivation().derive(Evidence(datetime.fromtimestamp(moment, UTC), b"", known, {}))
    assert found.keys() <= known.keys()
    held = found.get(STATE)
    assert held is None or isinstance(json.loads(held), dict)


def test_what_cannot_be_read_is_not_derived_from() -> None:
    known = {STATE: b"[" * 10_000, TIMELINE: bytes(range(206, 256))}
    assert CycleDerivation().derive(Evidence(NOW, b"", known, {})) == {}
    assert CycleDerivation().derive(Evidence(NOW, b"", {}, {})) == {}
    assert ID in STATE
