"""The program that takes a turn: who it is, what it prints, whether it still runs.

What it prints is ours alone, and stands in the user's state folder. Which process it is stands
with the run, below ``.acp/run/turns``, so that no other account starts a second one beside it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from dataclasses import asdict
from enum import Enum
from pathlib import Path

from acp_core.agents import codec
from acp_core.agents.ending import end
from acp_core.agents.identity import ATTEMPT, Identity, bearer, identify
from acp_core.files import atomic, claims, modes
from acp_core.files.claims import ClaimError, Seen, of_turn
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder

GRACE = 5.0  # seconds between asking a program to end and making it, and then for it to be gone


def place(root: Path, turn_id: str) -> Path:
    """The folder for what concerns a turn's program. It need not exist."""
    name = os.fsencode(os.path.realpath(root)) + b"\0" + turn_id.encode(errors="surrogatepass")
    return state_folder() / "governed" / hashlib.sha256(name).hexdigest()[:24]


def logs(root: Path, turn_id: str) -> tuple[Path, ...]:
    """Where what the turn's program prints is kept; they need not exist."""
    folder = place(root, turn_id)
    return folder / "stderr.log", folder / "stdout.log"


def fresh_logs(root: Path, turn_id: str) -> tuple[Path, ...]:
    """The same, without what an earlier attempt printed: that is kept beside them.

    Raises:
        OSError: the state folder cannot be written.
    """
    found = logs(root, turn_id)
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
    folder = place(root, turn_id)
    modes.private_folder(folder)
    atomic.replace(folder / "process.json", json.dumps(record).encode(), sync=False, private=True)
    try:
        claims.note(root, of_turn(turn_id), identity.pid, about=turn_id)
    except ClaimError as error:
        raise OSError(errno.EPERM, str(error)) from None


def read_note(root: Path, turn_id: str) -> Identity | None:
    """The process that takes the turn, None where none is noted."""
    try:
        identity = codec.read(Identity, place(root, turn_id) / "process.json")
    except codec.CodecError:
        return None
    return identity if identity.pid > 0 else None


def note_end(root: Path, turn_id: str, how: str) -> None:
    """Write down how the program ended that staged the turn's result; "" for well.

    Raises:
        OSError: the state folder cannot be written.
    """
    path = place(root, turn_id) / "ended"
    if how:
        atomic.replace(path, how.encode(errors="replace"), sync=False, private=True)
    else:
        path.unlink(missing_ok=True)


def how_it_ended(root: Path, turn_id: str) -> str:
    """How the program ended that staged the turn's result, where that was not well; one line."""
    try:
        said = (place(root, turn_id) / "ended").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return clean_line(said, 300)


def forget(root: Path, turn_id: str) -> None:
    """Say that the turn's program has ended."""
    with contextlib.suppress(OSError, ClaimError):
        claims.note(root, of_turn(turn_id), None, about=turn_id)
    with contextlib.suppress(OSError):
        (place(root, turn_id) / "process.json").unlink()


def runs(root: Path, turn_id: str) -> bool:
    """Whether the turn's program is running now, whoever started it."""
    return program_state(root, turn_id) is ProgramState.RUNS


class ProgramState(Enum):
    """What is seen of the program that takes a turn."""

    NONE = "none was noted"
    RUNS = "it runs"
    LOST = "it took the turn, and is gone"


def program_state(root: Path, turn_id: str) -> ProgramState:
    """What is seen of the turn's program now, whoever started it."""
    identity = read_note(root, turn_id)
    if identity is not None and identity.alive():
        return ProgramState.RUNS
    seen = claims.seen(root, of_turn(turn_id))
    if seen.child is not None:
        return ProgramState.RUNS
    if identity is None and (seen.owner is None or seen.owner.child is None):
        return ProgramState.NONE
    return ProgramState.LOST if _unnoted(root, turn_id, seen) is None else ProgramState.RUNS


def _unnoted(root: Path, turn_id: str, seen: Seen) -> Identity | None:
    """The program of a taker that was killed before it noted which one that is."""
    owner = seen.owner
    if owner is None or not seen.mine or owner.child != owner.process:
        return None  # the program was noted: what runs and bears its mark is what it left behind
    return bearer(ATTEMPT, os.fspath(place(root, turn_id)))


def elsewhere(root: Path, turn_id: str) -> Seen | None:
    """The program that runs and that this account's own folder does not know, None where none."""
    found = claims.seen(root, of_turn(turn_id))
    return found if found.child is not None else None


def stop(root: Path, turn_id: str, *, grace: float = GRACE) -> bool:
    """End the turn's program with everything that it started; returns whether it ran.

    Raises:
        OSError: it may not be ended, or does not end.
    """
    identity = read_note(root, turn_id)
    if identity is None or not identity.alive():
        seen = claims.seen(root, of_turn(turn_id))
        known = _stoppable(seen) if seen.child is not None else None
        identity = known or _unnoted(root, turn_id, seen)
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
