"""Initiatives of three repositories and three barriers, in the existing program's layout."""

from __future__ import annotations

from pathlib import Path

from tests.protocols.governed import making
from tests.protocols.governed.making import AT, RUN, Object

REPOS = ("hall", "attic", "cellar")
WORK = (("plan", "planning"), ("build", "implementation"), ("check", "verification"))


def make_house(
    root: Path,
    streams: dict[str, tuple[Object, tuple[Object, ...]]],
    *,
    barriers: tuple[tuple[str, str, tuple[str, ...]], ...],
    context: str = "",
    **of_state: object,
) -> Path:
    """An initiative of which each workstream has a state and a history.

    Args:
        root: where it is made.
        streams: state and history of each repository.
        barriers: kind, status and the repositories there, of each phase's barrier in order.
        context: what the agents' context document says, "" for none.
        of_state: what the coordinator's state says besides.
    """
    names = list(streams)
    making.write(
        root / "agentxchain-multi.json",
        {
            "schema_version": "0.1",
            "project": {"id": "house", "name": "House"},
            "repos": {name: {"path": f"./repos/{name}"} for name in names},
            "workstreams": {
                work: {"phase": phase, "repos": names, "completion_barrier": kind}
                for (work, phase), (kind, _, _) in zip(WORK, barriers, strict=True)
            },
            "routing": {phase: {} for _, phase in WORK},
        },
    )
    home = root / ".agentxchain/multirepo"
    runs = {
        name: {"run_id": RUN, "status": "initialized", "phase": state.get("phase")}
        for name, (state, _) in streams.items()
    }
    told: Object = {
        "schema_version": "0.1", "super_run_id": "srun_1", "project_id": "house",
        "status": "active", "phase": "planning", "repo_runs": runs, "pending_gate": None,
        "created_at": AT, "updated_at": AT,
    }  # fmt: skip
    making.write(home / "state.json", told | of_state)
    kept = {
        f"{work}_completion": {
            "workstream_id": work, "type": kind, "status": status, "required_repos": names,
            "satisfied_repos": list(there), "created_at": AT,
        }
        for (work, _), (kind, status, there) in zip(WORK, barriers, strict=True)
    }  # fmt: skip
    making.write(home / "barriers.json", kept)
    if context:
        place = home / "context/ctx_1"
        place.mkdir(parents=True)
        (place / "COORDINATOR_CONTEXT.md").write_text(f"Decisions: {context}\n")
    for name, (state, history) in streams.items():
        making.make_run(root / "repos" / name, of_state=state, history=history)
    return root


def everywhere(
    state: Object, history: tuple[Object, ...] = ()
) -> dict[str, tuple[Object, tuple[Object, ...]]]:
    """All repositories stand at the same place."""
    return dict.fromkeys(REPOS, (state, history))
