"""Files of a development cycle, as an orchestrator and its agents leave them, with fixed times."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

Object = dict[str, Any]
HOME = ".workflow/.cycle"
BEGIN = datetime(2026, 3, 2, 18, 0, tzinfo=timezone(timedelta(hours=8)))
WHAT = "Export the report as CSV"
AGENTS = ("ra", "ep", "cd", "vas")
DOCUMENTS = {
    "ra": ("requirements.md", "edge-cases.md", "changes.log"),
    "ep": ("exploration.md", "architecture.md", "plan.json", "changes.log"),
    "cd": ("implementation.md", "issues.md", "changes.log"),
    "vas": ("validation.md", "test-results.json", "changes.log"),
}


def identity(word: str) -> str:
    """The id of a cycle that began with the others."""
    return f"cycle-v1-20260302T180000-{word}"


ID = identity("csvexprt")


def clock(minute: float) -> str:
    """A time so many minutes after the cycle began, as it is written in files."""
    return (BEGIN + timedelta(minutes=minute)).isoformat(timespec="seconds")


def put(root: Path, name: str, content: object, minute: float = 0) -> Path:
    """A file, last changed so many minutes after the cycle began.

    Args:
        root: the project.
        name: of the file, below ``root``.
        content: text or bytes as they are; anything else becomes JSON.
        minute: when it was changed.
    """
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, str | bytes):
        content = json.dumps(content, indent=2) + "\n"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    at = (BEGIN + timedelta(minutes=minute)).astimezone(UTC).timestamp()
    os.utime(path, (at, at))
    return path


def progress(root: Path, name: str, content: object, minute: float = 0, id: str = ID) -> Path:
    """A file of a cycle's progress folder."""
    return put(root, f"{HOME}/{id}.progress/{name}", content, minute)


def rows(*values: object) -> str:
    """The text of a log."""
    return "".join(json.dumps(value) + "\n" for value in values)


def agent(name: str, word: str = "idle", /, **changed: Any) -> Object:
    """An agent in the state; each takes five minutes, one after the other."""
    number = AGENTS.index(name)
    made: Object = {"status": word, "output_files": [], "iterations_completed": 0}
    if word != "idle":
        made |= {"run": f"1-{name}", "started_at": clock(5 * number + 1)}
    if word == "completed":
        file = f"{HOME}/{ID}.progress/{name}/{DOCUMENTS[name][0]}"
        made |= {"output_files": [file], "iterations_completed": 1, "version": "1.0.0"}
        made |= {"completed_at": clock(5 * number + 5)}
    return made | changed


def team(*words: str, **changed: Object) -> Object:
    """The four agents with these statuses; ``changed`` has other keys of some of them."""
    return {
        name: agent(name, word, **changed.get(name, {}))
        for name, word in zip(AGENTS, words, strict=True)
    }


def at_work(name: str) -> Object:
    """Those before an agent are through, it is at work, those after it have not begun."""
    number = AGENTS.index(name)
    return team(*("completed",) * number, "running", *("idle",) * (3 - number))


def state(id: str = ID, /, **changed: Any) -> Object:
    """A state in which nobody has begun; a key that is None is left out."""
    made: Object = {
        "cycle_id": id,
        "title": WHAT,
        "description": WHAT,
        "task_history": [WHAT],
        "status": "running",
        "created_at": clock(0),
        "updated_at": clock(25),
        "max_iterations": 5,
        "current_iteration": 0,
        "agents": team("idle", "idle", "idle", "idle"),
        "current_phase": "init",
        "completed_phases": [],
        "phase_errors": [],
        "changes": [],
        "iterations": [],
        "coordination": coordination(),
        "version": "1.0.0",
        "revision": 1,
    }
    held = {key: value for key, value in (made | changed).items() if value is not None}
    for name in AGENTS:
        _mark_ready(held, name)
    return held


def _mark_ready(value: Object, name: str) -> None:
    """Write down whether an agent could begin, as an orchestrator does."""
    agents = value.get("agents", {})
    if "iterations_completed" not in agents.get(name, {}):
        return
    before = AGENTS[: AGENTS.index(name)][-1:]
    ready = all(agents.get(each, {}).get("status") == "completed" for each in before)
    free = value["status"] == "running" and agents[name]["status"] in ("idle", "waiting")
    marks = {"depends_on": before, "ready": ready, "can_start": ready and free}
    agents[name] = marks | agents[name]


def coordination(**changed: Any) -> Object:
    """What an orchestrator keeps of messages, decisions and blockers."""
    made: Object = {"feedback_log": [], "pending_decisions": [], "blockers": [], "outbox": []}
    return made | changed


def task(id: str, word: str = "completed", *needs: str) -> Object:
    """A task of the plan."""
    about = {"description": f"Do {id}", "effort": "small"}
    return {"id": id, "depends_on": needs, "status": word} | about


def plan(*tasks: Object) -> Object:
    return {"version": "1.0.0", "tasks": tasks or [task("T1"), task("T2", "completed", "T1")]}


def tests(failed: int = 0, /, **changed: Any) -> Object:
    """Results of twenty tests, as the state holds them."""
    names = [f"test {number}" for number in range(1, failed + 1)]
    made = {"version": "1.0.0", "pass_rate": 100.0 - 5 * failed, "coverage": 88.0}
    made |= {"failed_tests": names, "total_tests": 20, "iteration": 1, "last_run": clock(20)}
    return made | changed


def measured(failed: int = 0, iteration: int = 1) -> Object:
    """Results of twenty tests, as the file of the tests holds them."""
    counts = {"total": 20, "passed": 20 - failed, "failed": failed, "skipped": 0}
    names = [f"test {number}" for number in range(1, failed + 1)]
    made = {"version": "1.0.0", "iteration": iteration, "summary": counts, "failed_tests": names}
    return made | {"coverage": {"lines": 88}}


def iteration(number: int = 1, minute: int = 0, **changed: Any) -> Object:
    """An iteration that began."""
    return {"number": number, "started_at": clock(minute), "agent_results": {}} | changed


def decision(**changed: Any) -> Object:
    """A decision that nobody has made."""
    made: Object = {"id": "DEC-001", "description": "Which delimiter is it?", "status": "pending"}
    made |= {"options": ["Comma", "Semicolon"], "agent": "cd", "asked_at": clock(18)}
    return made | changed


def blocker(**changed: Any) -> Object:
    """A blocker that is open."""
    made = {"id": "BLK-001", "description": "Nobody knows the limit", "reported_by": "cd"}
    return made | {"status": "open", "reported_at": clock(18)} | changed


def feedback(minute: float, source: str = "vas", target: str = "cd", **changed: Any) -> Object:
    """A message from an agent to another."""
    made = {"id": "FB-001", "timestamp": clock(minute), "source": source, "target": target}
    said = {"content": "2 of 20 tests fail", "type": "bug_report", "iteration": 1}
    return made | said | changed


def documents(root: Path, *names: str, id: str = ID) -> None:
    """What these agents write, in its first version."""
    for name in names:
        number = AGENTS.index(name)
        for file in DOCUMENTS[name]:
            progress(root, f"{name}/{file}", _document(name, file), 5 * number + 4, id=id)


def _document(name: str, file: str) -> object:
    if file == "plan.json":
        return plan() | {"total_tasks": 2, "critical_path": ["T1", "T2"]}
    if file == "test-results.json":
        return measured()
    if file == "changes.log":
        return rows({"timestamp": clock(4), "agent": name, "version": "1.0.0", "action": "update"})
    return f"# {file.removesuffix('.md').capitalize()} - v1.0.0\n\nAs agreed.\n"


def cycle(root: Path, value: object, id: str = ID) -> Path:
    """A project with this state; the project."""
    put(root, f"{HOME}/{id}.json", value, 25)
    return root


def done(failed: int = 0, /, **changed: Any) -> Object:
    """A state in which all agents are through their first iteration."""
    made: Object = {
        "status": "completed",
        "completed_at": clock(25),
        "agents": team("completed", "completed", "completed", "completed"),
        "current_phase": "complete",
        "completed_phases": AGENTS,
        "current_iteration": 1,
        "requirements": {"version": "1.0.0", "last_updated": clock(5)},
        "exploration": {"version": "1.0.0", "last_updated": clock(10)},
        "plan": plan(),
        "implementation": {"version": "1.0.0", "last_updated": clock(15)},
        "test_results": tests(failed),
        "iterations": [iteration(completed_at=clock(20), resolved=not failed)],
    }
    return state(**(made | changed))
