"""One file of a collaboration, read again only when it may have changed.

Standard library only.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable

from acp_core.files import markdown
from acp_core.files.reading import Stamp, Unreadable, just_changed, read_bounded, stamp
from acp_core.files.unseen import NOTHING, unseen_lines
from acp_core.model.light import Generic, TypeVar
from acp_core.protocols.folder import schema

T = TypeVar("T")

MISSING = "missing"


class File(Generic[T]):
    """One file of the folder, and what a scan made of its text.

    Attributes:
        name: how findings and documents call it.
        path: where it lies; None for a deliverable whose place is not allowed.
        problem: "" where it was read, `MISSING`, or why it cannot be read.
        outside: whether it is a symbolic link that leads out of the folder.
        scan: what the scan gave, None where it was not read.
        stamp: of the state that was read.
        version: changes whenever the content may have changed.
        digest: SHA-256 of the content in hex, where asked for.
        unseen: what of its text people cannot see.
    """

    def __init__(
        self,
        name: str,
        path: str | None,
        root: str,
        scan: Callable[[str], T] | None = None,
        *,
        digest: bool = False,
    ) -> None:
        self.name = name
        self.path = path
        self.problem = MISSING
        self.outside = False
        self.scan: T | None = None
        self.stamp: Stamp | None = None
        self.version = ""
        self.digest = ""
        self.unseen = NOTHING
        self._root = root
        self._scan = scan
        self._wants_digest = digest
        self._looked = False
        self._again = False

    @property
    def modified(self) -> float | None:
        """When the file last changed, in seconds since 1970."""
        return self.stamp.modified / 1e9 if self.stamp else None

    @property
    def missing(self) -> bool:
        """Whether there is no such file."""
        return self.problem == MISSING

    def refresh(self) -> bool:
        """Read it if it may have changed; returns whether it did."""
        found = stamp(self.path) if self.path is not None else None
        if self._looked and found == self.stamp and not self._again:
            return False
        before = (self.version, self.problem)
        self._looked, self.stamp = True, found
        self._read()
        return before != (self.version, self.problem)

    def _read(self) -> None:
        self.scan, self.digest, self.unseen, self._again = None, "", NOTHING, False
        if self.path is None:
            self.problem = "its path points outside the folder of the deliverables"
            return
        self.outside = _leads_out(self.path, self._root)
        found = self.stamp
        self.version = f"{found.modified:x}.{found.size:x}.{found.inode:x}" if found else ""
        if self._scan is None:
            self.problem = "" if found else MISSING
            return
        try:
            data = read_bounded(self.path, schema.MAX_DOCUMENT)
        except Unreadable as error:
            self.problem = MISSING if error.missing else error.reason
            return
        self._again = found is not None and just_changed(found.modified / 1e9)
        self.version += f".{zlib.crc32(data):x}"
        self.suppose(data)

    def suppose(self, data: bytes) -> None:
        """Take ``data`` for the content, whether or not it stands in the file (yet)."""
        self.problem = ""
        self.unseen = unseen_lines(data)
        try:
            text = markdown.normalise(data.decode())
        except UnicodeDecodeError as error:
            self.problem = f"not UTF-8 at byte {error.start + 1}"
            return
        self.scan = self._scan(text) if self._scan else None
        if self._wants_digest:
            from hashlib import sha256

            self.digest = sha256(data).hexdigest()


def _leads_out(path: str, root: str) -> bool:
    if not os.path.islink(path):
        return False
    within = os.path.realpath(root) if root else ""
    return not os.path.realpath(path).startswith(os.path.join(within, ""))
