"""How a turn reaches whoever takes it: a human, a program on this machine, a model's service.

Source: governed protocol specification, "Version history" (manual, local_cli, api_proxy).
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from acp_core.agents.identity import Identity, identify
from acp_core.agents.spawn import SpawnError
from acp_core.files.text import clean_line
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.conduct import processes
from acp_core.protocols.governed.read.run import read_run
from acp_core.protocols.governed.schema import Object, objects, text
from acp_core.protocols.governed.state import active_turn
from acp_core.protocols.governed.write import Refused
from acp_core.protocols.governed.write.dispatch import note_failed_start
from acp_core.protocols.processes import TURN

KINDS = ("manual", "local_cli", "api_proxy")


class Came(NamedTuple):
    """What became of a turn that was handed over: its result is staged, or why it is not.

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
    runtime: Object

    @property
    def turn_id(self) -> str:
        """The turn's id."""
        return str(self.turn["turn_id"])

    @property
    def folder(self) -> Path:
        """Where its bundle lies."""
        return self.root / prompts.folder(self.turn_id)

    @property
    def own(self) -> Path:
        """Where what its program prints is kept, in the user's state folder."""
        return processes.place(self.root, self.turn_id)

    @property
    def staged(self) -> Path:
        """Where its result belongs."""
        return self.root / prompts.staged(self.turn_id)

    def seconds_left(self) -> float | None:
        """Seconds until the turn's deadline, None where it has none."""
        deadline = schema.moment(self.turn, "deadline_at")
        return (deadline - datetime.now(UTC)).total_seconds() if deadline else None


def task(root: str | Path, turn_id: str) -> Task:
    """The turn as it is to be taken.

    Raises:
        Refused: it is not under way, or its runtime cannot be used here.
    """
    place = Path(os.path.abspath(root))
    run = read_run(place)
    turn = active_turn(run.state.value, turn_id)
    if schema.inside(place, prompts.folder(turn_id)) is None:
        raise Refused(f"{turn_id!r} is no id of a turn")
    name = text(turn, "runtime_id", 200)
    runtime = objects(run.config.value.get("runtimes")).get(name)
    if runtime is None:
        raise Refused(f'the runtime "{name}" is not configured')
    return Task(place, run.state.value, turn, runtime)


def take(root: str | Path, turn_id: str) -> Came:
    """Have a dispatched turn taken, and wait until that is over.

    A program that comes to nothing is noted in the state; then the turn can be dispatched again.

    Raises:
        Refused: the turn is not under way, or its runtime cannot be used here.
    """
    given = task(root, turn_id)
    kind = text(given.runtime, "type", 40)
    if kind == "manual":
        return Came(given.staged.exists(), waits=True)
    if kind == "local_cli":
        from acp_core.protocols.governed.conduct.adapters.local_cli import (
            take_with_program as taking,
        )
    elif kind == "api_proxy":
        from acp_core.protocols.governed.conduct.adapters.api_proxy import (
            take_with_service as taking,
        )
    else:
        raise Refused(f'acp cannot use a runtime of type "{kind}"; it knows {", ".join(KINDS)}')
    came = taking(given)
    if not came.staged:
        since = given.turn.get("dispatched_at")
        note_failed_start(root, turn_id, came.reason, datetime.now(UTC), since)
    return came


def described(runtime: Object) -> str:
    """What takes a turn, in a few words, its secrets hidden."""
    kind = text(runtime, "type", 40)
    if kind == "local_cli":
        from acp_core.files.secrets import mask_command
        from acp_core.protocols.governed.conduct.adapters.local_cli import words_of

        try:
            return f"“{clean_line(' '.join(mask_command(words_of(runtime))), 300)}”"
        except SpawnError as error:
            return f"nothing ({error})"
    if kind == "api_proxy":
        from acp_core.protocols.governed.conduct.adapters.api_proxy import ServiceError, address

        try:
            return f"{text(runtime, 'model', 80)} at {clean_line(address(runtime), 200)}"
        except ServiceError as error:
            return f"nothing ({clean_line(str(error), 200)})"
    return f"a runtime of type {kind or 'manual'}"


def take_in_background(root: str | Path, turn_id: str) -> None:
    """Have a dispatched turn taken by a process of its own, which outlives this one.

    Raises:
        Refused: it cannot be started.
    """
    words = [sys.executable, "-m", TURN.module, os.fspath(root), turn_id]
    nothing = subprocess.DEVNULL
    try:
        started = subprocess.Popen(
            words, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True,
            close_fds=True,
        )  # fmt: skip
        processes.note(Path(root), turn_id, identify(started.pid) or Identity(started.pid, 0.0))
    except OSError as error:
        raise Refused(f"the turn's process cannot be started: {error.strerror}") from None
    Thread(target=started.wait, daemon=True).start()  # so that it leaves no zombie behind
