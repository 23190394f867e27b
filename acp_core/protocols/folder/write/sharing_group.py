"""Opening a collaboration's folder to a group of accounts on this machine. Standard library only.

Folders get the mode 2770 and files 0660, beside what others could do there before: what one account
makes, the others can change, whatever the umask of each is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from acp_core.files import run_folder
from acp_core.files.modes import group_name
from acp_core.model.text import clean_line
from acp_core.protocols.folder.write import Refused

_FOLDER, _FILE = 0o2070, 0o060
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST = 10_000  # files and folders


def open_to(folder: str, group: str) -> int:
    """Let the accounts of a group write in the folder; how many files and folders were changed.

    Raises:
        Refused: there is no such group, or this account cannot give the folder to it.
        OSError: a mode could not be changed.
    """
    number = group_number(group)
    run_folder.prepare(folder)
    changed = 0
    for count, path in enumerate(_all(os.path.realpath(folder)), 1):
        if count > _MOST:
            raise Refused(
                f"{folder} holds more than {_MOST} files and folders: --group is not for it"
            )
        changed += _give(path, number, group)
    return changed


def group_number(group: str) -> int:
    """The number of a group.

    Raises:
        Refused: there is none of that name.
    """
    try:
        import grp

        return grp.getgrnam(group).gr_gid
    except (ImportError, KeyError):
        raise Refused(f"no group named {clean_line(group, 100)} on this machine") from None


def _all(folder: str) -> Iterator[str]:
    """The folder and what is in it, links and folders of other programs left out."""
    yield folder
    for at, folders, names in os.walk(folder):
        below = os.path.relpath(at, folder)
        folders[:] = [
            each
            for each in folders
            if (not each.startswith(".") or (below == "." and each == run_folder.HOME))
            and not os.path.islink(os.path.join(at, each))
        ]
        for name in (*folders, *names):
            path = os.path.join(at, name)
            found = os.lstat(path)
            hidden = name.startswith(".") and below == "." and name != run_folder.HOME
            if not hidden and (stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)):
                yield path


def _give(path: str, number: int, group: str) -> int:
    """Give a file or a folder to the group; 1 where that changed it."""
    fd = os.open(path, _FLAGS)
    try:
        found = os.fstat(fd)
        if stat.S_ISREG(found.st_mode) and found.st_nlink > 1:
            return 0  # it is another file, too, which an agent may have given this name
        mode = stat.S_IMODE(found.st_mode)
        wanted = mode | (_FOLDER if stat.S_ISDIR(found.st_mode) else _FILE)
        if found.st_gid == number and mode == wanted:
            return 0
        try:
            if found.st_gid != number:
                os.fchown(fd, -1, number)
            os.fchmod(fd, wanted)
        except PermissionError:
            raise Refused(
                f"{path} cannot be given to {clean_line(group, 100)}: it belongs to another account, or this account is "
                f"not a member of the group (it is {group_name(found.st_gid)}'s now)"
            ) from None
        return 1
    finally:
        os.close(fd)
