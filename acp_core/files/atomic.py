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

from acp_core.files import modes
from acp_core.files.reading import Unreadable as Unreadable  # reading and replacing go
from acp_core.files.reading import read_bounded as read_bounded  # together for most callers
from acp_core.files.sync import sync_fd as sync_fd
from acp_core.files.sync import sync_folder as sync_folder

_LEFTOVER = r"\.(.+)\.[0-9a-f]{16}\.acp-tmp"  # compiled where it is needed: seldom
_ENDING = ".acp-tmp"
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK})
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)


def is_leftover(name: str) -> bool:
    """Whether a file of this name is one of our unfinished ones."""
    return name.endswith(_ENDING) and re.fullmatch(_LEFTOVER, name, re.DOTALL) is not None


def replace(
    path: str | os.PathLike[str], data: bytes, *, sync: bool = True, private: bool = False
) -> str:
    """Put ``data`` in place of the file ``path``, which need not exist, in one step.

    An existing file's permissions and group are kept. With ``sync`` the content and the name are
    brought to the disk before this returns. A symbolic link is replaced, not followed.

    Args:
        path: the file.
        data: what it holds then.
        sync: whether a loss of power must not undo it.
        private: whether only its owner may read it.

    Returns:
        "", or a sentence that says so where the file's group could not be kept.

    Raises:
        OSError: the old file, if any, still stands as it was (unless only the last sync,
            that of the folder, failed: then the new one does).
    """
    target = os.fspath(path)
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.lstat(target).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), target)
    temporary, said = _write_temporary(target, data, sync, private)
    try:
        os.replace(temporary, target)
    except BaseException:
        _remove(temporary)
        raise
    if sync:
        sync_folder(os.path.dirname(target))
    return said


def create(
    path: str | os.PathLike[str], data: bytes, *, sync: bool = True, private: bool = False
) -> None:
    """Make the file ``path`` with ``data``; it appears whole, and never in place of another.

    ``sync`` and ``private`` are as in `replace`.

    Raises:
        FileExistsError: something of that name exists already (it is left alone).
        OSError: the file was not made (unless only the last sync failed).
    """
    target = os.fspath(path)
    temporary, _ = _write_temporary(target, data, sync, private)
    try:
        try:
            os.link(temporary, target)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            _create_here(target, data, sync, private)
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
        match = re.fullmatch(_LEFTOVER, other, re.DOTALL) if other.endswith(_ENDING) else None
        if match and match.group(1) == name and _remove(os.path.join(folder, other)):
            removed += 1
    return removed


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``, however many calls it takes.

    Raises:
        OSError: with part of it written, perhaps.
    """
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _write_temporary(target: str, data: bytes, sync: bool, private: bool) -> tuple[str, str]:
    """Write a file beside the target; its path, and what is to be said of its group."""
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name}.{os.urandom(8).hex()}.acp-tmp")
    fd = os.open(temporary, _FLAGS, 0o600 if private else 0o666)
    try:
        try:
            said = modes.settle(fd, target, private=private)
            write_all(fd, data)
            if sync:
                sync_fd(fd)
        finally:
            os.close(fd)
    except BaseException:
        _remove(temporary)
        raise
    return temporary, said


def _create_here(target: str, data: bytes, sync: bool, private: bool) -> None:
    """For file systems without hard links: a crash may leave the file half written."""
    fd = os.open(target, _FLAGS, 0o600 if private else 0o666)
    try:
        try:
            if not private:
                modes.open_to_group(fd, os.path.dirname(target) or ".")
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
