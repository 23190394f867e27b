"""Development cycles with packages and files that are odd, damaged or written to do harm."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.golden.builders.cycle import (
    AGENTS,
    HOME,
    ID,
    WHAT,
    agent,
    at_work,
    blocker,
    clock,
    coordination,
    cycle,
    decision,
    documents,
    done,
    feedback,
    identity,
    iteration,
    plan,
    progress,
    put,
    rows,
    state,
    task,
    team,
    tests,
)

HOSTILE = "\x1b]0;title\x07\x1b[31mred\u202e[bold]right[/]\u2028\u200b\U000e0041 --yes `rm`"


def prepared(root: Path) -> Path:
    """A package of preparation that says how the cycle ends, and a board of discoveries."""
    goal = {"test_pass_rate": 90, "coverage": 80, "max_critical_bugs": 0}
    board = [
        {"ts": clock(1), "agent": "ra", "type": "tech_stack", "data": {"language": "Python"}},
        {"ts": clock(12), "agent": "cd", "type": "blocker", "data": {"issue": "No test device"}},
    ]
    _package(root, convergence=goal)
    progress(root, "coordination/discoveries.ndjson", rows(*board), 12)
    focus = {"zero_to_one": {"ra": "core_requirements_only"}}
    refs = [{"path": "docs/prd.md", "type": "local_file", "status": "verified"}]
    value = state(convergence=goal, agent_focus=focus, source_refs=refs)
    return cycle(root, value | {"phase_gates": {"zero_to_one": {"iterations": [1, 2]}}})


def _package(root: Path, ready: str = "ready", **changed: Any) -> None:
    """A package of preparation for this project."""
    value = {
        "version": "1.0.0",
        "generated_at": clock(-10),
        "prep_status": ready,
        "environment": {"project_root": str(root)},
        "task": {"original": "csv", "refined": WHAT, "quality_score": 8},
        "auto_iteration": {"max_iterations": 7} | changed,
    }
    put(root, f"{HOME}/prep-package.json", value, -10)


def wrong_package(root: Path) -> Path:
    """A package that is not ready, of another time, with a goal that is none."""
    _package(root, "needs_refinement", convergence={"test_pass_rate": 0, "coverage": "much"})
    return cycle(root, state())


def only_package(root: Path) -> Path:
    """A package of preparation, and no cycle yet."""
    _package(root)
    return root


def torn_state(root: Path) -> Path:
    """The state ends in the middle; the agents' documents are there."""
    documents(root, "ra", "ep", "cd")
    return cycle(root, json.dumps(state(agents=at_work("cd")), indent=2)[:900])


def state_is_a_list(root: Path) -> Path:
    """The state is JSON, and no object."""
    documents(root, "ra")
    return cycle(root, [state()])


def state_without_agents(root: Path) -> Path:
    """The state says nothing of the agents."""
    return cycle(root, state(agents=None))


def state_missing(root: Path) -> Path:
    """Only the documents are there."""
    documents(root, "ra", "ep", "cd")
    return root


def wrong_words(root: Path) -> Path:
    """Words that the schema does not know, times without offsets, tasks that wait in a circle."""
    agents = team("completed", "completed", "running", "idle", cd={"status": "coding"})
    del agents["ra"]
    agents["ep"] |= {"depends_on": ["vas"], "completed_at": clock(2)}
    tasks = task("T1", "soon", "T3"), task("T2", "completed", "T1"), task("T3", "pending", "T2")
    changed: dict[str, Any] = {"current_iteration": 7, "updated_at": "2026-03-02 18:30"}
    value = state(status="in-progress", agents=agents, plan=plan(*tasks), **changed)
    return cycle(root, value)


def wrong_id(root: Path) -> Path:
    """The state names another cycle than its file."""
    return cycle(root, state(identity("another0")))


def written_by_people(root: Path) -> Path:
    """A cycle by hand: backslashes, a fraction as the pass rate, titles in place of descriptions."""
    files = [f"{HOME}/{ID}.progress/cd/{each}".replace("/", "\\") for each in ("issues.md",)]
    tasks = [{"id": "L1", "title": "One", "status": "done"}, {"id": "L2", "status": "todo"}]
    agents = team(*("completed",) * 4, cd={"output_files": files, "iterations_completed": 0})
    progress(root, "ep/plan.json", {"version": "1.0.0", "tasks": tasks}, 10)
    progress(root, "cd/issues.md", "# Issues\\n\\n- Blocker: the disk is full\\n", 15)
    progress(root, "cd/debug-log.ndjson", '{"a": 1}\nbroken\n{"level": "info"}\n{"torn', 15)
    results = tests(pass_rate=1, coverage=0)
    progress(root, "vas/test-results.json", results, 20)
    value = done(agents=agents, test_results=results, iterations=[], current_phase="vas")
    return cycle(root, value | {"description": f"Source: a.md\\n\\n{WHAT}"})


def wrote_for_another(root: Path) -> Path:
    """CD wrote RA's document, which now is older than one in its history."""
    documents(root, *AGENTS)
    cycle(root, state(agents=at_work("vas"), current_iteration=1, iterations=[iteration()]))
    file = f"{HOME}/{ID}.progress/ra/requirements.md"
    progress(root, "cd/changes.log", rows({"agent": "cd", "file": file, "action": "modify"}), 16)
    progress(root, "ra/requirements.md", "# Requirements - v1.0.0\n\nOf CD.\n", 16)
    progress(root, "ra/history/requirements-v1.2.0.md", "# Requirements - v1.2.0\n", 16)
    return root


def symbolic_link(root: Path) -> Path:
    """The state is a link to a file outside of the project."""
    outside = put(root.parent, "outside/state.json", state(), 25)
    link = root / HOME / f"{ID}.json"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    at = outside.stat().st_mtime
    os.utime(link, (at, at), follow_symlinks=False)
    return root


def hostile(root: Path) -> Path:
    """Text that would do something to a terminal, in every place where text can stand."""
    asked = decision(id=HOSTILE, description=HOSTILE, options=[HOSTILE, "[/]"])
    open_one = blocker(id=HOSTILE, description=HOSTILE, reported_by=HOSTILE)
    log = [feedback(18, HOSTILE, "cd", content=HOSTILE, type=HOSTILE)]
    held = coordination(pending_decisions=[asked], blockers=[open_one], feedback_log=log)
    agents = team("completed", "failed", "waiting", "idle", ep={"error": HOSTILE})
    agents["cd"] |= {"last_message": HOSTILE, "output_files": [HOSTILE]}
    agents[HOSTILE] = agent("vas")
    documents(root, "ra")
    progress(root, f"cd/{HOSTILE[:9]}.md", HOSTILE, 16)
    progress(root, "coordination/discoveries.ndjson", rows({"type": HOSTILE, "data": {}}), 16)
    words = dict.fromkeys(("title", "description", "current_phase"), HOSTILE)
    value = state(status="paused", agents=agents, coordination=held, **words)
    return cycle(root, value | {"plan": plan(task(HOSTILE, HOSTILE, HOSTILE)), HOSTILE: HOSTILE})
