"""Replacing and creating files whole, or not at all.

The new content is written to a file beside the target whose name says what it is
(``.NAME.<16 hex digits>.acp-tmp``), brought to the disk, and put in place in one step.
What a crash leaves behind is therefore the old file or the new one, and perhaps such a
file, which `sweep` removes and which everybody else ignores. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat

from acp_core.files.reading import Unreadable as Unreadable  # reading and replacing go
from acp_core.files.reading import read_bounded as read_bounded  # together for most callers

_LEFTOVER = re.compile(r"\.(.+)\.[0-9a-f]{16}\.acp-tmp", re.DOTALL)
_NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF})
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def is_leftover(name: str) -> bool:
    """Whether a file of this name is one of our unfinished ones."""
    return _LEFTOVER.fullmatch(name) is not None


def replace(path: str | os.PathLike[str], data: bytes, *, sync: bool = True) -> None:
    """Put ``data`` in place of the file ``path``, which need not exist, in one step.

    An existing file's permissions are kept. With ``sync`` the content and the name are
    brought to the disk before this returns. A symbolic link is replaced, not followed.

    Raises:
        OSError: the old file, if any, still stands as it was (unless only the last sync,
            that of the folder, failed: then the new one does).
    """
    target = os.fspath(path)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(target).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    temporary = _write_temporary(target, data, sync)
    try:
        os.replace(temporary, target)
    except BaseException:
        _remove(temporary)
        raise
    if sync:
        sync_folder(os.path.dirname(target))


def create(path: str | os.PathLike[str], data: bytes, *, sync: bool = True) -> None:
    """Make the file ``path`` with ``data``; it appears whole, and never in place of another.

    Raises:
        FileExistsError: something of that name exists already (it is left alone).
        OSError: the file was not made (unless only the last sync failed).
    """
    target = os.fspath(path)
    temporary = _write_temporary(target, data, sync)
    try:
        try:
            os.link(temporary, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _create_here(target, data, sync)
    finally:
        _remove(temporary)
    if sync:
        sync_folder(os.path.dirname(target))


def sweep(path: str | os.PathLike[str]) -> int:
    """Remove what crashed calls for ``path`` left beside it; returns how many files.

    Only for callers that hold the lock under which ``path`` is written: another writer's
    unfinished file looks the same.
    """
    folder, name = os.path.split(os.fspath(path))
    removed = 0
    try:
        names = os.listdir(folder or ".")
    except OSError:
        return 0
    for other in names:
        match = _LEFTOVER.fullmatch(other)
        if match and match.group(1) == name and _remove(os.path.join(folder, other)):
            removed += 1
    return removed


def make_folder(path: str | os.PathLike[str], mode: int = 0o777) -> None:
    """Make a folder, and those above it, where they are missing; their names are on the disk then.

    Without that a file that was synced in a new folder may be gone after a loss of power.

    Args:
        path: the folder.
        mode: permissions of that folder, where it is made; those above it have the usual ones.

    Raises:
        OSError: it cannot be made; FileExistsError where something else stands there.
    """
    missing = []
    folder = os.fspath(path)
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder.rstrip("/"))
    for each in reversed(missing):
        try:
            os.mkdir(each, mode if each == missing[0] else 0o777)
        except FileExistsError:
            if not os.path.isdir(each):
                raise
        sync_folder(os.path.dirname(each.rstrip("/")))


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
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``, however many calls it takes.

    Raises:
        OSError: with part of it written, perhaps.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _write_temporary(target: str, data: bytes, sync: bool) -> str:
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.acp-tmp")
    fd = os.open(temporary, _FLAGS, 0o666)
    try:
        try:
            _keep_permissions(target, fd)
            write_all(fd, data)
            if sync:
                sync_fd(fd)
        finally:
            os.close(fd)
    except BaseException:
        _remove(temporary)
        raise
    return temporary


def _keep_permissions(target: str, fd: int) -> None:
    try:
        mode = os.lstat(target).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISREG(mode) and hasattr(os, "fchmod"):
        with contextlib.suppress(OSError):  # a file system without permissions
            os.fchmod(fd, stat.S_IMODE(mode))


def _create_here(target: str, data: bytes, sync: bool) -> None:
    """For file systems without hard links: a crash may leave the file half written."""
    fd = os.open(target, _FLAGS, 0o666)
    try:
        try:
            write_all(fd, data)
            if sync:
                sync_fd(fd)
        finally:
            os.close(fd)
    except BaseException:
        _remove(target)
        raise


def _remove(path: str) -> bool:
    try:
        os.unlink(path)
    except OSError:
        return False
    return True
