"""Runs and initiatives made for the tests, in the shapes that the programs write."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Object = dict[str, Any]
RUN, TURN = "run_0000000000000001", "turn_00000000000000aa"
AT = "2026-03-01T10:00:00.000Z"


def config(**more: object) -> Object:
    """A configuration of three phases, each left through a gate that asks a human."""
    roles = {
        "pm": {"title": "Planner", "mandate": "Plan.", "write_authority": "review_only"},
        "dev": {"title": "Developer", "mandate": "Build.", "write_authority": "authoritative"},
        "qa": {"title": "Tester", "mandate": "Doubt.", "write_authority": "review_only"},
    }
    for name, role in roles.items():
        role["runtime"] = f"manual-{name}"
    phases = (("planning", "pm"), ("implementation", "dev"), ("verification", "qa"))
    made: Object = {
        "schema_version": "1.0",
        "project": {"id": "lamp", "name": "Lamp", "goal": "Light the hall"},
        "roles": roles,
        "runtimes": {f"manual-{name}": {"type": "manual"} for name in roles},
        "routing": {
            phase: {
                "entry_role": role,
                "allowed_next_roles": [role, "human"],
                "exit_gate": f"{phase}_done",
            }
            for phase, role in phases
        },
        "gates": {f"{phase}_done": {"requires_human_approval": True} for phase, _ in phases},
    }
    made["gates"]["planning_done"]["requires_files"] = [".planning/PM_SIGNOFF.md"]
    return made | more


def state(**more: object) -> Object:
    """The state of a run that is under way in its first phase."""
    made: Object = {
        "schema_version": "1.1",
        "run_id": RUN,
        "project_id": "lamp",
        "status": "active",
        "phase": "planning",
        "active_turns": {},
        "turn_sequence": 1,
        "blocked_on": None,
        "blocked_reason": None,
        "phase_gate_status": {},
        "created_at": AT,
        "phase_entered_at": AT,
    }
    return made | more


def turn(**more: object) -> Object:
    """An active turn of the planner."""
    made: Object = {
        "turn_id": TURN,
        "run_id": RUN,
        "assigned_role": "pm",
        "status": "dispatched",
        "attempt": 1,
        "assigned_at": AT,
        "runtime_id": "manual-pm",
        "assigned_sequence": 1,
    }
    return made | more


def under_way(**more: object) -> Object:
    """The state of a run whose planner has its turn."""
    return state(active_turns={TURN: turn(**more)})


def result(**more: object) -> Object:
    """A turn result that nothing is wrong with."""
    made: Object = {
        "schema_version": "1.0",
        "run_id": RUN,
        "turn_id": TURN,
        "role": "pm",
        "runtime_id": "manual-pm",
        "status": "completed",
        "summary": "Planned the lamp.",
        "decisions": [
            {"id": "DEC-001", "category": "scope", "statement": "One lamp.", "rationale": "Hall."}
        ],
        "objections": [
            {"id": "OBJ-001", "severity": "high", "statement": "No switch.", "status": "raised"}
        ],
        "files_changed": [],
        "verification": {"status": "skipped"},
        "artifact": {"type": "review", "ref": None},
        "proposed_next_role": "human",
        "phase_transition_request": "implementation",
        "run_completion_request": None,
    }
    return made | more


def accepted(**more: object) -> Object:
    """The line of the history for an accepted turn."""
    return result(phase="planning", accepted_at=AT) | more


def write(path: Path, value: object) -> Path:
    """Write a JSON file with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def configure(root: Path, value: object) -> None:
    """Write the configuration of a run."""
    write(root / "agentxchain.json", value)


def write_lines(path: Path, *values: object) -> None:
    """Write a log of one object a line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")


def make_run(
    root: Path, *, of_state: Object | None = None, history: tuple[Object, ...] = ()
) -> Path:
    """A run in ``root``, with the bundle of each of its turns."""
    made = state() if of_state is None else of_state
    write(root / "agentxchain.json", config())
    write(root / ".agentxchain/state.json", made)
    write_lines(root / ".agentxchain/history.jsonl", *history)
    for name in made.get("active_turns", {}):
        write(root / f".agentxchain/dispatch/turns/{name}/ASSIGNMENT.json", {"turn_id": name})
    (root / "TALK.md").write_text("# Talk\n", encoding="utf-8")
    return root


def make_initiative(root: Path, status: str = "pending", **streams: Object) -> Path:
    """An initiative in the specification's layout; each keyword is a workstream's state."""
    barrier = {"name": "plan-sync", "phase": "planning", "description": "All plan first."}
    described = {
        "schema_version": "1.0",
        "super_run_id": "super_run_1",
        "description": "Light the house",
        "workstreams": [
            {"name": name, "repo": "", "branch": "main", "config_path": "agentxchain.json"}
            for name in streams
        ],
        "barriers": [barrier],
    }
    write(root / "agentxchain-multi.json", described)
    reached = [n for n, s in streams.items() if str(s.get("blocked_on")).startswith("barrier:")]
    kept = {"phase": "planning", "status": status, "reached_by": reached, "reached_at": AT}
    write(
        root / ".coordinator/state.json",
        {
            "schema_version": "1.0",
            "super_run_id": "super_run_1",
            "status": "active",
            "barriers": {"plan-sync": kept},
            "workstreams": {name: {"path": name, "run_id": RUN} for name in streams},
        },
    )
    for name, of_state in streams.items():
        make_run(root / name, of_state=of_state | {"super_run_id": "super_run_1"})
    return root


def make_existing(root: Path, kind: str, **streams: Object) -> Path:
    """An initiative in the existing program's layout, whose one barrier is of this kind."""
    names = list(streams)
    write(
        root / "agentxchain-multi.json",
        {
            "schema_version": "0.1",
            "project": {"id": "house", "name": "House"},
            "repos": {name: {"path": f"./repos/{name}"} for name in names},
            "workstreams": {"plan": {"phase": "planning", "repos": names}},
            "routing": {"planning": {}, "implementation": {}, "verification": {}},
        },
    )
    home = root / ".agentxchain/multirepo"
    repo_runs = {name: {"run_id": RUN, "status": "linked", "phase": "planning"} for name in names}
    write(
        home / "state.json",
        {"super_run_id": "srun_1", "status": "active", "phase": "planning",
         "repo_runs": repo_runs, "pending_gate": None},
    )  # fmt: skip
    barrier: dict[str, object] = {"workstream_id": "plan", "type": kind, "status": "pending"}
    barrier |= {"required_repos": names, "satisfied_repos": []}
    write(home / "barriers.json", {"plan_completion": barrier})
    for name, of_state in streams.items():
        make_run(root / "repos" / name, of_state=of_state)
    return root
