"""Initiatives over two repositories, carried by commands of `acp`."""

from __future__ import annotations

from pathlib import Path

from tests.golden.builders import governed
from tests.golden.builders.governed import BUILT, PASSED, PLANNED, SAID, TESTED, Object, Place

NAMES = ("auth", "web")


def configuration(**more: object) -> Object:
    """An initiative with a barrier after planning and one after verification."""
    streams = [
        {"name": name, "repo": f"./{name}", "branch": "main", "config_path": "agentxchain.json"}
        for name in NAMES
    ]
    made: Object = {
        "schema_version": "1.0",
        "super_run_id": "super_run_lamp",
        "description": "Light the house",
        "workstreams": streams,
        "barriers": [
            {"name": "plan-sync", "phase": "planning", "description": "All plan first."},
            {"name": "ship-sync", "phase": "verification", "description": "All ship together."},
        ],
    }
    return made | more


class House(Place):
    """Two repositories and an initiative over them that is written down."""

    def __init__(self, folder: Path, **more: object) -> None:
        super().__init__(folder)
        for name in NAMES:
            self.write(f"{name}/README.md", f"# {name}\n")
            self.init(at=name)
        self.write("agentxchain-multi.json", configuration(**more))

    def begin(self) -> None:
        """Start it, with people in all roles."""
        self.acp("coordinator", "init", ".", *SAID)
        for name in NAMES:
            self.commit("Scaffold", at=name)

    def plans(self, name: str) -> None:
        """A workstream's plan is accepted, and it asks to leave the phase."""
        self.acp("step", name)
        governed.stage(self, name, PLANNED, phase_transition_request="implementation")
        self.acp("accept-turn", name)

    def builds(self, name: str) -> None:
        """What a workstream built is accepted, and its gate approved."""
        self.commit("Plan", at=name)
        self.acp("step", name)
        kind = {"artifact": {"type": "workspace", "ref": None}}
        wanted = {"phase_transition_request": "verification", **PASSED, **kind}
        governed.stage(self, name, BUILT, **wanted)
        self.acp("accept-turn", name)
        self.acp("approve-transition", name, *SAID, "--comment", "Seen.")
        self.commit("Build", at=name)

    def tests(self, name: str) -> None:
        """What a workstream tested is accepted, and it asks to complete."""
        self.acp("step", name)
        governed.stage(self, name, TESTED, run_completion_request=True, **PASSED)
        self.acp("accept-turn", name)

    def at_gate(self) -> None:
        """Both have planned: the cross-repository gate waits."""
        self.begin()
        for name in NAMES:
            self.plans(name)

    def crossed(self) -> None:
        """The gate was approved: both are in implementation."""
        self.at_gate()
        self.approve()

    def approve(self) -> None:
        """Ann lets all cross."""
        self.acp("coordinator", "approve-barrier", ".", *SAID, "--comment", "One token format.")
