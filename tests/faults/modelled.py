"""The state machines as a campaign: each case is a few runs of one of them, from a seed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, Phase, Verbosity, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.faults.campaign import Campaign, Case
from tests.faults.models import (
    CycleMachine,
    FolderMachine,
    GovernedMachine,
    Machine,
    WorkspacesMachine,
)
from tests.faults.wire_model import WireMachine

MACHINES: dict[str, type[Machine]] = {
    "folder": FolderMachine, "workspaces": WorkspacesMachine, "governed": GovernedMachine,
    "cycle": CycleMachine, "wire": WireMachine,
}  # fmt: skip
_RUNS = 2  # of a machine in a case
_STEPS = {"folder": 25, "workspaces": 25, "governed": 20, "cycle": 25, "wire": 25}


def cases(place: Path, number: int) -> Iterator[Case]:
    """One machine after the other, without an end."""
    for round in count():
        for name in MACHINES:
            at = number * 1_000_003 + round
            yield Case(f"{name}: runs of seed {at}", partial(run, name, at))


def run(name: str, at: int) -> None:
    """A few runs of a machine, as the seed has it; what fails is not made shorter, to save time."""
    chosen = seed(at)(type(name.title(), (MACHINES[name],), {}))
    run_state_machine_as_test(
        chosen,
        settings=settings(
            max_examples=_RUNS, stateful_step_count=_STEPS[name], deadline=None, database=None,
            phases=(Phase.generate,),
            verbosity=Verbosity.quiet, suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


MODELS = Campaign("models", "each protocol beside a small model, by acts of chance", cases)
