"""Finished collaborations of every protocol, made as their agents leave them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from acp_core.model.clock import utc_now
from acp_core.protocols.folder.rehearsal import scenario
from acp_core.protocols.folder.rehearsal.scenario import SCENARIOS
from tests.protocols.cycle import making as cycles
from tests.protocols.governed import making as governed
from tests.protocols.wire import stores
from tests.protocols.workspaces import making as workspaces

DECISION = {"type": "gate_approved", "gate_id": "verification_done", "by": "kim", "at": governed.AT,
            "phase": "verification", "comment": "Ship the lamp."}  # fmt: skip


def folder(root: Path) -> Path:
    """A shared folder with its conclusion."""
    exhibit = scenario.Exhibit("page-cursors", SCENARIOS, ago=190)
    return scenario.make(exhibit, root / "page-cursors", utc_now())


def run(root: Path) -> Path:
    """A run of sub-agents that was integrated."""
    made = workspaces.run(root / "queues")
    workspaces.integrate(made, "# Which queue\n\nTake the **durable** queue.\n")
    return made


def governed_run(root: Path) -> Path:
    """A governed run whose last gate was approved."""
    done = governed.state(status="completed", phase="verification")
    checked = {"status": "pass", "evidence_summary": "12 tests passed"}
    last = governed.accepted(
        phase="verification", role="qa", summary="The lamp lights the hall.",
        verification=checked, files_changed=["lamp.py"],
    )  # fmt: skip
    made = governed.make_run(root / "lamp", of_state=done, history=(governed.accepted(), last))
    governed.write_lines(made / ".agentxchain/decision-ledger.jsonl", DECISION)
    return made


def initiative(root: Path) -> Path:
    """An initiative of which all workstreams are completed."""
    done = governed.state(status="completed", phase="verification")
    made = governed.make_initiative(root / "house", "approved", auth=done, web=done)
    place = made / ".coordinator/state.json"
    place.write_text(json.dumps(json.loads(place.read_text()) | {"status": "completed"}))
    approved = {"type": "barrier_approved", "barrier": "plan-sync", "by": "kim", "at": governed.AT}
    governed.write_lines(made / ".coordinator/ledger.jsonl", approved)
    for name in ("auth", "web"):
        last = governed.accepted(phase="verification", summary=f"The part {name} is lit.")
        governed.write_lines(made / name / ".agentxchain/history.jsonl", last)
    return made


def cycle(root: Path) -> Path:
    """A development cycle whose tests passed."""
    made = cycles.cycle(root / "export", "completed")
    cycles.write(made, f"{cycles.PROGRESS}/vas/summary.md", "# Summary\n\nThe export works.\n")
    return made


def agent(root: Path) -> Path:
    """A stopped agent with the result of a task; in its own place, not below ``root``."""
    task = {"status": "completed", "direction": "delegated", "peer": 0, "age": 400.0,
            "words": "Boil it", "artifact": "Boiled for six minutes."}  # fmt: skip
    return stores.make("Cook", {"peers": [], "tasks": [task], "messages": []})


KINDS: dict[str, tuple[Callable[[Path], Path], str, str]] = {
    "folder": (folder, "Conclusion", "Page through orders by"),
    "workspaces": (run, "final output", "Take the durable queue."),
    "governed": (governed_run, "Outcome", "The lamp lights the hall."),
    "initiative": (initiative, "Outcome", "The part auth is lit."),
    "cycle": (cycle, "Outcome", "20 tests"),
    "wire": (agent, "Artifacts", "Boiled for six minutes."),
}
"""By kind: how one is made, the tab that says what came out, and words of it."""
