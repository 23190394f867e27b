"""Scripted programs that take the turns of a governed run, in real git repositories."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.hygiene.sources import ROOT

AGENT = """
import json, os, pathlib, subprocess, sys
assert "ACP_GOVERNED_TURN" in os.environ
prompt = sys.stdin.read()
assert "## Required Output" in prompt and "# Execution Context" in prompt, prompt
root = pathlib.Path(os.environ["AGENTXCHAIN_PROJECT_ROOT"])
bundle = pathlib.Path(os.environ["AGENTXCHAIN_DISPATCH_DIR"])
given = json.loads((bundle / "ASSIGNMENT.json").read_text())
role, attempt = given["role"], given["attempt"]
number = given["assigned_sequence"]

def write(name, text):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return name

result = {
    "schema_version": "1.0", "run_id": given["run_id"], "turn_id": given["turn_id"],
    "role": role, "runtime_id": given["runtime_id"], "status": "completed",
    "summary": f"{role} did its part.",
    "decisions": [{"id": f"DEC-{number:03d}", "category": "scope", "statement": f"{role} decided.",
                   "rationale": "It is enough."}],
    "objections": [{"id": f"OBJ-{number:03d}", "severity": "low", "statement": "It is small.",
                    "status": "raised"}],
    "files_changed": [], "verification": {"status": "skipped"},
    "artifact": {"type": "review", "ref": None}, "proposed_next_role": "human",
    "phase_transition_request": None, "run_completion_request": None,
}
changed = result["files_changed"]
passed = {"status": "pass", "commands": ["true"],
          "machine_evidence": [{"command": "true", "exit_code": 0}]}
if role == "pm":
    changed.append(write(".planning/PM_SIGNOFF.md", "# Signoff\\n\\nApproved: YES\\n"))
    changed.append(write(".planning/ROADMAP.md", "# Roadmap\\n\\nOne lamp.\\n"))
    changed.append(write(".planning/SYSTEM_SPEC.md", "## Purpose\\n\\nLight.\\n\\n## Interface\\n\\n"
                         "A switch.\\n\\n## Acceptance Tests\\n\\nIt lights.\\n"))
    result["phase_transition_request"] = "implementation"
elif role == "dev":
    changed.append(write("src/lamp.py", f"LIGHT = {number}\\n"))
    changed.append(write(".planning/IMPLEMENTATION_NOTES.md",
                         "## Changes\\n\\nThe lamp.\\n\\n## Verification\\n\\nIt lights.\\n"))
    for words in (["add", "-A"], ["commit", "-qm", "Add the lamp"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    result |= {"verification": passed, "artifact": {"type": "commit", "ref": None},
               "phase_transition_request": "verification"}
else:
    changed.append(write(".planning/acceptance-matrix.md",
                         "| Req # | What | Status |\\n|---|---|---|\\n| 1 | Lights | PASS |\\n"))
    changed.append(write(".planning/ship-verdict.md", "## Verdict: SHIP\\n"))
    changed.append(write(".planning/RELEASE_NOTES.md",
                         "## User Impact\\n\\nLight.\\n\\n## Verification Summary\\n\\nSeen.\\n"))
    result |= {"verification": passed, "run_completion_request": True}
behaviour = sys.argv[1] if len(sys.argv) > 1 else ""
if behaviour == "hangs":
    import time
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    time.sleep(300)
if behaviour == "fails":
    print("no such model", file=sys.stderr)
    sys.exit(3)
if behaviour == "careless" and attempt == 1:
    result["objections"] = []
if behaviour == "sneaky":
    write("src/secret.py", "X = 1\\n")
if behaviour == "asks":
    result |= {"status": "needs_human", "needs_human_reason": "Which lamp?",
               "phase_transition_request": None}
if behaviour == "asks-and-fails":
    result |= {"status": "needs_human", "needs_human_reason": "Which lamp?",
               "phase_transition_request": None}
if behaviour == "sloppy":
    result |= {"status": "done"}
    result["decisions"][0]["rationale"] = ""
staged = pathlib.Path(os.environ["AGENTXCHAIN_STAGING_PATH"])
staged.parent.mkdir(parents=True, exist_ok=True)
staged.write_text(json.dumps(result))
if behaviour == "asks-and-fails":
    print("no access to the shop", file=sys.stderr)
    sys.exit(4)
"""


class Ran(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """What it printed with ``--json``."""
        value: dict[str, Any] = json.loads(self.out)
        return value


def repository(root: Path) -> Path:
    """A git repository with one commit."""
    root.mkdir(parents=True, exist_ok=True)
    (root / "README.md").write_text("# Lamp\n", encoding="utf-8")
    for words in (
        ["init", "-q", "-b", "main", "."],
        ["config", "user.email", "operator@example.org"],
        ["config", "user.name", "operator"],
        ["add", "-A"],
        ["commit", "-qm", "Begin"],
    ):
        git(root, *words)
    return root


def git(root: Path, *words: str) -> str:
    """Run git in the repository; returns what it printed."""
    done = subprocess.run(
        ["git", *words], cwd=root, check=True, capture_output=True, text=True, encoding="utf-8"
    )
    return done.stdout


def agent(folder: Path, behaviour: str = "") -> str:
    """The command line of a scripted agent."""
    script = folder / "agent.py"
    if not script.exists():
        folder.mkdir(parents=True, exist_ok=True)
        script.write_text(AGENT, encoding="utf-8")
    return shlex.join([sys.executable, str(script), *([behaviour] if behaviour else [])])


def agents(folder: Path, **behaviours: str) -> dict[str, str]:
    """The command lines of all three roles."""
    return {role: agent(folder, behaviours.get(role, "")) for role in ("pm", "dev", "qa")}


def acp(*words: str, env: dict[str, str] | None = None) -> Ran:
    """Run ``acp governed`` in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **(env or {})}
    done = subprocess.run(
        [sys.executable, "-m", "acp_core", "governed", *words],
        env=environment, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    return Ran(done.returncode, done.stdout, done.stderr)
