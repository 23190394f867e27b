"""A turn that is to be taken, and what became of it."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.model.errors import Refused
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.read import turn_files
from acp_core.protocols.governed.read.run import read_run
from acp_core.protocols.governed.schema import Object, Runtime, TurnState, decode, text
from acp_core.protocols.governed.state import active_turn


class TakenTurn(NamedTuple):
    """What became of a turn that was handed over: its result is staged, or why it is not.

    ``reason`` of a staged one says how its program ended, where that was not well.
    ``waits`` says that a human takes the turn, so that nothing is wrong.
    """

    staged: bool
    reason: str = ""
    waits: bool = False


class Task(NamedTuple):
    """A turn to be taken: its run, its bundle, and the runtime that takes it."""

    root: Path
    state: Object
    turn: Object
    runtime: Runtime
    config: Object

    @property
    def turn_id(self) -> str:
        """The turn's id."""
        return str(self.turn["turn_id"])

    @property
    def folder(self) -> Path:
        """Where its bundle lies."""
        return self.root / turn_files.bundle_folder(self.turn_id)

    @property
    def own(self) -> Path:
        """Where what its program prints is kept, in the user's state folder."""
        return turn_files.program_folder(self.root, self.turn_id)

    @property
    def staged(self) -> Path:
        """Where its result belongs."""
        return self.root / prompts.staged(self.turn_id)

    def seconds_left(self) -> float | None:
        """Seconds until the turn's deadline, None where it has none."""
        deadline = decode(TurnState, self.turn).deadline
        return (deadline - datetime.now(UTC)).total_seconds() if deadline else None


def task(root: str | Path, turn_id: str) -> Task:
    """The turn as it is to be taken.

    Raises:
        Refused: it is not under way, or its runtime cannot be used here.
    """
    place = Path(os.path.abspath(root))
    run = read_run(place)
    turn = active_turn(run.state.value, turn_id)
    if schema.inside(place, turn_files.bundle_folder(turn_id)) is None:
        raise Refused(f"{turn_id!r} is not a turn id")
    name = text(turn, "runtime_id", 200)
    runtime = run.settings.runtimes.get(name)
    if runtime is None:
        raise Refused(f'the runtime "{name}" is not configured')
    return Task(place, run.state.value, turn, runtime, run.config.value)
