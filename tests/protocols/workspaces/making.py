"""Runs of sub-agents, made for tests as an orchestrator and its agents would make them."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from acp_core.model import Snapshot
from acp_core.protocols.workspaces.collaboration import open_workspaces

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ORIGIN = "/elsewhere/project"  # where the run took place, before it was moved


def write(root: Path, name: str, content: object, ago: float = 3600.0) -> Path:
    """A file of the run, last changed so many seconds before `NOW`."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    at = NOW.timestamp() - ago
    os.utime(path, (at, at))
    return path


def status(
    agent: str, /, word: str = "success", file: str = "output.md", **changed: Any
) -> dict[str, Any]:
    """A status file's object; a key that is None is left out."""
    listed = {
        "file": f"{ORIGIN}/agent-workspaces/{agent}/{file}",
        "size_estimate": "small",
        "description": "The report",
    }
    made: dict[str, Any] = {
        "agent": agent,
        "task_id": f"{agent}-part",
        "status": word,
        "completed_at": "2026-03-01T10:00:00Z",
        "outputs": [listed],
    }
    return {key: value for key, value in (made | changed).items() if value is not None}


def returned(agent: str, /, word: str = "success", **changed: Any) -> dict[str, Any]:
    """What an agent returned; a key that is None is left out."""
    made: dict[str, Any] = {
        "status": word,
        "agent": agent,
        "task_id": f"{agent}-part",
        "files_written": [f"{ORIGIN}/agent-workspaces/{agent}/output.md"],
        "summary": "Did the part.",
        "errors": [] if word == "success" else ["The rest is missing."],
    }
    return {key: value for key, value in (made | changed).items() if value is not None}


def prompt(agent: str) -> str:
    """A prompt that follows the template."""
    base = f"{ORIGIN}/agent-workspaces"
    return f"""You are the {agent} on a 2-agent team completing a comparison.

YOUR TASK:
Compare them.

INPUTS:
- {base}/shared/task-spec.json (required)

OUTPUTS:
Write your primary output to: {base}/{agent}/output.md
Write your status file to: {base}/{agent}/status.json

TASK ID: {agent}-part
AGENT NAME: {agent}

SCOPE BOUNDARIES:
You are responsible for this.

RETURN FORMAT:
JSON.

PERMISSIONS:
You may not launch additional subagents.
You may write only to paths within: {base}/{agent}
"""


def agent(root: Path, name: str, word: str = "success", **changed: Any) -> None:
    """An agent that ended: output, status, return and prompt."""
    write(root, f"agent-workspaces/{name}/output.md", f"# {name}\n")
    write(root, f"agent-workspaces/{name}/status.json", status(name, word, **changed), 3599)
    write(root, f"returns/{name}-part.json", returned(name, word))
    write(root, f"prompts/{name}-part.md", prompt(name))


def run(root: Path) -> Path:
    """Two agents that succeeded, and what they were told."""
    write(root, "agent-workspaces/shared/task-spec.json", {"scope": "choose a queue"})
    agent(root, "ann")
    agent(root, "ben")
    return root


def integrate(root: Path, text: str = "# All\n", **changed: Any) -> None:
    """What the orchestrator writes in the end."""
    write(root, "integration/final-output.md", text, 60)
    told = {"integrated": ["ann", "ben"], "skipped": [], "gaps": [], "conflicts": []} | changed
    write(root, "integration/status.json", told, 30)


def read(root: Path) -> Snapshot:
    """The run as it is read at `NOW`."""
    return open_workspaces(str(root)).refresh(NOW)


MOVED = "B17 advice"  # these runs stand elsewhere than their agents wrote


def codes(root: Path) -> set[str]:
    """Code and severity of what is found, as "B06 error"."""
    return {f"{finding.code} {finding.severity.value}" for finding in read(root).findings}


def states(root: Path) -> dict[str, str]:
    """The state of each agent, as the agents table shows it."""
    rows = read(root).panels[0].rows
    return {row.cells[0]: row.cells[1] for row in rows if not row.depth}
