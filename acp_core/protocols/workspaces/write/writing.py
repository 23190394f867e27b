"""What an act on a run would write, as data: shown by a preview, done by `carry_out`.

Its files are written as one, see `files.transaction`. Folders are made before them; one that is
left over does no harm.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from acp_core.files import modes
from acp_core.files.transaction import MOVE, Transaction, Write
from acp_core.model.action import Change
from acp_core.model.text import clean_line
from acp_core.protocols.kit.wording import difference
from acp_core.protocols.workspaces.write.layout import read_bytes

_LONGEST = 2_000  # characters of a path that is shown


@dataclass(frozen=True, slots=True)
class Step:
    """An act on a run's files: what it does in a sentence, and its writes in their order.

    ``warnings`` are to be heeded before it is done; ``notes`` merely tell something; ``folders``
    are made where they are missing.
    """

    sentence: str
    writes: tuple[Write, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()

    def changes(self, besides: Path | None = None) -> tuple[Change, ...]:
        """What it would change, for people; ``besides`` is a file that is left out."""
        made = [Change(clean_line(str(each), _LONGEST), "create", "a folder")
                for each in self.folders]  # fmt: skip
        return (*made, *(_change(write) for write in self.writes if write.path != besides))


def carry_out(transaction: Transaction, step: Step) -> None:
    """Do a step.

    Raises:
        Refused: something is in the way, or a file cannot be written: all are as before.
        OSError: a folder cannot be made.
    """
    for folder in step.folders:
        modes.shared_folder(folder)
    transaction.commit(step.sentence.rstrip("."), step.writes)


def iso(at: datetime) -> str:
    """A time as it is written: UTC, fine enough to tell who was before whom."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode(value: object) -> bytes:
    """JSON for people and machines; what cannot be UTF-8 is escaped."""
    try:
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(value, indent=2) + "\n").encode()


def _change(write: Write) -> Change:
    path = clean_line(str(write.path), _LONGEST)
    if write.verb == MOVE:
        return Change(path, "create", clean_line(f"moved from {write.source}", _LONGEST))
    before = read_bytes(write.path)
    return Change(path, "replace" if before else "create", difference(before, write.data))
