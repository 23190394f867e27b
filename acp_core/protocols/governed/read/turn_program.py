from __future__ import annotations

import hashlib
import os
from enum import Enum
from pathlib import Path

from acp_core.agents import codec
from acp_core.agents.identity import ATTEMPT, Identity, bearer
from acp_core.files import claims
from acp_core.files.claims import Seen, of_turn
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder


def place(root: Path, turn_id: str) -> Path:
    """The folder for what concerns a turn's program. It need not exist."""
    name = os.fsencode(os.path.realpath(root)) + b"\0" + turn_id.encode(errors="surrogatepass")
    return state_folder() / "governed" / hashlib.sha256(name).hexdigest()[:24]


def logs(root: Path, turn_id: str) -> tuple[Path, ...]:
    """Where what the turn's program prints is kept; they need not exist."""
    folder = place(root, turn_id)
    return folder / "stderr.log", folder / "stdout.log"


def read_note(root: Path, turn_id: str) -> Identity | None:
    """The process that takes the turn, None where none is noted."""
    try:
        identity = codec.read(Identity, place(root, turn_id) / "process.json")
    except codec.CodecError:
        return None
    return identity if identity.pid > 0 else None


def how_it_ended(root: Path, turn_id: str) -> str:
    """How the program ended that staged the turn's result, where that was not well; one line."""
    try:
        said = (place(root, turn_id) / "ended").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return clean_line(said, 300)


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
    return (
        ProgramState.LOST if unrecorded_program(root, turn_id, seen) is None else ProgramState.RUNS
    )


def unrecorded_program(root: Path, turn_id: str, seen: Seen) -> Identity | None:
    """The program of a taker that was killed before it noted which one that is."""
    owner = seen.owner
    if owner is None or not seen.mine or owner.child != owner.process:
        return None  # the program was noted: what runs and bears its mark is what it left behind
    return bearer(ATTEMPT, os.fspath(place(root, turn_id)))


def elsewhere(root: Path, turn_id: str) -> Seen | None:
    """The program that runs and that this account's own folder does not know, None where none."""
    found = claims.seen(root, of_turn(turn_id))
    return found if found.child is not None else None
