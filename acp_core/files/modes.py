"""Modes and groups of what acp makes: for one person alone, or for the accounts that share a folder.

A folder is shared where its group may write into it and what is made there belongs to that group
(setgid). The umask of one account must not keep the others out of it, so modes are set. What is
one person's own (state, logs, prompts) can be entered and read by that person only. Standard
library only.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable

from acp_core.files.sync import sync_folder

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
