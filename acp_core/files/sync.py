"""Bringing contents and names to the disk. Standard library only."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

_NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF})


def sync_folder(folder: str) -> None:
    """Bring a folder's names to the disk, where the file system can do that.

    Raises:
        OSError: the disk reported an error.
    """
    fd = os.open(folder or ".", os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    try:
        sync_fd(fd)
    finally:
        os.close(fd)


def sync_fd(fd: int) -> None:
    """Bring an open file to the disk; file systems that know no sync are left in peace.

    Raises:
        OSError: the disk reported an error.
    """
    _call(os.fsync, fd)


def sync_data(fd: int) -> None:
    """As `sync_fd`, without what is not needed to read the content again (the times of the file).

    Raises:
        OSError: the disk reported an error.
    """
    _call(os.fdatasync if hasattr(os, "fdatasync") else os.fsync, fd)


def _call(sync: Callable[[int], None], fd: int) -> None:
    try:
        sync(fd)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
