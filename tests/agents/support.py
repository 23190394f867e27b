"""Real programs for the tests: small Python scripts, and the runner that runs them."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import psutil

from acp_core.agents import presets
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.processes import myself
from acp_core.agents.program import Command, Values, build
from acp_core.agents.session import Session
from acp_core.agents.state import Run, Saved
from tests.support.waiting import until

wait_for = until

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = "/collaboration"


def script(folder: Path, body: str, name: str = "agent") -> str:
    """A program in ``folder``: Python code that may use os, sys, time, signal and subprocess."""
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport os, signal, subprocess, sys, time\n{body}\n")
    path.chmod(0o755)
    return str(path)


def command(program: str, *words: str, prompt: str = "", folder: Path) -> Command:
    """The command that runs a program with a prompt, as a preset's would be."""
    preset = presets.any_command([program, *words])
    prompt_file = folder / "prompt"
    prompt_file.write_text(prompt)
    values = Values(str(folder), str(folder), str(folder), prompt, str(prompt_file))
    return build(preset, values)


def saved(participant: str = "ann", **more: object) -> Saved:
    """The state of a loop that begins."""
    return Saved(FOLDER, participant, myself(), datetime.now(UTC), **more)  # type: ignore[arg-type]


def runner(participant: str = "ann", *, stream: str = "text", grace: float = 5.0) -> Session:
    """A runner, not yet entered."""
    where: LoopDirectory = place(FOLDER, participant)
    return Session(where, saved(participant), stream=stream, grace=grace)


def go_on(run: Run) -> str:
    """No reason to stop a program."""
    return ""


def is_gone(pid: int) -> bool:
    """Whether no process has this id, or only one that ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return not os.path.isdir("/proc/self")  # without /proc a zombie cannot be told


def end_what_runs(*folders: Path) -> None:
    """End every process but this one whose state folder lies in one of these."""
    for process in psutil.process_iter():
        try:
            state = process.environ().get("ACP_STATE", "")
            if process.pid != os.getpid() and any(Path(state).is_relative_to(f) for f in folders):
                process.kill()
        except psutil.Error:
            continue
