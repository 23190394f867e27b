"""Whether anything in a folder changed since it was looked at, without reading a file.

The stamp of a folder tells of every name that appeared or vanished in it, so that the stamps of
what was there once, folders included, tell of everything. Standard library only.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

MOST = 64  # files and folders; where there are more, reading what changed is no dearer
SETTLED = 3.0  # s: what changed later than this before a look may change again unnoticed
_SECOND = 1_000_000_000  # ns


class TreeState(NamedTuple):
    """A folder as it was found.

    Attributes:
        names: everything in and below it, as paths from it.
        digest: another one whenever anything may have changed.
        newest: when the last change was, in nanoseconds since 1970.
        device: that of the folder.
    """

    names: tuple[str, ...]
    digest: bytes
    newest: int
    device: int

    def is_settled(self, began: float) -> bool:
        """Whether whatever changes from now on is certain to show.

        Args:
            began: when the look at it began, in seconds since 1970.
        """
        return self.newest < (began - SETTLED) * _SECOND


def read(folder: str, most: int = MOST) -> TreeState | None:
    """The state of a folder with all that is in it.

    Returns:
        None where stamps do not tell enough: it holds links, pipes or the like, or more than
        ``most`` files and folders; its file system knows no parts of seconds; it cannot be listed.
    """
    names: list[str] = []
    waiting = [""]
    try:
        while waiting:
            place = waiting.pop()
            with os.scandir(os.path.join(folder, place) if place else folder) as entries:
                for entry in sorted(entries, key=lambda each: each.name):
                    name = os.path.join(place, entry.name)
                    names.append(name)
                    if len(names) > most:
                        return None
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(name)
        stamps = _stamps(folder, names)
    except (OSError, ValueError):
        return None
    if not all(stat.S_ISREG(each.st_mode) or stat.S_ISDIR(each.st_mode) for each in stamps):
        return None
    if all(each.st_ctime_ns % _SECOND == 0 for each in stamps):
        return None
    newest = max(max(each.st_mtime_ns, each.st_ctime_ns) for each in stamps)
    return TreeState(tuple(names), _digest(stamps), newest, stamps[0].st_dev)


def digest_of(folder: str, names: Iterable[str]) -> bytes | None:
    """The digest of a folder of which is known what was in it; None where some of that is gone."""
    try:
        return _digest(_stamps(folder, names))
    except (OSError, ValueError):
        return None


def now() -> float:
    """The time to be given to `TreeState.is_settled`; asked for before the look."""
    return time.time()


def _stamps(folder: str, names: Iterable[str]) -> list[os.stat_result]:
    found = [os.stat(folder)]  # it may be a link itself: what it leads to counts
    lstat, start = os.lstat, os.path.join(folder, "")
    found.extend([lstat(start + name) for name in names])
    return found


def _digest(stamps: Iterable[os.stat_result]) -> bytes:
    told = [
        (s.st_mode, s.st_ino, s.st_dev, s.st_uid, s.st_gid, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        for s in stamps
    ]
    return blake2b(repr(told).encode(), digest_size=16).digest()
