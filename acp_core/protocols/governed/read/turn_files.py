"""The files of a turn: its dispatch bundle, and the notes about the program that takes it.

The bundle is compared with its manifest: what is missing, what is more, what differs. Source:
governed protocol specification, "Files" (dispatch bundle); the manifest's shape is the existing
program's. What concerns the program stands in the person's state folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import codec
from acp_core.agents.processes import ATTEMPT, Identity, bearer
from acp_core.files import claims
from acp_core.files.atomic import is_leftover
from acp_core.files.claims import Seen, of_turn
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.text import clean_line
from acp_core.person.paths import state_folder
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import Loaded, text

MANIFEST = "MANIFEST.json"
MARK = "bundle_manifest"
"""What a turn that acp gave out holds in the state: the digest of its bundle's manifest."""
MISSING, MORE, CHANGED, OUTSIDE = "missing", "more", "changed", "outside"

_ADDED = (
    "API_REQUEST.json", "CONTEXT.effective.md", "COORDINATOR_CONTEXT.json",
    "COORDINATOR_CONTEXT.md", "TOKEN_BUDGET.json", "stdout.log",
)  # fmt: skip
"""What the existing program adds to a bundle after its manifest."""
_LARGEST = 8 << 20
_MOST = 50  # files that are compared


class Difference(NamedTuple):
    """One file of a bundle that is not as the manifest says.

    ``name`` is relative to the bundle; ``what`` is `MISSING`, `MORE`, `CHANGED`, `OUTSIDE` (of the
    bundle), or why it cannot be read; ``passing``: for a reason that says nothing of the file.
    """

    name: str
    what: str
    passing: bool = False

    def sentence(self, home: str) -> str:
        """The difference in words; ``home`` is the bundle's folder."""
        path = f"{home}/{self.name}"
        match self.what:
            case "missing":
                return f"{path} is missing"
            case "more":
                return f"{path} was added since the turn was dispatched"
            case "changed":
                return f"{path} was changed since the turn was dispatched"
            case "outside":
                return f"the manifest names “{self.name}”, which leads out of the bundle"
        return f"{path}: {self.what}"


def bundle_folder(turn_id: str) -> str:
    """Where the bundle of a turn lies, relative to the repository."""
    return f".agentxchain/dispatch/turns/{turn_id}"


def read_manifest(root: Path, turn_id: str) -> Loaded:
    """The manifest of a turn's bundle; missing where there is none."""
    path = schema.inside(root, f"{bundle_folder(turn_id)}/{MANIFEST}")
    return schema.read_object(path) if path else Loaded({}, "leads out of the repository")


def bundle_differences(root: Path, turn_id: str, mark: object) -> list[Difference]:
    """Every file of a turn's bundle that is not as it was written; never raises.

    Args:
        root: the repository.
        turn_id: the turn.
        mark: the `MARK` that its state holds; where it has none, another program gave the turn out,
            which may write no manifest.
    """
    home, manifest = schema.inside(root, bundle_folder(turn_id)), read_manifest(root, turn_id)
    if home is None or (manifest.missing and not mark):
        return []
    if manifest.reason:
        what = MISSING if manifest.missing else manifest.reason
        return [Difference(MANIFEST, what, manifest.passing)]
    own = _compared(home, MANIFEST, mark) if mark else None
    named = schema.items(manifest.value, "files")[:_MOST]
    known = {text(each, "path", 300) for each in named}
    compared = (_compared(home, text(each, "path", 300), each.get("sha256")) for each in named)
    more = (Difference(name, MORE) for name in sorted(set(_names(home)) - known))
    return [each for each in (own, *compared, *more) if each is not None]


def _compared(home: Path, name: str, digest: object) -> Difference | None:
    path = schema.inside(home, name)
    if path is None:
        return Difference(name, OUTSIDE)
    try:
        found = hashlib.sha256(read_bounded(path, _LARGEST)).hexdigest()
    except Unreadable as error:
        return Difference(name, MISSING if error.missing else error.reason, error.passing)
    return None if found == digest else Difference(name, CHANGED)


def _names(home: Path) -> Iterator[str]:
    """The files and folders of a bundle, but what the programs add themselves."""
    try:
        found = sorted(os.listdir(home))[: 2 * _MOST]
    except OSError:
        return
    for name in found:
        if name not in (MANIFEST, *_ADDED) and not is_leftover(name):
            yield clean_line(name, 300)


# --- the program that takes the turn


def program_folder(root: Path, turn_id: str) -> Path:
    """The folder for what concerns a turn's program. It need not exist."""
    name = os.fsencode(os.path.realpath(root)) + b"\0" + turn_id.encode(errors="surrogatepass")
    return state_folder() / "governed" / hashlib.sha256(name).hexdigest()[:24]


def program_logs(root: Path, turn_id: str) -> tuple[Path, ...]:
    """Where what the turn's program prints is kept; they need not exist."""
    folder = program_folder(root, turn_id)
    return folder / "stderr.log", folder / "stdout.log"


def read_program_note(root: Path, turn_id: str) -> Identity | None:
    """The process that takes the turn, None where none is noted."""
    try:
        identity = codec.read(Identity, program_folder(root, turn_id) / "process.json")
    except codec.CodecError:
        return None
    return identity if identity.pid > 0 else None


def how_it_ended(root: Path, turn_id: str) -> str:
    """How the program ended that staged the turn's result, where that was not well; one line."""
    try:
        said = (program_folder(root, turn_id) / "ended").read_text(
            encoding="utf-8", errors="replace"
        )
    except OSError:
        return ""
    return clean_line(said, 300)


def is_program_running(root: Path, turn_id: str) -> bool:
    """Whether the turn's program is running now, whoever started it."""
    return program_state(root, turn_id) is ProgramState.RUNS


class ProgramState(Enum):
    """What is seen of the program that takes a turn."""

    NONE = "none was noted"
    RUNS = "it runs"
    LOST = "it took the turn, and is gone"


def program_state(root: Path, turn_id: str) -> ProgramState:
    """What is seen of the turn's program now, whoever started it."""
    identity = read_program_note(root, turn_id)
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
    return bearer(ATTEMPT, os.fspath(program_folder(root, turn_id)))


def runs_elsewhere(root: Path, turn_id: str) -> Seen | None:
    """The program that runs and that this account's own folder does not know, None where none."""
    found = claims.seen(root, of_turn(turn_id))
    return found if found.child is not None else None
