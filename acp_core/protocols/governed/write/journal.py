"""A run's or an initiative's files written as one (see `files.transaction`).

Writers hold a lock on the folder of the run (``.agentxchain``) or of the coordinator
(``.coordinator``), and of runs the existing program's too; with every writing the run is sealed.

Source: governed protocol specification, "State coherence after resync". Standard library only.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from acp_core.files import transaction
from acp_core.files.locked import TIMEOUT
from acp_core.files.transaction import Failed as Failed
from acp_core.files.transaction import Hooks, Transaction
from acp_core.files.transaction import Interrupted as Interrupted
from acp_core.files.transaction import Recovered as Recovered
from acp_core.model.errors import Refused
from acp_core.protocols.governed.read import existing_program, own_writes
from acp_core.protocols.governed.read.own_writes import (
    COORDINATOR_HOME,
    RUN_HOME,
    coordinators_above,
    interrupted,
)

_TRIES = 20


@contextlib.contextmanager
def held(
    root: Path, home: str = RUN_HOME, others: Sequence[str] = (), *, timeout: float = TIMEOUT
) -> Iterator[Transaction]:
    """Hold the lock of a run or of an initiative, with everything finished that was interrupted.

    Args:
        root: the run's folder, or the initiative's.
        home: `RUN` or `COORDINATOR`; the folder is made where it is missing.
        others: further folders below ``root`` to lock, those of an initiative's runs.
        timeout: seconds to wait for another process.

    Raises:
        Refused: it is held by another process, or what was interrupted cannot be finished.
    """
    for _ in range(_TRIES):
        if home == RUN_HOME:
            _finish_above(root, timeout)
        with transaction.lock(root, home, others, hooks=_HOOKS, timeout=timeout) as opened:
            if home == RUN_HOME and any(
                interrupted(up, COORDINATOR_HOME) for up in coordinators_above(root)
            ):
                continue
            opened.recover()
            yield opened
            return
    raise Refused(f"{root} keeps being written by other processes; try again")


def line(value: dict[str, Any]) -> bytes:
    """An object as one line of a log."""
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def document(value: dict[str, Any]) -> bytes:
    """An object as a JSON file."""
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _finish_above(root: Path, timeout: float) -> None:
    for place in coordinators_above(root):
        if interrupted(place, COORDINATOR_HOME):
            with held(place, COORDINATOR_HOME, timeout=timeout):
                pass


def _lock(folder: Path) -> AbstractContextManager[None]:
    """The existing program's lock, where it has one."""
    return existing_program.lock_held(folder) if folder.name == RUN_HOME else nullcontext()


_HOOKS = Hooks(follow=own_writes.sealing, done=own_writes.keep_copy, lock=_lock)
