"""A document that changes together with an event: written before it, taken back if it fails.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
from typing import NamedTuple

from acp_core.files import atomic
from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.write import Refused

_APPEND = (
    os.O_WRONLY
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)


class Edit(NamedTuple):
    """What a document is and what it becomes; ``name`` is the document as people know it."""

    name: str
    path: str
    before: bytes
    after: bytes

    def apply(self) -> None:
        """Write it. Where text is only added, it is appended: other writers lose nothing.

        Raises:
            Refused: the file changed since it was read.
            OSError: it could not be written (what was written of it is removed again).
        """
        if self.after == self.before:
            return
        if content(self.name, self.path) != self.before:
            raise Refused(f"{self.name} changed in the meantime; try again")
        if not self.after.startswith(self.before):
            atomic.replace(self.path, self.after)
            return
        fd = os.open(self.path, _APPEND, 0o666)
        try:
            atomic.write_all(fd, self.after[len(self.before) :])
            atomic.sync_fd(fd)
        except OSError:
            self._cut_back(fd)
            raise
        finally:
            with contextlib.suppress(OSError):
                os.close(fd)

    def undo(self) -> None:
        """Take it back, unless somebody has changed the file in between."""
        with contextlib.suppress(OSError, Refused):
            if self.after == self.before or content(self.name, self.path) != self.after:
                return
            if self.after.startswith(self.before):
                fd = os.open(self.path, _APPEND)
                try:
                    os.ftruncate(fd, len(self.before))
                finally:
                    os.close(fd)
            else:
                atomic.replace(self.path, self.before)

    def _cut_back(self, fd: int) -> None:
        with contextlib.suppress(OSError, Refused):
            if self.after.startswith(content(self.name, self.path)):
                os.ftruncate(fd, len(self.before))


def content(name: str, path: str) -> bytes:
    """A document's bytes, b"" where it is missing.

    Raises:
        Refused: it cannot be read.
    """
    try:
        return read_bounded(path, schema.MAX_DOCUMENT)
    except Unreadable as error:
        if error.missing:
            return b""
        raise Refused(f"{name}: {error}") from None
