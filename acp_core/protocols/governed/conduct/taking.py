"""How a turn reaches whoever takes it: a human, a program on this machine, a model's service.

Source: governed protocol specification, "Version history" (manual, local_cli, api_proxy).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from acp_core.agents import background, budgets
from acp_core.agents.presets import PresetError
from acp_core.agents.program import SpawnError
from acp_core.model.errors import NotStarted, Refused
from acp_core.model.text import clean_line
from acp_core.person.settings import SettingsError
from acp_core.protocols.governed.schema import Runtime, text
from acp_core.protocols.governed.write import turns
from acp_core.protocols.governed.write.opened import read_unlocked
from acp_core.protocols.governed.write.turns import TakenTurn, Task, note_failed_start, task
from acp_core.protocols.processes import TURN

KINDS = ("manual", "local_cli", "api_proxy")


def take(
    root: str | Path, turn_id: str, tell: Callable[[str], None] = lambda line: None
) -> TakenTurn:
    """Have a dispatched turn taken, and wait until that is over.

    A program that comes to nothing is noted in the state; then the turn can be dispatched again.

    Args:
        root: the run's folder.
        turn_id: the turn.
        tell: is told what people should know while it lasts.

    Raises:
        Refused: the turn is not under way, or its runtime cannot be used here.
    """
    given = task(root, turn_id)
    kind = given.runtime.type
    if kind == "manual":
        return TakenTurn(given.staged.exists(), waits=True)
    if kind == "local_cli":
        came = _take_locally(given, tell)
    elif kind == "api_proxy":
        from acp_core.protocols.governed.conduct import services

        came = services.take_with_service(given)
    else:
        raise Refused(f'unsupported runtime type "{kind}"; supported: {", ".join(KINDS)}')
    with contextlib.suppress(OSError):  # what a card says more
        turns.note_program_end(given.root, turn_id, came.reason if came.staged else "")
    if not came.staged:
        since = given.turn.get("dispatched_at")
        note_failed_start(root, turn_id, came.reason, datetime.now(UTC), since)
    return came


def _take_locally(given: Task, tell: Callable[[str], None]) -> TakenTurn:
    from acp_core.protocols.governed.conduct import programs

    try:
        named = programs.preset_of(given.runtime)
    except (PresetError, SettingsError) as error:
        return TakenTurn(False, clean_line(str(error), 300))
    if named is None:
        return programs.take_with_program(given)
    return programs.take_with_preset(given, named, tell)


def described(runtime: Runtime, root: str | Path = ".") -> str:
    """What takes a turn, in a few words, its secrets hidden."""
    kind = runtime.type
    if kind == "local_cli":
        from acp_core.protocols.governed.conduct import programs as conduct_programs

        try:
            named = conduct_programs.preset_of(runtime)
        except (PresetError, SettingsError) as error:
            return f"nothing ({clean_line(str(error), 200)})"
        if named is not None:
            return conduct_programs.described_preset(named, runtime, os.fspath(root))
        from acp_core.files.secrets import mask_command
        from acp_core.protocols.governed.conduct.programs import words_of

        try:
            return f"“{clean_line(' '.join(mask_command(words_of(runtime))), 300)}”"
        except SpawnError as error:
            return f"nothing ({error})"
    if kind == "api_proxy":
        from acp_core.protocols.governed.conduct.services import ServiceError, address

        try:
            return f"{clean_line(runtime.model, 80)} at {clean_line(address(runtime), 200)}"
        except ServiceError as error:
            return f"nothing ({clean_line(str(error), 200)})"
    return f"a runtime of type {kind or 'manual'}"


def choose_budget(root: str | Path, chosen: Sequence[str]) -> None:
    """Set what the agents of a run may take.

    Raises:
        Refused: a budget is none.
        OSError: they cannot be written.
    """
    state = read_unlocked(root).state
    budgets.choose(os.path.abspath(root), text(state, "run_id", 200), chosen)


def take_in_background(root: str | Path, turn_id: str) -> None:
    """Have a dispatched turn taken by a process of its own, which outlives this one.

    Raises:
        Refused: it cannot be started.
    """
    try:
        background.start(TURN.module, (os.path.abspath(root), turn_id))
    except NotStarted as error:
        raise Refused(f"the turn's process cannot be started: {error}") from None
