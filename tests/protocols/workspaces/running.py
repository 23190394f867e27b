"""Runs that are carried out in tests: prepared, dispatched with scripted programs, looked at."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

from acp_core.model import Snapshot
from acp_core.model.clock import utc_now
from acp_core.protocols.workspaces.acts.table import COMMANDS
from acp_core.protocols.workspaces.collaboration import open_workspaces
from tests.protocols.workspaces import scripted

FIVE = {"ann": "success", "ben": "partial", "cat": "failure", "dan": "silent", "eve": "contradict"}


class Told(tuple[int, str]):
    """A command's exit code and what it said."""

    @property
    def code(self) -> int:
        return self[0]

    @property
    def text(self) -> str:
        return self[1]


def acp(*words: object) -> Told:
    """``acp workspaces`` with these words."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = COMMANDS.main([str(word) for word in words])
    return Told((code, said.getvalue()))


def told(*words: object) -> dict[str, Any]:
    """The JSON of ``acp workspaces``; the command succeeds."""
    at = words.index("--") if "--" in words else len(words)
    ended = acp(*words[:at], "--json", *words[at:])
    assert ended.code in (0, 1), ended.text
    found: dict[str, Any] = json.loads(ended.text)
    return found


def program(folder: Path, **behaviours: str | list[str]) -> list[str]:
    """The words of a scripted program whose agents behave like this, attempt by attempt."""
    folder.mkdir(exist_ok=True)
    said = {name: [how] if isinstance(how, str) else how for name, how in behaviours.items()}
    (folder / "behaviours.json").write_text(json.dumps(said))
    return [sys.executable, scripted.__file__, str(folder / "behaviours.json"), str(log(folder))]


def log(folder: Path) -> Path:
    """Where the scripted programs say that they begin and end."""
    return folder / "log"


def begun(folder: Path) -> list[str]:
    """Who was really started, in order."""
    lines = scripted.lines(str(log(folder)))
    return [line.split()[1] for line in lines if line.startswith("begins ")]


def prepare(root: Path, *agents: str, **more: Any) -> Path:
    """A prepared run of these agents."""
    words: list[object] = ["init", root, "--task", "a comparison of queues"]
    for agent in agents:
        words += ["--agent", f"{agent}=Compare the queues as {agent} sees them."]
    for option, value in more.items():
        words += [f"--{option}", value]
    ended = acp(*words)
    assert ended.code == 0, ended.text
    return root


def now(root: Path) -> Snapshot:
    """The run as it is read now."""
    return open_workspaces(str(root)).refresh(utc_now())


def states(root: Path) -> dict[str, str]:
    """The state of each agent now."""
    rows = now(root).panels[0].rows
    return {row.cells[0]: row.cells[1] for row in rows if not row.depth}


def entries(root: Path) -> dict[str, dict[str, Any]]:
    """The manifest's entries by agent."""
    value = json.loads((root / "agent-workspaces/.coord/manifest.json").read_text())
    return {entry["agent"]: entry for entry in value["agents"]}
