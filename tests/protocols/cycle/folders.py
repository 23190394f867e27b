"""Whole folders of cycles, as people and programs leave them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.protocols.cycle.making import HOME, task, write
from tests.protocols.cycle.situations import rows

WHAT = "Log in with a passkey"
IDLE = {name: {"status": "idle", "output_files": []} for name in ("ra", "ep", "cd", "vas")}


def id_of(word: str, day: str = "20260302T180000") -> str:
    return f"cycle-v1-{day}-{word}"


def at(clock: str, day: str = "2026-03-02") -> str:
    return f"{day}T{clock}:00+08:00"


def put(root: Path, id: str, value: Any, files: dict[str, Any] | None = None) -> Path:
    """A cycle's state, and files of its progress folder."""
    write(root, f"{HOME}/{id}.json", value)
    for name, content in (files or {}).items():
        write(root, f"{HOME}/{id}.progress/{name}", content)
    return root


def listed(id: str, agent: str, *names: str, sign: str = "/") -> list[str]:
    base = sign.join((".workflow", ".cycle", f"{id}.progress"))
    return [f"{base}/{agent}/{name}" for name in names]


def created(word: str = "init0000") -> dict[str, Any]:
    """What the published skill writes at first: its clock is local time with a Z."""
    return {
        "cycle_id": id_of(word),
        "title": WHAT,
        "description": WHAT,
        "max_iterations": 5,
        "status": "running",
        "created_at": "2026-03-02T18:00:00.123Z",
        "updated_at": "2026-03-02T18:00:00.123Z",
        "agents": IDLE,
        "current_phase": "init",
        "completed_phases": [],
        "current_iteration": 0,
        "requirements": None,
        "exploration": None,
        "plan": None,
        "changes": [],
        "test_results": None,
    }


def just_created(root: Path) -> Path:
    """All agents idle, nothing known yet."""
    return put(root, id_of("init0000"), created())


def _agents(id: str, cd: dict[str, Any], vas: dict[str, Any]) -> dict[str, Any]:
    def made(name: str, start: str, end: str, *files: str) -> dict[str, Any]:
        return {
            "status": "completed",
            "started_at": at(start),
            "completed_at": at(end),
            "output_files": listed(id, name, *files),
            "iterations_completed": 1,
        }

    return {
        "ra": made("ra", "18:05", "18:10", "requirements.md", "changes.log")
        | {"depends_on": [], "ready": True, "can_start": True},
        "ep": made("ep", "18:10", "18:15", "exploration.md", "plan.json")
        | {"depends_on": ["ra"], "ready": True, "can_start": True},
        "cd": made("cd", "18:15", "18:40", "implementation.md", "issues.md")
        | {"depends_on": ["ep"], "ready": True, "can_start": True}
        | cd,
        "vas": made("vas", "18:40", "18:45", "validation.md", "test-results.json")
        | {"depends_on": ["cd"], "ready": True, "can_start": False}
        | vas,
    }


def _state(id: str, cd: dict[str, Any], vas: dict[str, Any], **changed: Any) -> dict[str, Any]:
    value = created() | {
        "cycle_id": id,
        "task_history": [WHAT],
        "created_at": at("18:00"),
        "updated_at": at("18:46"),
        "agents": _agents(id, cd, vas),
        "current_phase": "cd",
        "completed_phases": ["ra", "ep"],
        "current_iteration": 1,
        "requirements": {"version": "1.1.0", "last_updated": at("18:31")},
        "exploration": {"version": "1.0.0", "last_updated": at("18:15")},
        "plan": {"version": "1.0.0", "tasks": [task("TASK-001"), task("TASK-002")]},
        "iterations": [{"number": 1, "started_at": at("18:00")}],
        "coordination": {"feedback_log": [], "pending_decisions": [], "blockers": []},
    }
    return {key: held for key, held in (value | changed).items() if held is not None}


def _feedback(clock: str, source: str, target: str, type: str) -> dict[str, str]:
    said = {"timestamp": at(clock), "source": source, "target": target, "type": type}
    return said | {"content": "See vas/test-results.json v1.0.0"}


_RESULTS = {
    "version": "1.0.0",
    "timestamp": at("18:45"),
    "iteration": 1,
    "summary": {"total": 20, "passed": 17, "failed": 3, "skipped": 0},
    "by_suite": [{"suite": "login", "tests": 20, "passed": 17, "failed": 3}],
    "coverage": {"lines": 78, "by_file": []},
}


def feedback_sent(root: Path) -> Path:
    """Tests failed, and CD was sent feedback: it is at work again."""
    id = id_of("feedback")
    log = [_feedback("18:31", "cd", "ra", "clarification"),
           _feedback("18:45", "vas", "cd", "bug_report")]  # fmt: skip
    value = _state(
        id,
        {"status": "running", "started_at": at("18:45"), "completed_at": None},
        {},
        coordination={"feedback_log": log, "pending_decisions": [], "blockers": []},
    )
    head = "| **Version** | {} |\n"
    return put(
        root,
        id,
        value,
        {
            "ra/requirements.md": "# Requirements\n\n" + head.format("1.1.0"),
            "ra/history/requirements-v1.0.0.md": "# Requirements\n\n" + head.format("1.0.0"),
            "ra/changes.log": rows({"timestamp": at("18:10"), "agent": "ra", "version": "1.0.0"}),
            "ep/exploration.md": "# Exploration (v1.0.0)\n",
            "ep/plan.json": {"version": "1.0.0", "total_tasks": 2,
                             "tasks": [task("TASK-001"), task("TASK-002")]},
            "cd/implementation.md": "# Implementation - Version 1.0.0\n",
            "cd/issues.md": "# Issues - Version 1.0.0\n## Questions for RA\n- Q1: Optional?\n",
            "vas/validation.md": "# Validation - v1.0.0\n",
            "vas/test-results.json": _RESULTS,
            "coordination/feedback.md": "# Log - Version 1.0.0\n## Timeline\n"
                                        "- [18:45:01] Orchestrator: Sending feedback to CD\n",
        },
    )  # fmt: skip


def completed(root: Path) -> Path:
    """Two iterations, the second of which repaired what the first one broke."""
    id = id_of("completed")
    more = {"iterations_completed": 2, "output_files": []}
    value = _state(
        id,
        more | {"started_at": at("18:46"), "completed_at": at("18:48")},
        more | {"started_at": at("18:50"), "completed_at": at("18:55")},
        status="completed",
        current_phase="complete",
        current_iteration=2,
        updated_at=at("19:00"),
        completed_at=at("19:00"),
        iterations=[{"number": 1, "completed_at": at("18:45")}, {"number": 2}],
        test_results={"version": "1.1.0", "pass_rate": 100, "coverage": 88,
                      "failed_tests": [], "total_tests": 22},
    )  # fmt: skip
    for part in ("exploration", "plan"):
        value[part] = value[part] | {"version": "1.1.0"}
    for name in ("ra", "ep"):
        value["agents"][name] |= more
    return put(root, id, value)


def escalated(root: Path) -> Path:
    """CD cannot go on without a person's decision."""
    id = id_of("escalate")
    decision = {"id": "DEC-001", "description": "Old browsers", "status": "pending",
                "options": ["Password too", "Refuse"]}  # fmt: skip
    blocker = {
        "id": "BLK-002",
        "description": "Old browsers",
        "reported_by": "cd",
        "status": "open",
    }
    value = _state(
        id,
        {"status": "waiting", "completed_at": None, "last_message": "Need DEC-001",
         "output_files": [], "iterations_completed": 0},
        {"status": "idle", "started_at": None, "completed_at": None, "output_files": [],
         "iterations_completed": 0, "ready": False},
        status="paused",
        coordination={"feedback_log": [_feedback("18:31", "cd", "orchestrator", "clarification")],
                      "pending_decisions": [decision], "blockers": [blocker]},
        exploration={"version": "1.1.0"}, plan={"version": "1.1.0", "tasks": []},
    )  # fmt: skip
    for name in ("ra", "ep"):
        value["agents"][name]["output_files"] = []
    return put(root, id, value)


def limit_reached(root: Path) -> Path:
    """What the published steps leave at the limit: completed, with failing tests."""
    id = id_of("limit005")
    bare = {name: {"status": "completed", "output_files": []} for name in IDLE}
    value = created() | {
        "cycle_id": id,
        "description": f"{WHAT}\n\n--- ITERATION 1 ---\nAlso by key",
        "max_iterations": 2,
        "status": "completed",
        "updated_at": "2026-03-02T19:20:00.000Z",
        "completed_at": "2026-03-02T19:20:01.000Z",
        "agents": bare,
        "completed_phases": [*IDLE, *IDLE],
        "current_iteration": 2,
    }
    for key in ("requirements", "exploration", "plan", "changes", "test_results"):
        del value[key]
    results = _RESULTS | {"iteration": 2, "version": "1.1.0"}
    results |= {"summary": {"total": 20, "passed": 18, "failed": 2, "skipped": 0}}
    return put(root, id, value, {"vas/test-results.json": results})


def prepared(root: Path) -> Path:
    """A later form: a package of preparation, a board of discoveries whose last line is torn."""
    id = id_of("prep0042")
    value = created() | {
        "cycle_id": id,
        "current_iteration": 3,
        "convergence": {"test_pass_rate": 90, "coverage": 80, "max_critical_bugs": 0},
        "agent_focus": {"zero_to_one": {"ra": "core_requirements_only"}},
        "source_refs": [{"path": "docs/prd.md", "type": "local_file", "status": "verified"}],
    }
    found = [
        {"ts": at("18:01"), "agent": "ra", "type": "tech_stack", "data": {"language": "TypeScript"}},
        {"ts": at("18:20"), "agent": "vas", "type": "test_baseline", "data": {"total": 20}},
        {"ts": at("18:40"), "agent": "cd", "type": "blocker",
         "data": {"issue": "No test device", "severity": "medium", "impact": "untested"}},
    ]  # fmt: skip
    package = {
        "version": "1.0.0",
        "generated_at": at("17:50"),
        "prep_status": "ready",
        "environment": {"project_root": "/elsewhere"},
        "task": {"original": "passkey", "refined": WHAT, "quality_score": 8},
        "auto_iteration": {"max_iterations": 5,
                           "convergence": {"test_pass_rate": 90, "coverage": 80}},
    }  # fmt: skip
    write(root, f"{HOME}/prep-package.json", package)
    board = rows(*found) + '{"ts":"2026-03-02T18:41:00+08:00","agent":"cd","type":"util'
    debug = rows({"timestamp": at("18:50"), "iteration": 1, "issue_id": "BUG-1", "file": "a.ts",
                  "observation": "fails", "outcome": "confirmed"})  # fmt: skip
    return put(root, id, value, {
        "coordination/discoveries.ndjson": board, "cd/debug-log.ndjson": debug})  # fmt: skip


def broken(root: Path) -> Path:
    """One with wrong words, one under a wrong name, one that ends in the middle."""
    bad = _state(
        id_of("badenum1"),
        {"status": "done"},
        {},
        status="in-progress",
        updated_at="2026-03-02 18:30",
        current_iteration=7,
        plan={"version": "1.0.0", "tasks": [
            task("TASK-001", "completed", "TASK-003", "TASK-099"),
            task("TASK-002", "completed", "TASK-001"),
            task("TASK-003", "pending", "TASK-002")]},
    )  # fmt: skip
    del bad["agents"]["ra"]
    bad["agents"]["ep"]["depends_on"] = ["vas"]
    put(root, id_of("badenum1"), bad)
    put(root, id_of("idwrong0"), created() | {"cycle_id": "cycle-v1-20260101T000000-other"})
    return put(root, id_of("truncate"), json.dumps(created())[:300])


def planned_only(root: Path) -> Path:
    """Completed by its own words: nothing was built, nothing tested, a decision is open."""
    id = id_of("p0-planned")
    decision = {"id": "DEC-001", "description": "What of the required field", "status": "pending",
                "options": ["Make it optional (recommended)", "Set a default"]}  # fmt: skip
    value = _state(
        id,
        {"output_files": listed(id, "cd", "implementation.md", "changes.log")},
        {},
        status="completed",
        completed_at=at("18:46"),
        current_phase="complete",
        completed_phases=["ra", "ep", "cd", "vas", "aggregation", "complete"],
        requirements={"version": "1.0.0"},
        plan={"version": "1.0.0", "tasks": [task("TASK-001", "pending"), task("TASK-002", "pending")]},
        test_results={"version": "1.0.0", "pass_rate": 0, "coverage": 0, "failed_tests": [],
                      "total_tests": 0},
        coordination={"feedback_log": [], "pending_decisions": [decision], "blockers": []},
    )  # fmt: skip
    return put(root, id, value)


def written_by_people(root: Path) -> Path:
    """Two that people ran: one with backslashes and a fraction, one with an iteration twice."""
    by_hand = id_of("hand-bwxjep", "20260303T170509")
    names = ("implementation.md", "changes.log")
    first = _state(
        by_hand,
        {"output_files": listed(by_hand, "cd", *names, sign="\\"), "iterations_completed": 0},
        {"output_files": [], "iterations_completed": 0},
        description=f"Source: task.md\\n\\nObjective: {WHAT}",
        status="completed",
        current_phase="vas",
        updated_at=at("18:46", "2026-03-03"),
        plan={"version": "1.0.0", "tasks": [], "critical_path": []},
        requirements={"version": "1.0.0"},
        test_results={"version": "1.0.0", "pass_rate": 1, "coverage": 0, "failed_tests": [],
                      "total_tests": 215},
        iterations=[],
    )  # fmt: skip
    for name in ("ra", "ep"):
        first["agents"][name] |= {"output_files": [], "iterations_completed": 0}
    tasks = [{"id": "LP4-1", "title": "Append in one go", "status": "done", "artifacts": ["a.ts"]},
             {"id": "LP4-2", "title": "Run all tests", "status": "todo", "artifacts": []}]  # fmt: skip
    put(root, by_hand, first, {
        "ep/plan.json": {"version": "1.0.0", "cycle_id": by_hand, "tasks": tasks},
        "vas/test-results.json": first["test_results"],
        "cd/debug-log.ndjson": rows({"timestamp": at("18:40"), "level": "info", "message": "done"}),
        "cd/issues.md": "# Issues\\n\\n- None tracked in this iteration.\\n",
    })  # fmt: skip
    twice = id_of("p0-aicdpz")
    numbers = [
        {"number": n, "started_at": at("18:00"), "completed_at": at("18:46")} for n in (1, 2, 2)
    ]
    more = {"output_files": [], "iterations_completed": 1}
    second = _state(
        twice,
        more,
        more,
        status="completed",
        completed_at=at("18:46"),
        current_phase="complete",
        current_iteration=2,
        description=f"{WHAT}\n\n--- ITERATION 2 ---\nDecide DEC-001: make it optional",
        test_results={"version": "1.1.0", "pass_rate": 1, "coverage": 0, "failed_tests": [],
                      "total_tests": 197},
        iterations=numbers,
    )  # fmt: skip
    for name in ("ra", "ep"):
        second["agents"][name] |= more
    return put(root, twice, second, {
        "coordination/timeline.md": f"- {at('18:00')} INIT: created cycle\n- {at('18:46')} COMPLETE\n",
    })  # fmt: skip
