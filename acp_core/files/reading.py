"""Files that others write too, read safely: regular files only, bounded, never waiting.

Standard library only.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from acp_core.model.errors import Unusable
from acp_core.model.light import NamedTuple

_LEAST = 1 << 16  # bytes
_OF_THE_FILE = (
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG, errno.EACCES,
    errno.EPERM, errno.ENXIO, errno.ENODEV,
)  # fmt: skip


def clause(reason: str) -> str:
    """A reason as it stands after a colon: ``is no JSON`` becomes ``it is no JSON``."""
    return f"it {reason}" if reason.startswith("is ") else reason


class Unreadable(Unusable, OSError):
    """A file that cannot be read; ``reason`` says why in plain words, ``str()`` too."""

    def __init__(self, reason: str, number: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.errno = number

    @property
    def clause(self) -> str:
        """The reason as it stands after a colon: ``it is a pipe`` for ``is a pipe``."""
        return clause(self.reason)

    @property
    def missing(self) -> bool:
        """Whether nothing is there at all (a link that leads nowhere counts as nothing)."""
        return self.errno in (errno.ENOENT, errno.ENOTDIR)

    @property
    def passing(self) -> bool:
        """Whether it says nothing of the file: the disk or the system failed at this moment."""
        return self.errno is not None and self.errno not in _OF_THE_FILE


JUST_NOW = 0.05  # seconds: within them, a file system's clock may not tell two writes apart


def just_changed(modified: float) -> bool:
    """Whether a file changed so short before this moment that it may change again unnoticed.

    What is read of it now must be read again at the next look, though its stamp stays the same.

    Args:
        modified: when it changed, in seconds since 1970.
    """
    return time.time() - modified < JUST_NOW


class Stamp(NamedTuple):
    """What tells two states of a file apart without reading it (times in nanoseconds)."""

    modified: int
    changed: int
    size: int
    inode: int
    device: int


def stamp(path: str | os.PathLike[str]) -> Stamp | None:
    """The stamp of the file that ``path`` leads to, or None where none can be had."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL in the path
        return None
    return stamp_of(found)


def stamp_of(found: os.stat_result) -> Stamp:
    """The stamp in the result of a stat call."""
    return Stamp(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev)


def open_regular(path: str | os.PathLike[str]) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; returns its descriptor, to be closed, and its stat.

    Never waits: a pipe, a device, a socket or a folder is refused before it is opened, and
    again afterwards, in case that it took the file's place.

    Raises:
        Unreadable: it is missing, no regular file, or may not be read.
    """
    try:
        _require_regular(os.stat(path))
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise _unreadable(error) from None
    except ValueError:
        raise Unreadable("its name contains a NUL character", errno.ENOENT) from None
    try:
        found = os.fstat(descriptor)
        _require_regular(found)
    except OSError as error:
        os.close(descriptor)
        raise _unreadable(error) from None
    return descriptor, found


def read_bounded(path: str | os.PathLike[str], limit: int) -> bytes:
    """The whole content of a regular file of at most ``limit`` bytes.

    Raises:
        Unreadable: it is missing, no regular file, may not be read, or is larger.
    """
    descriptor, found = open_regular(path)
    try:
        if found.st_size > limit:
            raise Unreadable(f"larger than {limit} bytes", errno.EFBIG)
        parts = []
        left = limit + 1  # the file may have grown since
        most = max(found.st_size + 1, _LEAST)  # at one go: to join parts takes as much room again
        while left and (part := os.read(descriptor, min(left, most))):
            parts.append(part)
            left -= len(part)
    except OSError as error:
        raise _unreadable(error) from None
    finally:
        os.close(descriptor)
    if not left:
        raise Unreadable(f"larger than {limit} bytes", errno.EFBIG)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def read_head(path: str | os.PathLike[str], limit: int) -> bytes:
    """How a regular file begins: at most ``limit`` bytes.

    Raises:
        Unreadable: it is missing, no regular file, or may not be read.
    """
    descriptor, _ = open_regular(path)
    try:
        return os.read(descriptor, limit)
    except OSError as error:
        raise _unreadable(error) from None
    finally:
        os.close(descriptor)


def _require_regular(found: os.stat_result) -> None:
    if stat.S_ISREG(found.st_mode):
        return
    kind = next((name for test, name in _KINDS if test(found.st_mode)), "not a regular file")
    raise Unreadable(f"is {kind}, not a regular file", errno.EINVAL)


_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _unreadable(error: OSError) -> Unreadable:
    if isinstance(error, Unreadable):
        return error
    return Unreadable((error.strerror or str(error)).lower(), error.errno)
