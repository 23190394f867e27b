"""A shared folder in which only acp appends: log and protocol.json are read-only between its writes.

A script that appends by itself then fails before it writes anything, instead of getting an answer
before the store knows of the event. What the person chose stands in this account's configuration,
where no agent writes. Root is stopped by no mode. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator

PROTECTED = ("events.jsonl", "protocol.json")
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE, _ALL_WRITE, _OTHERS = 0o200, 0o222, 0o007


@contextlib.contextmanager
def writable(folder: str) -> Iterator[None]:
    """Let this process write them; afterwards they are read-only again."""
    _each(folder, lambda mode: mode | _WRITE)
    try:
        yield
    finally:
        protect(folder)


def protect(folder: str) -> None:
    """Make them read-only, for nobody but the owner and the group."""
    _each(folder, lambda mode: mode & ~(_ALL_WRITE | _OTHERS))


def release(folder: str) -> None:
    """Let their owner write them again."""
    _each(folder, lambda mode: mode | _WRITE)


def _each(folder: str, wanted: Callable[[int], int]) -> None:
    """Change modes; never those of what a link leads to, or of what is another account's."""
    for name in PROTECTED:
        try:
            fd = os.open(os.path.join(folder, name), _OPEN)
        except OSError:
            continue
        try:
            found = os.fstat(fd)
            mode = stat.S_IMODE(found.st_mode)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and wanted(mode) != mode:
                with contextlib.suppress(OSError):
                    os.fchmod(fd, wanted(mode))
        finally:
            os.close(fd)
