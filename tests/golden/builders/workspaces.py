"""Files of a run of sub-agents, as an orchestrator and its agents leave them, with fixed times."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Object = dict[str, Any]
BASE = "agent-workspaces"
COORD = f"{BASE}/.coord"
BEGIN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
ELSEWHERE = "build-host"  # a machine that is not this one
TASKS = {
    "ann": "Compare what the queues cost.",
    "ben": "Compare how fast the queues are.",
    "cat": "Compare how the queues fail.",
}
CONTENT = "# Report of {0}\n\n## Findings of {0}\n\nEverything about {0}.\n"


def clock(minute: float) -> str:
    """A time so many minutes after the run began, as it is written in files."""
    at = BEGIN + timedelta(minutes=minute)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def put(root: Path, name: str, content: object, minute: float = 0) -> Path:
    """A file, last changed so many minutes after the run began.

    Args:
        root: the run's folder.
        name: of the file, below ``root``.
        content: text or bytes as they are; anything else becomes JSON.
        minute: when it was changed.
    """
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if not isinstance(content, str | bytes):
        content = json.dumps(content, indent=2) + "\n"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    at = (BEGIN + timedelta(minutes=minute)).timestamp()
    os.utime(path, (at, at))
    return path


def task_id(agent: str) -> str:
    return f"{agent}-part"


def entry(root: Path, agent: str, /, **changed: Any) -> Object:
    """An agent in the manifest that was not dispatched."""
    own = root / BASE / agent
    made: Object = {
        "agent": agent,
        "role": "",
        "task": TASKS.get(agent, "Compare the rest."),
        "task_id": task_id(agent),
        "responsible": "",
        "not_responsible": "",
        "inputs": [],
        "after": [],
        "format": "md",
        "critical": False,
        "may_launch": False,
        "timeout_s": None,
        "output": str(own / "output.md"),
        "status_file": str(own / "status.json"),
        "required": True,
        "attempt": 1,
        "dispatched_at": None,
        "prompt_file": None,
        "ended_at": None,
    }
    return made | changed


def sent(root: Path, agent: str, /, **changed: Any) -> Object:
    """An agent that was dispatched on another machine, and whose end nobody saw."""
    prompt = root / COORD / f"prompts/{task_id(agent)}.md"
    dispatched = {"dispatched_at": clock(1), "prompt_file": str(prompt)}
    watched: Object = {"exit": None, "outside": [], "host": ELSEWHERE}
    return entry(root, agent, **(dispatched | watched | changed))


def ended(root: Path, agent: str, /, **changed: Any) -> Object:
    """An agent whose program ended by itself."""
    return sent(root, agent, **({"ended_at": clock(11), "exit": "exit code 0"} | changed))


def manifest(root: Path, *entries: Object, **changed: Any) -> Path:
    """The manifest with these entries, and the task specification; the run's folder."""
    task = "a comparison of queues"
    value: Object = {"run_id": "20260301-090000", "created_at": clock(0), "task": task}
    value |= {"format": "md", "naming": "plain", "agents": entries}
    put(root, f"{COORD}/manifest.json", value | changed, 12)
    put(root, f"{BASE}/shared/task-spec.json", specification(task))
    return root


def specification(task: str) -> Object:
    return {
        "task": task,
        "scope": task,
        "requirements": [],
        "constraints": [],
        "output_format": "md",
    }


def prompt(root: Path, agent: str, base: str = BASE) -> str:
    """A prompt that follows the template."""
    place = root / base
    return f"""You are the {agent} agent on a 2-agent team completing a comparison of queues.

YOUR TASK:
{TASKS.get(agent, "Compare the rest.")}

INPUTS:
- {place}/shared/task-spec.json (required)

OUTPUTS:
Write your primary output to: {place}/{agent}/output.md
Write your status file to: {place}/{agent}/status.json

TASK ID: {task_id(agent)}
AGENT NAME: {agent}

SCOPE BOUNDARIES:
You are responsible for the task above.

RETURN FORMAT:
Return a JSON string.

PERMISSIONS:
You may not launch additional subagents.
You may write only to paths within: {place}/{agent}
"""


def status(root: Path, agent: str, word: str = "success", /, **changed: Any) -> Object:
    """What an agent's status file says."""
    file = str(root / BASE / agent / "output.md")
    listed = {"file": file, "size_estimate": "small", "description": f"The report of {agent}"}
    made = {"agent": agent, "task_id": task_id(agent), "status": word, "completed_at": clock(10)}
    return made | {"outputs": [] if word == "failure" else [listed]} | changed


def returned(root: Path, agent: str, word: str = "success", /, **changed: Any) -> Object:
    """What an agent returned."""
    own = root / BASE / agent
    names = ["status.json"] if word == "failure" else ["output.md", "status.json"]
    made: Object = {
        "status": word,
        "agent": agent,
        "task_id": task_id(agent),
        "files_written": [str(own / name) for name in names],
        "summary": f"{agent} compared the queues.",
        "errors": [] if word == "success" else ["Two of the queues could not be measured."],
    }
    return made | changed


def told(root: Path, *agents: str) -> None:
    """The prompts and the empty workspaces of agents that were dispatched."""
    for agent in agents:
        put(root, f"{COORD}/prompts/{task_id(agent)}.md", prompt(root, agent), 1)
        (root / BASE / agent).mkdir(parents=True, exist_ok=True)


def result(root: Path, agent: str, word: str = "success", text: str = CONTENT) -> None:
    """What an agent leaves that came to its end: prompt, output, status file, return."""
    told(root, agent)
    if word != "failure":
        put(root, f"{BASE}/{agent}/output.md", text.format(agent), 9)
    put(root, f"{BASE}/{agent}/status.json", status(root, agent, word), 10)
    put(root, f"{COORD}/returns/{task_id(agent)}.json", returned(root, agent, word), 11)


def ran(root: Path, **words: str) -> Path:
    """A run whose agents all ended, each with this word; the run's folder."""
    for agent, word in words.items():
        result(root, agent, word)
    return manifest(root, *(ended(root, agent) for agent in words))


def decide(root: Path, **decisions: str) -> None:
    """What a person decided on agents."""
    common = {"attempt": 1, "by": "pat", "at": clock(20), "reason": "It is enough."}
    entries = [
        {"agent": agent, "task_id": task_id(agent), "decision": decision} | common
        for agent, decision in decisions.items()
    ]
    put(root, f"{COORD}/triage.json", {"decisions": entries}, 20)


def conflict(root: Path, id: str, first: str, second: str, /, **changed: Any) -> Object:
    """A conflict between two outputs that nobody resolved."""
    files = [str(root / BASE / agent / "output.md") for agent in (first, second)]
    made: Object = {
        "id": id,
        "agents": [first, second],
        "topic": "price",
        "category": "factual",
        "files": files,
        "why": "price: “10” and “12”",
        "found_by": "acp",
        "at": clock(21),
    }
    return made | changed


def resolution(first: str, second: str) -> Object:
    """What is written to a conflict when it is resolved."""
    rule = f"the factual rule, the more sourced version, that of {first}"
    sentence = f"Conflict between {first} and {second} on price. Resolved by {rule}."
    made = {"sentence": sentence, "rule": rule, "keep": first, "because": "sourced"}
    return made | {"by": "pat", "resolved_at": clock(22)}


def compared(root: Path, *conflicts: Object) -> None:
    """Conflicts were looked for, and these were found."""
    value = {"looked_at": clock(21), "by": "pat", "conflicts": conflicts}
    put(root, f"{COORD}/conflicts.json", value, 22)


def draft(root: Path) -> None:
    """The draft of the final output."""
    text = "# a comparison of queues\n\nEverything about ann.\n\nEverything about ben.\n"
    put(root, f"{COORD}/draft/final-output.md", text, 30)


def integrated(root: Path, *agents: str, **changed: Any) -> None:
    """The final output, and the status of the integration."""
    text = "# a comparison of queues\n\nEverything.\n\n## Integration metadata\n\n"
    lines = [f"- Integrated by pat at {clock(40)}", f"- Integrated: {', '.join(agents)}"]
    put(root, "integration/final-output.md", text + "\n".join(lines) + "\n", 40)
    value: Object = {
        "run_id": "20260301-090000",
        "at": clock(40),
        "by": "pat",
        "final_output": str(root / "integration/final-output.md"),
        "integrated": agents,
        "skipped": [],
        "gaps": [],
        "conflicts": [],
        "decisions": [],
        "sources": [{"agent": a, "file": str(root / BASE / a / "output.md")} for a in agents],
        "gaps_added": [],
    }
    put(root, "integration/status.json", value | changed, 41)
