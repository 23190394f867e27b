"""Governed runs that commands of `acp` carry, each role played by hand."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.golden.builders.settled import START, Settled
from tests.golden.sandbox import environment
from tests.support import forked

Object = dict[str, Any]
SAID = ("--as", "Ann", "--yes")
STATE, LEDGER = ".agentxchain/state.json", ".agentxchain/decision-ledger.jsonl"
HISTORY, EVENTS = ".agentxchain/history.jsonl", ".agentxchain/events.jsonl"
OLD = START.timestamp()
PLANNED = {
    ".planning/PM_SIGNOFF.md": "# Signoff\n\nApproved: YES\n",
    ".planning/ROADMAP.md": "# Roadmap\n\nOne lamp.\n",
    ".planning/SYSTEM_SPEC.md": (
        "## Purpose\n\nLight.\n\n## Interface\n\nA switch.\n\n## Acceptance Tests\n\nIt lights.\n"
    ),
}
BUILT = {
    "src/lamp.py": "LIGHT = 1\n",
    ".planning/IMPLEMENTATION_NOTES.md": (
        "## Changes\n\nThe lamp.\n\n## Verification\n\nIt lights.\n"
    ),
}
TESTED = {
    ".planning/acceptance-matrix.md": "| Req # | What | Status |\n|---|---|---|\n| 1 | Lights | PASS |\n",
    ".planning/ship-verdict.md": "## Verdict: SHIP\n",
    ".planning/RELEASE_NOTES.md": (
        "## User Impact\n\nLight.\n\n## Verification Summary\n\nSeen.\n"
    ),
}
PASSED: Object = {
    "verification": {
        "status": "pass",
        "commands": ["true"],
        "machine_evidence": [{"command": "true", "exit_code": 0}],
    }
}


class Place:
    """A folder in which commands run; what they write is settled after each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._env = environment(folder.parent)
        self._settled = Settled(folder, folder.parent / "state")

    def acp(self, *words: str, code: int = 0) -> None:
        """Run ``acp governed``, and check how it ends."""
        ended = forked.run(("governed", *words), self.folder, self._env, "")
        assert ended.returncode == code, f"{words}: {ended.stdout}{ended.stderr}"
        self._settled.settle()

    def git(self, *words: str, at: str = ".") -> None:
        """Run git."""
        command = ["git", "-c", "init.defaultBranch=main", *words]
        subprocess.run(
            command, cwd=self.folder / at, env=self._env, check=True, capture_output=True
        )

    def init(self, at: str = ".") -> None:
        """A repository, of which no copy differs for being one."""
        self.git("init", "-q", ".", at=at)
        self.git("config", "core.trustctime", "false", at=at)
        self.git("config", "core.checkStat", "minimal", at=at)
        self.commit("Begin", at=at)

    def rest(self) -> None:
        """Let no command find anything to write down anew: every file is older than the index."""
        for path in self.folder.rglob("*"):
            if ".git" not in path.parts:
                os.utime(path, (OLD, OLD), follow_symlinks=False)
        for path in self.folder.rglob(".git"):
            self.git("status", "--short", at=str(path.parent.relative_to(self.folder)))

    def commit(self, sentence: str, at: str = ".") -> None:
        """Commit everything."""
        self.git("add", "-A", at=at)
        self.git("commit", "-qm", sentence, "--allow-empty", at=at)

    def write(self, name: str, value: object) -> None:
        """Write a file: a text as it is, anything else as JSON."""
        write(self.folder / name, value)

    def append(self, name: str, text: str) -> None:
        """Append to a file."""
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(text)

    def read(self, name: str) -> Object:
        """A JSON file."""
        value: Object = json.loads((self.folder / name).read_text(encoding="utf-8"))
        return value

    def edit(self, name: str, **changes: object) -> None:
        """Change a JSON file by hand."""
        self.write(name, self.read(name) | changes)


class Run(Place):
    """A run in a repository of its own.

    Args:
        folder: the repository.
        words: further words for its start.
    """

    def __init__(self, folder: Path, *words: str) -> None:
        super().__init__(folder)
        self.write("README.md", "# Lamp\n")
        self.init()
        self.acp("init", ".", "--name", "Lamp", "--goal", "Light the hall", *words)
        self.commit("Scaffold")

    def turn(self, files: Mapping[str, str] | None = None, **more: object) -> None:
        """Give a turn out, write its files, and stage a result of it."""
        self.acp("step")
        self.stage(files or {}, **more)

    def stage(self, files: Mapping[str, str], **more: object) -> None:
        """Stage a result of the turn that is under way."""
        stage(self, ".", files, **more)

    def plan(self, **more: object) -> None:
        """The planner's turn, staged."""
        self.turn(PLANNED, **{"phase_transition_request": "implementation", **more})

    def build(self, **more: object) -> None:
        """The developer's turn, staged."""
        kind = {"artifact": {"type": "workspace", "ref": None}}
        self.turn(BUILT, **{"phase_transition_request": "verification", **PASSED, **kind, **more})

    def test(self, **more: object) -> None:
        """The tester's turn, staged."""
        self.turn(TESTED, **{"run_completion_request": True, **PASSED, **more})

    def to_implementation(self) -> None:
        """The plan is accepted and its gate approved."""
        self.plan()
        self.acp("accept-turn")
        self.acp("approve-transition", *SAID, "--comment", "One lamp is enough.")
        self.commit("Plan")

    def to_verification(self) -> None:
        """What was built is accepted and its gate approved, too."""
        self.to_implementation()
        self.build()
        self.acp("accept-turn")
        self.acp("approve-transition", *SAID, "--comment", "Seen.")
        self.commit("Build")

    def to_completion(self) -> None:
        """The last gate waits."""
        self.to_verification()
        self.test()
        self.acp("accept-turn")


def stage(place: Place, at: str, files: Mapping[str, str], **more: object) -> None:
    """Stage a result of the turn that is under way in the repository ``at``, with its files."""
    state = place.read(f"{at}/{STATE}")
    [turn] = state["active_turns"].values()
    number, role = turn["assigned_sequence"], turn["assigned_role"]
    for name, text in files.items():
        place.write(f"{at}/{name}", text)
    result = {
        "schema_version": "1.0", "run_id": state["run_id"], "turn_id": turn["turn_id"],
        "role": role, "runtime_id": turn["runtime_id"], "status": "completed",
        "summary": f"{role} did its part.",
        "decisions": [{"id": f"DEC-{number:03d}", "category": "scope",
                       "statement": f"{role} decided.", "rationale": "It is enough."}],
        "objections": [{"id": f"OBJ-{number:03d}", "severity": "low",
                        "statement": "It is small.", "status": "raised"}],
        "files_changed": list(files), "verification": {"status": "skipped"},
        "artifact": {"type": "review", "ref": None}, "proposed_next_role": "human",
        "phase_transition_request": None, "run_completion_request": None,
    }  # fmt: skip
    name = f"{at}/.agentxchain/staging/{turn['turn_id']}/turn-result.json"
    place.write(name, result | more)


def write(path: Path, value: object) -> None:
    """Write a file with the folders above it: a text as it is, anything else as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = value if isinstance(value, str) else json.dumps(value, indent=1) + "\n"
    path.write_text(text, encoding="utf-8")


def lines(*values: object) -> str:
    """A log of one object a line."""
    return "".join(json.dumps(value) + "\n" for value in values)
