"""One collaboration of each protocol, as its own programs leave it; made once, copied for a case."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.write import initiative_decide
from tests.protocols.cycle import folders as cycles
from tests.protocols.cycle import making as cycle_files
from tests.protocols.folder.support import make_v1, make_v2
from tests.protocols.governed import making, multi
from tests.protocols.governed.acting import YES, approve_gate, governed, start
from tests.protocols.governed.killing import killed_at
from tests.protocols.wire.support import served, until
from tests.protocols.workspaces import running
from tests.protocols.workspaces.making import integrate, run

_LOCK = threading.Lock()


def _workspaces(root: Path) -> None:
    run(root)
    integrate(root)


def _coordinated(root: Path) -> None:
    """Prepared and dispatched by acp, with its manifest and what was kept of the agents."""
    running.prepare(root, "ann", "ben")
    words = running.program(root.parent / "programs", ben="partial")
    running.acp("dispatch", root, "--", *words)


def _governed(root: Path) -> None:
    """One turn accepted, its gate opened, the next turn staged."""
    start(root)
    for words in (["step"], ["accept-turn"], ["approve-transition", *YES], ["step"]):
        assert governed([words[0], str(root), *words[1:]]) == 0
    talk = ["--text", "Mind the hall.", "--as", "olga"]
    assert governed(["talk", str(root), *talk]) == 0


def _interrupted(root: Path) -> None:
    """A run in which an approval was killed when a part of its files was written."""
    start(root.parent / "before")
    for words in (["step"], ["accept-turn"]):
        assert governed([*words, str(root.parent / "before")]) == 0
    now = datetime.now(UTC)
    for number in range(1, 100):
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(root.parent / "before", root)
        words = ("phase_transition", "olga", "Good.", now)
        assert killed_at(number, root, lambda words=words: approve_gate(root, *words))
        left = interrupted(root)
        if left is not None and left.done:
            return
    raise AssertionError("no journal was left")


def _initiative(root: Path) -> None:
    names = ("auth", "web")
    multi.begin(root, names)
    multi.all_ask(root, names)
    initiative_decide.step(root, multi.NOW)
    multi.approve(root)


def _existing(root: Path) -> None:
    """An initiative as the existing program lays it out."""
    streams = {"api": making.state(), "web": making.state(phase="implementation")}
    making.make_existing(root, "all_repos_accepted", **streams)


def _cycle(root: Path) -> None:
    cycles.feedback_sent(root)
    home = f"{cycle_files.HOME}/{cycles.id_of('feedback')}.progress"
    row = '{"timestamp":"2026-03-02T18:41:00+08:00","agent":"cd","file":"a.py","type":"modify"}\n'
    for name in ("cd/changes.log", "coordination/discoveries.ndjson", "coordination/decisions.log"):
        cycle_files.write(root, f"{home}/{name}", row * 2)
    cycle_files.write(
        root, f"{home}/coordination/timeline.md", "# Timeline\n\n- 18:41:00 RA: begins\n" * 2
    )


def _wire(root: Path) -> None:
    """An agent's folder while it runs: a part of the database still stands in its WAL."""
    kept = root.parent / "agents"
    with served(kept, "B") as other, served(kept, "A") as agent:
        peer = agent.meet(other)
        for number in range(3):
            agent.post(f"/peer/{peer}/send", {"text": f"Hello {number}"})
        agent.post("/tasks", {"text": "Cook", "task_id": "t1"})
        agent.post("/tasks/t1:update", {"status": "completed", "artifact": "Cooked"})
        until(lambda: len(agent.get("/tasks")) == 1, "the task")
        shutil.copytree(kept / "A", root)


MAKERS: dict[str, Callable[[Path], object]] = {
    "folder": lambda root: make_v1(root, "completed", rounds=2),
    "deliverables": lambda root: make_v2(root, "completed"),
    "workspaces": _workspaces,
    "coordinated": _coordinated,
    "governed": _governed,
    "interrupted": _interrupted,
    "initiative": _initiative,
    "existing": _existing,
    "cycle": _cycle,
    "wire": _wire,
}
"""A collaboration of each kind, by name."""

LOGS = {
    "folder": ("events.jsonl", "protocol.json"),
    "deliverables": ("events.jsonl",),
    "workspaces": ("returns/ann-part.json", "integration/status.json"),
    "coordinated": (
        "agent-workspaces/.coord/manifest.json",
        "agent-workspaces/ann/status.json",
        "agent-workspaces/.coord/returns/ben-compare-queues.json",
    ),
    "governed": (
        ".agentxchain/decision-ledger.jsonl",
        ".agentxchain/history.jsonl",
        ".agentxchain/events.jsonl",
        ".agentxchain/state.json",
    ),
    "interrupted": (".agentxchain/acp-journal.json",),
    "initiative": (
        ".coordinator/ledger.jsonl",
        ".coordinator/state.json",
        "auth/.agentxchain/history.jsonl",
    ),
    "existing": (".agentxchain/multirepo/state.json", ".agentxchain/multirepo/barriers.json"),
    "cycle": tuple(
        f"{cycle_files.HOME}/{cycles.id_of('feedback')}{name}"
        for name in (
            ".json",
            ".progress/ra/changes.log",
            ".progress/cd/changes.log",
            ".progress/vas/test-results.json",
            ".progress/coordination/discoveries.ndjson",
            ".progress/coordination/decisions.log",
            ".progress/coordination/timeline.md",
        )
    ),
    "wire": ("wire.sqlite3", "wire.sqlite3-wal"),
}
"""The files of each that are logs, journals or states: those that a program writes again and again."""


def made(name: str, place: Path) -> Path:
    """A collaboration of this kind, made once in ``place``; not to be changed."""
    root = place / f"made-{name}" / name
    with _LOCK:
        if not root.exists():
            root.parent.mkdir(parents=True)
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                MAKERS[name](root)
    return root


def copied(name: str, place: Path, where: Path) -> Path:
    """A copy of that which may be changed; what stood at ``where`` goes."""
    root = made(name, place)
    shutil.rmtree(where, ignore_errors=True)
    where.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(root, where, symlinks=True)
    return where


def files(root: Path) -> Iterator[str]:
    """Every file of a collaboration by its name in it, but what belongs to git."""
    for path in sorted(root.rglob("*")):
        if path.is_file() and ".git" not in path.relative_to(root).parts:
            yield os.path.relpath(path, root)
