"""The folder ``.acp/run`` of a collaboration: who conducts it, who plays whom, what was asked.

``.acp/.gitignore`` is written before anything else, so that nothing of it shows in git. What lies
there informs others, and authorises nothing. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from acp_core.files import atomic, modes, mounts
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Unusable

HOME = ".acp"
IGNORED = b"*\n"
_LIMIT = 64 << 10  # bytes of an ignore file


class ClaimError(Unusable):
    """A claim cannot be taken, or is not held any more; the message says why."""


def run_folder(project: str | os.PathLike[str]) -> Path:
    """Where the claims of a folder lie; it need not exist."""
    return Path(os.path.realpath(project), HOME, "run")


def exists(project: str | os.PathLike[str]) -> bool:
    """Whether acp, or a claim, has left anything in a folder; asked of every collaboration."""
    return os.path.isdir(os.path.join(project, HOME))


def prepare(project: str | os.PathLike[str], *below: str) -> Path:
    """Make the folder and what is to be ``below`` it, ignored by git first; its path.

    Raises:
        ClaimError: locks mean nothing there, or a symbolic link stands in the way.
        OSError: they cannot be made.
    """
    root = Path(os.path.realpath(project))
    kind = mounts.kind(root, mounts.here())
    if kind in mounts.NO_LOCKS:
        raise ClaimError(
            f"{root} is on a file system without locks that all can see ({kind}): "
            "acp cannot coordinate who controls a run there"
        )
    path = run_folder(root).joinpath(*below)
    for folder in [*reversed([each for each in path.parents if root in each.parents]), path]:
        if folder.is_symlink():
            raise ClaimError(f"{folder} is a symbolic link: acp does not write through links")
        if not folder.is_dir():
            make_folder(folder)
        if folder.name == HOME and folder.parent == root:
            _ignore(folder)
    return path


def make_folder(folder: Path) -> None:
    """As shared as the folder that it is in: 2770, or for its owner alone.

    `HOME` itself can be read by whoever can read the folder: more than claims lies there.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        above = folder.parent.stat()
        mode = 0o2770 if modes.is_shared(above) else 0o700
        settle(folder, stat.S_IMODE(above.st_mode) & 0o2775 if folder.name == HOME else mode)
        atomic.sync_folder(str(folder.parent))


def settle(path: Path, mode: int) -> None:
    """Set what the umask must not decide. What root makes is given to the owner of the folder."""
    with contextlib.suppress(OSError):
        above = path.parent.stat()
        as_root = hasattr(os, "geteuid") and os.geteuid() == 0
        os.chown(path, above.st_uid if as_root else -1, above.st_gid)
    with contextlib.suppress(OSError):
        path.chmod(mode)


def _ignore(home: Path) -> None:
    """See to it that git ignores all that is in the folder, this file too."""
    path = home / ".gitignore"
    with contextlib.suppress(Unreadable):
        if b"*" in read_bounded(path, _LIMIT).split():
            return
    if path.is_symlink():
        raise ClaimError(f"{path} is a symbolic link: acp does not write through links")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    try:  # in place: a file beside it would show in git for a moment
        modes.open_to_group(fd, str(home))
        atomic.write_all(fd, IGNORED)
        atomic.sync_fd(fd)
    finally:
        os.close(fd)
    atomic.sync_folder(str(home))
