"""The program that takes a turn: who it is, what it prints, whether it still runs.

What it prints is ours alone, and stands in the user's state folder. Which process it is stands
with the run, below ``.acp/run/turns``, so that no other account starts a second one beside it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from dataclasses import asdict
from pathlib import Path

from acp_core.agents.ending import end
from acp_core.agents.identity import Identity, identify
from acp_core.files import atomic, claims, modes
from acp_core.files.claims import ClaimError, Seen, of_turn
from acp_core.protocols.governed.read.turn_files import (
    program_folder,
    program_logs,
    read_program_note,
    unrecorded_program,
)

GRACE = 5.0  # seconds between asking a program to end and making it, and then for it to be gone


def fresh_logs(root: Path, turn_id: str) -> tuple[Path, ...]:
    """The same, without what an earlier attempt printed: that is kept beside them.

    Raises:
        OSError: the state folder cannot be written.
    """
    found = program_logs(root, turn_id)
    for path in found:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path, path.with_suffix(".before.log"))
    return found


def note(root: Path, turn_id: str, identity: Identity) -> None:
    """Write down which process takes the turn.

    Raises:
        OSError: the state folder cannot be written.
    """
    record = asdict(identity) | {"root": os.fspath(root), "turn_id": turn_id}
    folder = program_folder(root, turn_id)
    modes.private_folder(folder)
    atomic.replace(folder / "process.json", json.dumps(record).encode(), sync=False, private=True)
    try:
        claims.note(root, of_turn(turn_id), identity.pid, about=turn_id)
    except ClaimError as error:
        raise OSError(errno.EPERM, str(error)) from None


def note_end(root: Path, turn_id: str, how: str) -> None:
    """Write down how the program ended that staged the turn's result; "" for well.

    Raises:
        OSError: the state folder cannot be written.
    """
    path = program_folder(root, turn_id) / "ended"
    if how:
        atomic.replace(path, how.encode(errors="replace"), sync=False, private=True)
    else:
        path.unlink(missing_ok=True)


def forget(root: Path, turn_id: str) -> None:
    """Say that the turn's program has ended."""
    with contextlib.suppress(OSError, ClaimError):
        claims.note(root, of_turn(turn_id), None, about=turn_id)
    with contextlib.suppress(OSError):
        (program_folder(root, turn_id) / "process.json").unlink()


def stop(root: Path, turn_id: str, *, grace: float = GRACE) -> bool:
    """End the turn's program with everything that it started; returns whether it ran.

    Raises:
        OSError: it may not be ended, or does not end.
    """
    identity = read_program_note(root, turn_id)
    if identity is None or not identity.alive():
        seen = claims.seen(root, of_turn(turn_id))
        known = _stoppable(seen) if seen.child is not None else None
        identity = known or unrecorded_program(root, turn_id, seen)
    if identity is None:
        return False
    if not end([identity], grace, groups=True, patience=grace):
        raise OSError(errno.EBUSY, "the program does not exit")
    return True


def _stoppable(found: Seen) -> Identity | None:
    """The program that a claim shows, None where there is none.

    Raises:
        OSError: it belongs to another account, which alone may end it.
    """
    if found.child is None or found.owner is None:
        return None
    if not found.mine:
        raise OSError(errno.EPERM, f"{found.owner.account} started it and has to stop it")
    return identify(found.child.pid)
