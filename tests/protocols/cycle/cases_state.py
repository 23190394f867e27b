"""Where the rules on the state, the order and the people speak, and where they do not."""

from __future__ import annotations

import json
from typing import Any

from tests.protocols.cycle.making import (
    PROGRESS,
    agent,
    agents,
    blocker,
    coordination,
    decision,
    state,
    task,
)
from tests.protocols.cycle.situations import Situation, clock, on, rows

FAILING = {"pass_rate": 90, "coverage": 80, "failed_tests": ["a"], "total_tests": 10}
DONE = state("completed")["agents"]


def done(**changed: Any) -> dict[str, Any]:
    return DONE | changed


def fed(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    return coordination(feedback_log=list(entries), **more)


def feedback(hour: int, minute: int, target: str = "cd") -> dict[str, Any]:
    return {
        "timestamp": clock(hour, minute),
        "source": "vas",
        "target": target,
        "content": "Fix it",
        "type": "bug_report",
    }


def plan(*tasks: dict[str, Any]) -> dict[str, Any]:
    return {"version": "1.0.0", "tasks": list(tasks)}


LISTED = {"output_files": ["ra/x.md"]}
BLOCKS = {"coordination/discoveries.ndjson": rows(
    {"ts": clock(18), "agent": "cd", "type": "blocker",
     "data": {"issue": "No limit", "severity": "high", "impact": "memory"}}
)}  # fmt: skip
ISSUE = {"cd/issues.md": "# Issues - v1.0.0\n### Issue 1: Slow disk\n- Blocker: Yes\n"}

SPEAK: list[tuple[str, Situation]] = [
    ("A01 error", Situation(raw='{"cycle_id": "cyc')),
    ("A02 error", Situation(raw="[]")),
    ("A02 error", on(agents=[])),
    ("A03 error", on(cycle_id="cycle-v1-20260101T000000-other")),
    ("A05 error", on("in-progress")),
    ("A06 error", on(current_iteration=-1)),
    ("A06 error", on(current_iteration="1")),
    ("A07 warning", on(current_iteration=6)),
    ("A08 error", on(agents={"ra": agent(), "ep": agent(), "cd": agent()})),
    ("A08 advice", on(agents=agents(qa=agent()))),
    ("A09 warning", on(agents=agents(ra=agent("done")))),
    ("A09 error", on(agents=agents(ra=agent("sleeping")))),
    ("A10 error", on(created_at="yesterday")),
    ("A10 error", on(agents=agents(ra=agent(started_at="soon")))),
    ("A10 warning", on(updated_at="2026-03-02 19:00")),
    ("A10 warning", on(updated_at="2026/03/02T19:00:00+08:00")),
    ("A10z advice", on(updated_at="2026-03-02T19:59:00Z")),
    ("A10z advice", on(created_at="2026-03-02T18:00:00.123Z")),
    ("A11 warning", on("completed", agents=done(vas=agent(completed_at=clock(19, 30))))),
    ("A11 warning", on(agents=agents(cd=agent("running", started_at=clock(19, 30))))),
    ("A12 error", on(agents=agents(ra=agent(completed_at=clock(18, 4))))),
    ("A12 error", on("completed", completed_at=clock(17))),
    ("A13 advice", on("completed", agents=done(vas=agent(at=20, iterations_completed=0)))),
    ("A14 warning", on("completed", completed_at=None)),
    ("A14 error", on(completed_at=clock(18, 50), iterations=[
        {"number": 1, "started_at": clock(18), "completed_at": clock(18, 50)}])),
    ("A15 advice", on(agents=agents(ra=agent(output_files=["ra\\x.md"])))),
    ("A16 warning", on("completed", current_phase="vas")),
    ("A17 warning", on(agents=agents(ra=agent(**LISTED)))),
    ("A17 error", on(agents=agents(ra=agent(output_files=["../../../x"])))),
    ("A17 error", on(agents=agents(ra=agent(output_files=["/etc/passwd"])))),
    ("A17 warning", on(agents=agents(ra=agent(output_file="ra/x.md")))),
    ("A17 warning", on(implementation={"output_files": {"main": "cd/implementation.md"}})),
    ("A17 error", on(requirements={"output_file": "/etc/passwd"})),
    ("A17 error", on(agents=agents(ra=agent(output_files=[f"{PROGRESS}/ra/../../x"])))),
    ("A18 warning", Situation(files={"cd/implementation.md": "# I - v1.0.0\n"}, ago=4_000,
                              raw=json.dumps(state()))),
    ("A19 warning", on(agents=agents(cd=agent("failed")))),
    ("A20 warning", on(agents=agents(cd=agent("running", at=12)))),
    ("A21 error", on(agents=agents(ep=agent(at=10, depends_on=["qa"])))),
    ("A21 error", on(agents=agents(ep=agent(at=10, depends_on=["vas"])))),
    ("A21 warning", on(agents=agents(vas=agent("idle", depends_on=["ra"])))),
    ("A22 warning", on(agents=agents(vas=agent("idle", ready=True)))),
    ("A22 warning", on(agents=agents(vas=agent("idle", can_start=True)))),
    ("A23 error", on("completed", agents=agents())),
    ("A23 warning", on("paused")),
    ("A24 warning", on(agents=agents(vas=agent("running", at=20)))),
    ("A24 advice", on(agents=agents(
        ra=agent("running"), ep=agent("running", at=10), cd=agent("idle")))),
    ("A30 warning", on("completed", coordination=coordination(pending_decisions=[decision()]))),
    ("A30 advice", on(coordination=coordination(pending_decisions=[decision()]))),
    ("A31 warning", on("completed", coordination=coordination(blockers=[blocker()]))),
    ("A31 error", on(agents=agents(cd=agent("waiting")),
                     coordination=coordination(blockers=[blocker()]))),
    ("A32 warning", on("completed", plan=plan(task("T1", "pending")))),
    ("A33 warning", on("completed", test_results=None)),
    ("A33 warning", Situation("completed", files={"vas/test-results.json": {}})),
    ("A33 warning", on("completed", test_results={"total_tests": 0})),
    ("A33 warning", on("completed", test_results={"total_tests": 3, "executed": False})),
    ("A34 error", on("completed", test_results=FAILING)),
    ("A35 warning", on(coordination=coordination(pending_decisions=[decision(status="made")]))),
    ("A35 advice", on(coordination=coordination(
        pending_decisions=[decision(status="made", chosen_option="Wait")]))),
    ("A36 warning", on(coordination=coordination(blockers=[blocker(status="resolved")]))),
    ("A37 warning", on(coordination=fed({"source": "vas", "target": "qa"}))),
    ("A37 warning", on(coordination=fed(feedback(19, 0, "cd")))),
    ("A38 warning", on(coordination=fed(feedback(18, 10), feedback(18, 12)))),
    ("A39 advice", Situation(files=BLOCKS)),
    ("A39 advice", Situation(files=ISSUE)),
]  # fmt: skip

SILENT: list[tuple[str, Situation]] = [
    ("A01", Situation(raw='{"cycle_id": "cyc', ago=0.5)),  # it is still being written
    ("A02", on(agents=agents())),
    ("A03", on()),
    ("A05", on("paused", agents=agents(cd=agent("waiting")))),
    ("A06", on(current_iteration=0, iterations=[])),
    ("A07", on(current_iteration=5)),
    ("A08", on(agents=agents())),
    ("A09", on(agents=agents(cd=agent("waiting")))),
    ("A10", on(created_at="2026-03-02T10:00:00Z")),
    ("A10", on("completed", agents=done(ra={"status": "completed", "started_at": ""}))),
    ("A10z", on(created_at="2026-03-02T10:00:00Z", updated_at="2026-03-02T11:00:00Z")),
    ("A11", on("completed", agents=done(vas=agent(completed_at=clock(19))))),
    ("A12", on(agents=agents(cd=agent("running", 15, completed_at=clock(18, 1))))),
    ("A13", on("completed", agents=done(vas={"status": "completed"}))),
    ("A13", on(agents=agents(vas=agent("idle", iterations_completed=0)))),
    ("A14", on(completed_at=clock(18, 50), current_iteration=2, iterations=[
        {"number": 1, "completed_at": clock(18, 50)}, {"number": 2}])),
    ("A14", on(completed_at=clock(18, 50), current_iteration=2, iterations=[])),
    ("A15", on(agents=agents(ra=agent(output_files=["ra/x.md"])))),
    ("A16", on("completed", current_phase=None)),
    ("A17", Situation(changed={"agents": agents(ra=agent(**LISTED))}, files={"ra/x.md": "# X\n"})),
    ("A17", Situation(
        changed={"agents": agents(ra=agent(output_files=[f"/elsewhere/{PROGRESS}/ra/x.md"]))},
        files={"ra/x.md": "# X\n"})),
    ("A17", Situation(changed={"plan": {"output_file": "ep/plan.json", "summary": {}}},
                      files={"ep/plan.json": {"version": "1.0.0", "tasks": []}})),
    ("A18", Situation(files={"cd/implementation.md": "# I - v1.0.0\n"})),  # a copy of all
    ("A19", on(agents=agents(cd=agent("failed")), coordination=fed(feedback(18, 30)))),
    ("A19", on(agents=agents(cd=agent("failed")), phase_errors=[{"phase": "cd"}])),
    ("A19", on("failed", agents=agents(cd=agent("failed")))),
    ("A20", on(agents=agents(ra=agent(at=5, completed_at=clock(18, 12), iterations_completed=2)))),
    ("A20", on(agents=agents(ra=agent(at=5, completed_at=clock(18, 12))),
               requirements={"version": "1.1.0"})),
    ("A20", on(agents=agents(cd=agent("running", at=12)), current_iteration=2)),
    ("A21", on(agents=agents(ra=agent(depends_on=[]), ep=agent(at=10, depends_on=["ra"])))),
    ("A22", on(agents=agents(vas=agent("idle", ready=False, can_start=False)))),
    ("A22", on(agents=agents(vas=agent(at=20, ready=True, can_start=True)))),  # it has begun
    ("A22", on(agents=agents(cd=agent("waiting", ready=True, can_start=True)))),
    ("A23", on("paused", agents=agents(cd=agent("waiting")))),
    ("A24", on(agents=agents(vas=agent("running", at=20)), current_iteration=2)),
    ("A30", on("completed", coordination=coordination(
        pending_decisions=[decision(status="made", chosen_option="Stream")]))),
    ("A31", on(coordination=coordination(blockers=[blocker()]))),  # cd is at work
    ("A31", on("completed", coordination=coordination(
        blockers=[blocker(status="workaround", resolution="A limit")]))),
    ("A32", on(plan=plan(task("T1", "pending")))),
    ("A32", on("completed", plan=plan(task("T1", "done")))),
    ("A33", Situation("completed", {"test_results": None}, {"vas/test-results.json": {
        "version": "1.0.0", "summary": {"total": 2, "passed": 2, "failed": 0}}})),
    ("A34", on(test_results=FAILING)),
    ("A35", on(coordination=coordination(
        pending_decisions=[decision(status="implemented", chosen_option="Stream")]))),
    ("A36", on(coordination=coordination(blockers=[blocker(status="resolved", resolution="So")]))),
    ("A37", on(coordination=fed(feedback(18, 10)))),  # cd was started after it
    ("A37", on(coordination=fed(feedback(19, 50)))),  # ten minutes ago
    ("A37", on(coordination=fed(feedback(19, 0) | {"answered_at": "2026-03-02T19:20:00+08:00"}))),
    ("A37", on(coordination=fed(feedback(18, 16, "ra")),
               requirements={"version": "1.1.0", "last_updated": clock(18, 20)})),
    ("A38", on(coordination=fed(feedback(18, 10), feedback(18, 12, "ra")))),
    ("A38", on(coordination=fed(feedback(18, 10), feedback(18, 40)), current_iteration=2,
               iterations=[{"number": 1, "started_at": clock(18)},
                           {"number": 2, "started_at": clock(18, 30)}])),
    ("A39", Situation(changed={"coordination": coordination(blockers=[blocker()])}, files=BLOCKS)),
    ("A39", Situation(files={"cd/issues.md": "### Issue 1: Slow disk\n- Blocker: No\n"})),
]  # fmt: skip
