"""Cycles with real programs: scripted agents, an orchestrator in the background, and commands."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from acp_core.agents import registry
from acp_core.diagnosis.observer import Observer
from acp_core.model import Snapshot
from acp_core.model.clock import utc_now
from acp_core.person import paths
from acp_core.protocols.cycle.acts.table import COMMANDS
from acp_core.protocols.cycle.collaboration import Cycles
from acp_core.protocols.cycle.conduct import process
from tests.agents.support import ROOT, wait_for

ID = "cycle-v1-20260302T180000-csvexprt"
AGENT = f"{sys.executable} {ROOT / 'tests/protocols/cycle/agent.py'}"
WHAT = "Export the report as CSV"


def acp(*words: str) -> tuple[int, str, str]:
    """Run `acp cycle` in this process: exit code, output, complaints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = COMMANDS.main(words)
    return code, out.getvalue(), err.getvalue()


def done(root: Path, *words: str) -> dict[str, Any]:
    """Run `acp cycle` on a project with --json; it must succeed."""
    code, out, err = acp(*words, "--folder", str(root), "--json")
    assert code == 0, err or out
    told: dict[str, Any] = json.loads(out)
    return told


def refused(root: Path, *words: str) -> str:
    """Run `acp cycle` on a project; it must be refused. What it says."""
    code, out, err = acp(*words, "--folder", str(root))
    assert (code, out) == (2, ""), (code, out, err)
    assert err.count("\n") == 1, err
    return err


def diagnosed(root: Path) -> tuple[Cycles, Snapshot]:
    """A project's cycles as they are opened and shown, with their causes."""
    cycles, observer, now = Cycles(str(root)), Observer(), utc_now()
    read = cycles.refresh(now)
    return cycles, observer.diagnosed(observer.diagnosis(), cycles, read, now)


def forget(root: Path) -> None:
    """Lose what this account keeps of the project's cycles, and what all accounts share of it."""
    shutil.rmtree(paths.state_folder() / "cycles", ignore_errors=True)
    for each in root.glob(".acp/run/last-written-*"):
        each.unlink()


def behave(root: Path, **words: list[str]) -> None:
    """What the agents do, run after run."""
    (root / "behave.json").write_text(json.dumps(words))


def start(root: Path, *words: str, **behaviour: list[str]) -> dict[str, Any]:
    """Begin a cycle with scripted agents, in the background."""
    behave(root, **behaviour)
    return done(root, "start", WHAT, "--cycle", ID, "--command", AGENT, *words)


def path(root: Path) -> Path:
    return root / f".workflow/.cycle/{ID}.json"


def progress(root: Path) -> Path:
    return root / f".workflow/.cycle/{ID}.progress"


def state(root: Path) -> dict[str, Any]:
    """The state file as it stands."""
    held: dict[str, Any] = json.loads(path(root).read_text())
    return held


def wait_for_status(root: Path, *status: str) -> dict[str, Any]:
    """Wait until the cycle has one of these statuses; its state then."""
    wait_for(lambda: state(root)["status"] in status, f"the cycle to be {' or '.join(status)}")
    return state(root)


def wait_for_end(root: Path) -> dict[str, Any]:
    """Wait until no orchestrator runs; the state then."""
    wait_for(lambda: not alive(root), "the orchestrator to end")
    return state(root)


def alive(root: Path) -> bool:
    return process.running(str(root)) is not None


def calls(root: Path) -> list[str]:
    """Who ran, in order, as "cd buggy"."""
    file = root / "calls.log"
    lines = file.read_text().splitlines() if file.exists() else []
    return [" ".join(line.split(" ")[1:-1]) for line in lines if line.startswith("start ")]


def runs(root: Path) -> list[str]:
    """The names of the runs that were started, in order."""
    file = root / "calls.log"
    lines = file.read_text().splitlines() if file.exists() else []
    return [line.rpartition("/")[2] for line in lines if line.startswith("start ")]


def end_all() -> None:
    """End whatever a test started."""
    for each in registry.runners():
        if each.pid != os.getpid():
            registry.stop(each.folder, each.participant, grace=0.5)
