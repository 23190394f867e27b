"""Development cycles, made for tests as an orchestrator and its agents would make them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp_core.model import Snapshot
from acp_core.protocols.cycle.collaboration import open_cycles

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
ID = "cycle-v1-20260302T180000-csvexprt"
HOME = ".workflow/.cycle"
STATE = f"{HOME}/{ID}.json"
PROGRESS = f"{HOME}/{ID}.progress"


def write(root: Path, name: str, content: object, ago: float = 60.0) -> Path:
    """A file, last changed so many seconds before `NOW`."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    at = NOW.timestamp() - ago
    os.utime(path, (at, at))
    return path


def agent(word: str = "completed", at: int = 5, **changed: Any) -> dict[str, Any]:
    """An agent of the state; times from ``at`` minutes on where it has begun or ended."""
    made: dict[str, Any] = {"status": word, "output_files": [], "iterations_completed": 1}
    if word in ("completed", "running"):
        made["started_at"] = f"2026-03-02T18:{at:02}:00+08:00"
    if word == "completed":
        made["completed_at"] = f"2026-03-02T18:{at + 5:02}:00+08:00"
    return made | changed


def task(id: str, word: str = "completed", *needs: str) -> dict[str, Any]:
    """A task of the plan."""
    return {
        "id": id,
        "description": f"Do {id}",
        "effort": "small",
        "depends_on": list(needs),
        "status": word,
    }


def decision(**changed: Any) -> dict[str, Any]:
    """A decision that nobody has made."""
    made = {
        "id": "DEC-001",
        "description": "Large exports",
        "options": ["Stream", "Refuse"],
        "status": "pending",
    }
    return made | changed


def blocker(**changed: Any) -> dict[str, Any]:
    """A blocker that is open."""
    made = {"id": "BLK-001", "description": "No limit", "reported_by": "cd", "status": "open"}
    return made | changed


def state(word: str = "running", /, **changed: Any) -> dict[str, Any]:
    """A state in which CD is at work, or all is done; a key that is None is left out."""
    done = word == "completed"
    made: dict[str, Any] = {
        "cycle_id": ID,
        "title": "Export as CSV",
        "description": "Add CSV export",
        "status": word,
        "created_at": "2026-03-02T18:00:00+08:00",
        "updated_at": "2026-03-02T19:00:00+08:00",
        "completed_at": "2026-03-02T19:00:00+08:00" if done else None,
        "max_iterations": 5,
        "current_iteration": 1,
        "agents": {
            "ra": agent(),
            "ep": agent(at=10),
            "cd": agent("completed" if done else "running", at=15),
            "vas": agent("completed" if done else "idle", at=20),
        },
        "current_phase": "complete" if done else "cd",
        "plan": {"version": "1.0.0", "tasks": [task("T1"), task("T2", "completed", "T1")]},
        "test_results": {"pass_rate": 100, "coverage": 0, "failed_tests": [], "total_tests": 20},
        "iterations": [{"number": 1, "started_at": "2026-03-02T18:00:00+08:00"}],
        "coordination": {"feedback_log": [], "pending_decisions": [], "blockers": []},
    }
    return {key: value for key, value in (made | changed).items() if value is not None}


def agents(**changed: Any) -> dict[str, Any]:
    """The agents of a running cycle, some of them otherwise."""
    made: dict[str, Any] = state()["agents"]
    return made | changed


def coordination(**changed: Any) -> dict[str, Any]:
    """A coordination with only this in it."""
    made: dict[str, Any] = {"feedback_log": [], "pending_decisions": [], "blockers": []}
    return made | changed


def cycle(root: Path, word: str = "running", /, **changed: Any) -> Path:
    """A project with one cycle; what its state tells of tests stands in VAS's file, too."""
    held = state(word, **changed)
    write(root, STATE, held)
    results = root / PROGRESS / "vas/test-results.json"
    results.unlink(missing_ok=True)
    if word == "completed" and held.get("test_results"):
        write(root, f"{PROGRESS}/vas/test-results.json", held["test_results"])
    return root


def read(root: Path) -> Snapshot:
    """The project as it is read at `NOW`."""
    return open_cycles(str(root)).refresh(NOW)


def codes(root: Path) -> set[str]:
    """Code and severity of what is found, as "A05 error"."""
    return {f"{finding.code} {finding.severity.value}" for finding in read(root).findings}


def panel(root: Path, id: str) -> list[tuple[str, ...]]:
    """The cells of a panel's rows."""
    found = next(each for each in read(root).panels if each.id == id)
    return [row.cells for row in found.rows]
