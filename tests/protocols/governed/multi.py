"""Initiatives of real git repositories for the tests, and runs that ask to leave their phase."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from acp_core.protocols.governed.read.own_writes import SEAL
from tests.protocols.governed import making
from tests.protocols.governed.acting import NOW as NOW
from tests.protocols.governed.acting import acted
from tests.protocols.governed.acting import approve_barrier as approve  # noqa: F401
from tests.protocols.governed.making import Object
from tests.support.examples import MEMORY

NAMES = ("auth", "gateway", "web")
SUPER = "super_run_lamp"
NEXT = {"planning": "implementation", "implementation": "verification", "verification": None}
ROLES = {"planning": "pm", "implementation": "dev", "verification": "qa"}


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, as nobody in particular."""
    done = subprocess.run(
        ["git", "-c", "user.name=Tester", "-c", "user.email=tester@example.org", *words],
        cwd=folder, capture_output=True, text=True, check=True,
        env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    return done.stdout.strip()


def repository(folder: Path, branch: str = "lamp") -> Path:
    """A repository with one commit, that holds the configuration of a run."""
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", branch)
    making.write(folder / "agentxchain.json", making.config(gates=gates()))
    (folder / ".gitignore").write_text(".agentxchain/\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "Begin")
    return folder


def gates() -> Object:
    """Gates that only a human opens."""
    return {f"{phase}_done": {"requires_human_approval": True} for phase in NEXT}


def configuration(names: tuple[str, ...] = NAMES, **more: object) -> Object:
    """An initiative with a barrier after planning and one after verification."""
    return {
        "schema_version": "1.0",
        "super_run_id": SUPER,
        "description": "Light the house",
        "workstreams": [
            {"name": name, "repo": f"./{name}", "branch": "lamp", "config_path": "agentxchain.json"}
            for name in names
        ],
        "barriers": [
            {"name": "plan-sync", "phase": "planning", "description": "All plan first."},
            {"name": "ship-sync", "phase": "verification", "description": "All ship together."},
        ],
    } | more


def begin(root: Path, names: tuple[str, ...] = NAMES, **more: object) -> Path:
    """An initiative that was started, of repositories that are there."""
    if names == NAMES and not more:
        shutil.copytree(_begun(), root, dirs_exist_ok=True, symlinks=True)
        return root
    return _begin(root, names, **more)


@functools.cache
def _begun() -> Path:
    """The usual initiative, made once for this process of tests."""
    place = Path(tempfile.mkdtemp(prefix="acp-tests-", dir=MEMORY or "/tmp"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return _begin(place / "house", NAMES)


def _begin(root: Path, names: tuple[str, ...], **more: object) -> Path:
    for name in names:
        repository(root / name)
    making.write(root / "agentxchain-multi.json", configuration(names, **more))
    acted("coordinator", "init", root, "--as", "Ann", "--yes")
    return root


def state(root: Path, name: str = "") -> Object:
    """The state of the coordinator, or of a workstream."""
    place = root / name / ".agentxchain/state.json" if name else root / ".coordinator/state.json"
    read: Object = json.loads(place.read_text())
    return read


def ledger(root: Path) -> list[Object]:
    """The coordinator's ledger."""
    return [json.loads(line) for line in (root / ".coordinator/ledger.jsonl").open()]


def asks(root: Path, name: str, **more: object) -> None:
    """A turn of the workstream's phase is accepted, and asks to leave the phase."""
    of_state, turn = state(root, name), f"turn_{name}_{state(root, name)['phase']}"
    phase = of_state["phase"]
    accepted = making.accepted(
        turn_id=turn, run_id=of_state["run_id"], phase=phase, role=ROLES[phase],
        summary=f"{phase} of {name} done", phase_transition_request=NEXT[phase], **more,
    )  # fmt: skip
    decision = {
        "id": "DEC-001", "turn_id": turn, "role": ROLES[phase], "phase": phase,
        "category": "architecture", "statement": f"{name} uses tokens", "rationale": "Safe.",
        "status": "accepted", "created_at": making.AT,
    }  # fmt: skip
    home = root / name / ".agentxchain"
    for file, line in (("history.jsonl", accepted), ("decision-ledger.jsonl", decision)):
        with (home / file).open("a") as log:
            log.write(json.dumps(line) + "\n")
    gate = {"gate": f"{phase}_done", "requested_by_turn": turn, "requested_at": making.AT}
    waits: Object = {
        "last_completed_turn_id": turn,
        "status": "paused",
        "blocked_on": f"human_approval:{phase}_done",
    }
    if NEXT[phase]:
        waits["pending_phase_transition"] = gate | {"from": phase, "to": NEXT[phase]}
    else:
        waits["pending_run_completion"] = gate
    by_hand(root, name, of_state | waits)


def by_hand(root: Path, name: str, of_state: Object) -> None:
    """Write a workstream's state, as if nothing of it had been sealed."""
    making.write(root / name / ".agentxchain/state.json", of_state)
    unseal(root / name)


def unseal(run: Path) -> None:
    """Take the seal of a run away."""
    (run / SEAL).unlink(missing_ok=True)


def all_ask(root: Path, names: tuple[str, ...] = NAMES) -> None:
    """Every workstream asks to leave its phase."""
    for name in names:
        asks(root, name)
