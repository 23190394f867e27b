"""Where the rules on iterations, plans, results, files and logs speak, and where they do not."""

from __future__ import annotations

from typing import Any

from tests.protocols.cycle.cases_state import FAILING, plan
from tests.protocols.cycle.making import PROGRESS, agent, agents, coordination, task
from tests.protocols.cycle.situations import Situation, clock, on, rows

NEW = "# Requirements - v1.1.0\n"
OVERWRITTEN = {"file": "ra/requirements.md", "owner": "ra", "by": "cd", "put_back": False}
RESULTS = {"version": "1.0.0", "summary": {"total": 20, "passed": 20, "failed": 0, "skipped": 0}}
BOARD = "coordination/discoveries.ndjson"


def results(**changed: int) -> dict[str, Any]:
    return RESULTS | {"summary": RESULTS["summary"] | changed}  # type: ignore[operator]


def found(kind: str, **data: Any) -> dict[str, Any]:
    return {"ts": clock(18), "agent": "ra", "type": kind, "data": data}


def prep(**changed: Any) -> Any:
    """A package that is in order, but for these keys ("a.b" is b in a)."""

    def made(root: Any) -> dict[str, Any]:
        value: dict[str, Any] = {
            "version": "1.0.0",
            "generated_at": "2026-03-02T17:50:00+08:00",
            "prep_status": "ready",
            "environment": {"project_root": str(root)},
            "task": {"refined": "Export as CSV", "quality_score": 8},
            "auto_iteration": {
                "max_iterations": 5,
                "convergence": {"test_pass_rate": 90, "coverage": 80, "max_critical_bugs": 0},
            },
        }
        for path, said in changed.items():
            *folders, last = path.split("__")
            inner = value
            for each in folders:
                inner = inner[each]
            inner[last] = said
        return value

    return made


def packed(**changed: Any) -> Situation:
    return Situation(top={"prep-package.json": prep(**changed)})


SPEAK: list[tuple[str, Situation]] = [
    ("A40 warning", on("completed", requirements={"version": "1.1.0"})),
    ("A40 advice", on(requirements={"version": "v1.1.0"})),
    ("A41 advice", on(test_results={"pass_rate": 1, "failed_tests": [], "total_tests": 20})),
    ("A41 error", on(test_results={"pass_rate": 192, "total_tests": 20})),
    ("A41 error", on(test_results={"coverage": "much"})),
    ("A42 warning", on(iterations=[{"number": 1}, {"number": 1}])),
    ("A42 warning", on(current_iteration=2, iterations=[{"number": 1}, {"iteration": 1}])),
    ("A43 warning", on("completed", iterations=[])),
    ("A43 warning", on(current_iteration=3)),
    ("A43 advice", Situation(without=("iterations",))),
    ("A44 advice", on(completed_phases=["ra", "ep", "ra"])),
    ("A45 advice", on(task_history=["a"], description="a\n\n--- ITERATION 2 ---\nb")),
    ("A46 warning", Situation(changed={"requirements": {"version": "1.0.0"}}, files={
        "ra/requirements.md": NEW})),
    ("A46 warning", Situation(files={"ep/plan.json": {"version": "1.1.0"}})),
    ("A47 warning", Situation(files={"ra/requirements.md": NEW})),
    ("A48 error", Situation(files={
        "ra/requirements.md": NEW, "ra/history/requirements-v1.2.0.md": "# R - v1.2.0\n"})),
    ("A50 error", on(plan=plan(task("T1", "pending", "T9")))),
    ("A51 warning", on(plan=plan(task("T1", "pending"), task("T2", "done", "T1")))),
    ("A52 error", on(plan=plan(task("T1", "pending", "T2"), task("T2", "pending", "T1")))),
    ("A53 warning", Situation(files={"ep/plan.json": {"total_tasks": 8, "tasks": [task("T1")]}})),
    ("A54 warning", on(plan=plan(task("T1")) | {"critical_path": ["T1", "T9"]})),
    ("A55 warning", Situation(changed={"plan": {"tasks": [task("T1"), task("T2", "pending")]}},
                              files={"ep/plan.json": {"tasks": [task("T1"), task("T2")]}})),
    ("A55 advice", Situation(files={"ep/plan.json": {"tasks": [task("T1")]}})),
    ("A56 advice", on(plan=plan(task("T1") | {"effort": "huge"}))),
    ("A56 advice", on(plan=plan(task("T1", "soon")))),
    ("A60 error", Situation(files={"vas/test-results.json": results(skipped=1)})),
    ("A61 warning", Situation(files={"vas/test-results.json": results(total=21, passed=21)})),
    ("A61 warning", Situation(files={"vas/test-results.json": results(passed=17, failed=3)})),
    ("A62 advice", on("completed", test_results=FAILING | {"pass_rate": 85})),
    ("A62 advice", on("completed", test_results=FAILING | {"coverage": 70})),
    ("A62 advice", on("completed", test_results=FAILING, convergence={"test_pass_rate": 95})),
    ("A62 advice", on("completed", test_results=FAILING | {"critical_issues": 1})),
    ("A80 warning", Situation(files={"cd/debug-log.ndjson": '{"a": 1}\nbroken\n{"a": 2}\n'})),
    ("A80 warning", Situation(files={"ra/changes.log": '{"a": 1}\n[]\n{"a": 2}\n'})),
    ("A80 advice", Situation(files={"cd/debug-log.ndjson": '{"a": 1}\n{"a"'})),
    ("A81 advice", Situation(files={BOARD: rows(found("rumour"))})),
    ("A81 advice", Situation(files={BOARD: rows(found("tech_stack"), found("tech_stack"))})),
    ("A81 warning", Situation(files={BOARD: rows(found("utility", what="csv"))})),
    ("A90 warning", packed(prep_status="needs_refinement")),
    ("A91 warning", packed(environment__project_root="/elsewhere")),
    ("A92 warning", packed(task__quality_score=5)),
    ("A93 warning", packed(generated_at="2026-03-01T17:50:00+08:00")),
    ("A94 warning", packed(task={"quality_score": 8})),
    ("A94 warning", Situation(top={"prep-package.json": "{"})),
    ("A95 warning", packed(auto_iteration__convergence={"test_pass_rate": 0, "coverage": 80})),
    ("A94 warning", packed(auto_iteration__max_iterations="many")),
    ("A94 warning", packed(auto_iteration__max_iterations=0)),
    ("A94 warning", packed(auto_iteration__phase_gates=[1])),
    ("A94 warning", packed(auto_iteration__phase_gates={"zero_to_one": {"iterations": ["1"]}})),
    ("A95 warning", packed(auto_iteration__convergence__max_critical_bugs="none")),
    ("A96 error", Situation(files={"ra/changes.log": rows({"agent": "cd", "action": "update"})})),
    ("A96 error", Situation(files={
        "cd/changes.log": rows({"file": f"{PROGRESS}/ra/requirements.md", "action": "modify"})})),
    ("A96 error", on(coordination=coordination(overwrites=[OVERWRITTEN]))),
    ("A96 warning", on(coordination=coordination(overwrites=[OVERWRITTEN | {"put_back": True}]))),
    ("A96 error", on(changes=[{"agent": "cd", "file": f"{PROGRESS}/ep/plan.json"}])),
    ("A98 warning", Situation(files={"vas/test-results.json": "{"})),
    ("A99 advice", Situation(top={"cycle-auto-1.progress/ra/requirements.md": "# R\n"})),
]  # fmt: skip

SILENT: list[tuple[str, Situation]] = [
    ("A40", on("completed", requirements={"version": "v1.0.0"})),
    ("A41", on(test_results={"pass_rate": "92%", "total_tests": 20, "coverage": 0})),
    ("A42", on(current_iteration=2, iterations=[{"number": 1}, {"number": 2}])),
    ("A43", on(current_iteration=2)),  # the record of the one under way may follow
    ("A43", Situation(changed={"current_iteration": 0}, without=("iterations",))),
    ("A44", on(completed_phases=["ra", "ep"])),
    ("A45", on(task_history=["a", "b"], description="a\n\n--- ITERATION 2 ---\nb")),
    ("A46", Situation(changed={"requirements": {"version": "v1.1.0"}}, files={
        "ra/requirements.md": NEW})),
    ("A47", Situation(files={
        "ra/requirements.md": NEW, "ra/history/requirements-v1.0.0.md": "# R - v1.0.0\n"})),
    ("A47", Situation(files={
        "cd/implementation.md": "# I - v1.1.0\n", "cd/history/impl-v1.0.0.md": "# I - v1.0.0\n"})),
    ("A47", Situation(files={"ra/requirements.md": "# Requirements - v1.0.0\n"})),
    ("A48", Situation(files={
        "ra/requirements.md": NEW, "ra/history/requirements-v1.1.0.md": NEW})),
    ("A50", on(plan=plan(task("T1"), task("T2", "pending", "T1")))),
    ("A51", on(plan=plan(task("T1", "done"), task("T2", "done", "T1")))),
    ("A52", on(plan=plan(task("T1", "pending"), task("T2", "pending", "T1")))),
    ("A53", Situation(files={"ep/plan.json": {"total_tasks": 1, "tasks": [task("T1")]}})),
    ("A54", on(plan=plan(task("T1")) | {"critical_path": ["T1"]})),
    ("A55", Situation(files={"ep/plan.json": {"tasks": [task("T2"), task("T1")]}})),
    ("A55", Situation(files={"ep/plan.json": {"tasks": [task("T1"), task("T2", "pending")]}})),
    ("A56", on(plan=plan(task("T1", "todo") | {"effort": "Large"}))),
    ("A60", Situation(files={"vas/test-results.json": results(passed=18, failed=1, skipped=1)})),
    ("A61", Situation(files={"vas/test-results.json": results()})),
    ("A62", on("completed", test_results=FAILING | {"critical_issues": 1},
               convergence={"max_critical_bugs": 1})),
    ("A62", on("completed", test_results=FAILING)),  # 90 and 80: just enough
    ("A62", on("completed", test_results=FAILING | {"coverage": 0})),  # not collected
    ("A62", on(test_results=FAILING | {"pass_rate": 10})),  # vas is not through
    ("A62", on("completed", test_results=FAILING | {"pass_rate": 10},
               phase_gates={"zero_to_one": {"iterations": [1, 2]}})),  # its first steps
    ("A80", Situation(files={"cd/debug-log.ndjson": '{"a": 1}\n\n{"a": 2}\n'})),
    ("A80", Situation(files={"ra/changes.log": "written by hand\n"})),
    ("A81", Situation(files={BOARD: rows(
        found("test_baseline", total=1), found("test_baseline", total=2),
        found("utility", name="a"), found("utility", name="b"))})),
    *((f"A{number}", packed()) for number in range(90, 96)),
    ("A93", packed(generated_at="2026-03-01T18:10:00+08:00")),  # the cycle began within a day
    ("A95", packed(auto_iteration__convergence={"test_pass_rate": 100, "coverage": 0.5})),
    ("A96", Situation(files={"cd/changes.log": rows(
        {"agent": "cd", "file": "src/csv.py"}, {"file": f"{PROGRESS}/cd/issues.md"})})),
    ("A96", on(agents=agents(cd=agent("running", 15)), changes=[{"agent": "cd", "file": "a.py"}])),
    ("A98", Situation(files={"vas/test-results.json": RESULTS})),
    ("A99", Situation(files={"ra/requirements.md": "# R - v1.0.0\n"})),
]  # fmt: skip
