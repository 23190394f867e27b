"""Writing files: replaced and created whole or not at all, brought to the disk, with mode and group.

The new content is written to a file beside the target whose name says what it is
(``.NAME.<16 hex digits>.acp-tmp``), brought to the disk, and put in place in one step.
What a crash leaves behind is therefore the old file or the new one, and perhaps such a
file, which `sweep` removes and which everybody else ignores.

A folder is shared where its group may write into it and what is made there belongs to that group
(setgid). The umask of one account must not keep the others out of it, so modes are set. What is one
person's own (state, logs, prompts) can be entered and read by that person only. Standard library
only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable

from acp_core.files.reading import Unreadable as Unreadable  # reading and replacing go
from acp_core.files.reading import read_bounded as read_bounded  # together for most callers

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
            said = settle(fd, target, private=private)
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
                open_to_group(fd, os.path.dirname(target) or ".")
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


_OF_GROUP = 0o070


def is_shared(found: os.stat_result) -> bool:
    """Whether a folder is one that several accounts share."""
    wanted = stat.S_ISGID | stat.S_IWGRP
    return stat.S_ISDIR(found.st_mode) and found.st_mode & wanted == wanted


def private_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder that only its owner can enter, with what is missing above it.

    Raises:
        OSError: that is not possible.
    """
    _make(os.path.abspath(folder), lambda made: os.mkdir(made, 0o700))
    with contextlib.suppress(OSError):  # another account's, or a file system without modes
        if stat.S_IMODE(os.stat(folder).st_mode) & 0o077:
            os.chmod(folder, 0o700)


def private_opener(path: str, flags: int) -> int:
    """An opener for `open`: a file that is made is its owner's alone."""
    return os.open(path, flags, 0o600)


def shared_folder(folder: str | os.PathLike[str]) -> None:
    """Make a folder, with what is missing above it, for all who share the folder that it is in.

    Raises:
        OSError: that is not possible.
    """
    _make(os.path.abspath(folder), _share)


def umask_in(folder: str | os.PathLike[str]) -> int:
    """The umask for a program that works in a folder; -1 for the one that it would have anyway.

    What it makes in a shared folder can be changed by the others who share that.
    """
    try:
        if not is_shared(os.stat(folder)):
            return -1
        with open("/proc/self/status", encoding="utf-8") as file:
            said = next(line for line in file if line.startswith("Umask:"))
        return int(said.split()[1], 8) & ~_OF_GROUP
    except (OSError, ValueError, StopIteration, IndexError):
        return -1


def settle(fd: int, target: str, *, private: bool = False) -> str:
    """Give a new file, open as ``fd``, the mode and the group that it has at ``target``.

    Args:
        fd: the file that is put at ``target``, in place of what may stand there.
        target: its path.
        private: only its owner may read it.

    Returns:
        "", or a sentence where the file does not keep its group.
    """
    if not hasattr(os, "fchmod"):
        return ""
    if private:
        with contextlib.suppress(OSError):
            os.fchmod(fd, 0o600)
        return ""
    try:
        before = os.lstat(target)
    except OSError:
        before = None
    if before is None or not stat.S_ISREG(before.st_mode):
        open_to_group(fd, os.path.dirname(target) or ".")
        return ""
    return _keep(fd, target, before)


def open_to_group(fd: int, folder: str) -> None:
    """Let all who share the folder of a new file change it too, whatever the umask is."""
    with contextlib.suppress(OSError):
        above = os.stat(folder)
        if is_shared(above):
            mode = stat.S_IMODE(os.fstat(fd).st_mode) | (_OF_GROUP & 0o666)
            os.fchmod(fd, mode if above.st_mode & 0o007 else mode & ~0o007)


def _make(folder: str, make: Callable[[str], None]) -> None:
    above = os.path.dirname(folder)
    if above != folder and not os.path.lexists(above):
        _make(above, make)
    try:
        make(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise
    else:
        sync_folder(above)  # else what is synced in it may be gone after a loss of power


def _share(folder: str) -> None:
    os.mkdir(folder)
    with contextlib.suppress(OSError):
        above, made = os.stat(os.path.dirname(folder)), os.stat(folder)
        if is_shared(above):
            os.chown(folder, -1, above.st_gid)
            os.chmod(folder, stat.S_IMODE(made.st_mode) | stat.S_ISGID | _OF_GROUP)


def _keep(fd: int, target: str, before: os.stat_result) -> str:
    """The group and the mode of the file that is replaced."""
    mode, said = stat.S_IMODE(before.st_mode), ""
    try:
        if os.fstat(fd).st_gid != before.st_gid:
            os.fchown(fd, -1, before.st_gid)
    except OSError:
        mode = mode & ~_OF_GROUP | (mode & 0o007) << 3  # no other group gets what was that one's
        said = (
            f"{os.path.basename(target)} no longer belongs to its group ({group_name(before.st_gid)}): "
            "this account is not a member of the group"
        )
    with contextlib.suppress(OSError):  # a file system without permissions
        os.fchmod(fd, mode)
    return said


def group_name(number: int) -> str:
    """The name of a group; its number where it has none."""
    try:
        import grp  # late: it is seldom needed, and missing elsewhere

        return grp.getgrgid(number).gr_name
    except (ImportError, KeyError):
        return str(number)
