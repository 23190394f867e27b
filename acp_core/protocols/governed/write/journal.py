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
from acp_core.protocols.governed.read import foreign_lock, seals
from acp_core.protocols.governed.read.unfinished_write import COORDINATOR, RUN, above, interrupted

_TRIES = 20


@contextlib.contextmanager
def held(
    root: Path, home: str = RUN, others: Sequence[str] = (), *, timeout: float = TIMEOUT
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
        if home == RUN:
            _finish_above(root, timeout)
        with transaction.lock(root, home, others, hooks=_HOOKS, timeout=timeout) as opened:
            if home == RUN and any(interrupted(up, COORDINATOR) for up in above(root)):
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
    for place in above(root):
        if interrupted(place, COORDINATOR):
            with held(place, COORDINATOR, timeout=timeout):
                pass


def _lock(folder: Path) -> AbstractContextManager[None]:
    """The existing program's lock, where it has one."""
    return foreign_lock.held(folder) if folder.name == RUN else nullcontext()


_HOOKS = Hooks(follow=seals.sealing, done=seals.keep, lock=_lock)
