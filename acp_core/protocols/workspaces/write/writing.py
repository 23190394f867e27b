"""What would be written, as data: shown by a preview, done by `carry_out`.

Every file is replaced whole. A plan that was carried out by half is made again from what then
stands there, and does the rest.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from acp_core.files import atomic
from acp_core.files.text import clean_line
from acp_core.model.action import Change
from acp_core.protocols.kit.wording import difference
from acp_core.protocols.workspaces.write import Refused


@dataclass(frozen=True, slots=True)
class Write:
    """One file or folder that is made, replaced or moved.

    Attributes:
        path: where.
        data: its content; None for a folder, and for a file that is moved here.
        before: what stands there now, b"" where nothing.
        source: the file that is moved here, None for all else.
    """

    path: Path
    data: bytes | None = None
    before: bytes = b""
    source: Path | None = None

    def change(self) -> Change:
        """The same for people."""
        path = clean_line(str(self.path), 2_000)
        if self.source is not None:
            return Change(path, "create", clean_line(f"moved from {self.source}", 2_000))
        if self.data is None:
            return Change(path, "create", "a folder")
        if not self.before:
            return Change(path, "create", difference(b"", self.data))
        return Change(path, "replace", difference(self.before, self.data))


@dataclass(frozen=True, slots=True)
class Step:
    """An act on a run's files: what it does in a sentence, and its writes in their order.

    ``warnings`` are to be heeded before it is done; ``notes`` merely tell something.
    """

    sentence: str
    writes: tuple[Write, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def encode(value: object) -> bytes:
    """JSON for people and machines; what cannot be UTF-8 is escaped."""
    try:
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
    except UnicodeEncodeError:
        return (json.dumps(value, indent=2) + "\n").encode()


def carry_out(writes: tuple[Write, ...]) -> None:
    """Do the writes, one after the other.

    Raises:
        Refused: something that is in the way was there already.
        OSError: that cannot be written; what stands before it is done.
    """
    for write in writes:
        if write.source is not None:
            write.path.parent.mkdir(parents=True, exist_ok=True)
            if os.path.lexists(write.path):
                raise Refused(f"{write.path} is there already")
            os.rename(write.source, write.path)
        elif write.data is None:
            write.path.mkdir(parents=True, exist_ok=True)
        elif write.data != write.before or not write.path.exists():
            write.path.parent.mkdir(parents=True, exist_ok=True)
            atomic.sweep(write.path)  # whoever holds the lock may: nobody else is at it
            atomic.replace(write.path, write.data)
