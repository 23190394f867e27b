"""Linux tells of changes by inotify: at once, and for nothing while nothing happens.

A thread sleeps in the kernel until something changes. (watchfiles asks in steps of 10 ms:
that adds up to two of them to every change, and uses near 1 % of a processor for ever.)
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Iterable

from inotify_simple import INotify, flags

from acp_core.files.changes import ADDED, DELETED, MODIFIED, Heard

QUIET = 4  # ms without a change that end a batch: who writes two files is often done by then
LONGEST = 0.03  # s after which a batch ends although changes go on

_GONE = flags.DELETE | flags.MOVED_FROM | flags.DELETE_SELF | flags.MOVE_SELF
_CAME = flags.CREATE | flags.MOVED_TO
_WANTED = flags.MODIFY | flags.ATTRIB | _CAME | _GONE | flags.ONLYDIR


class Inotify:
    """Watches some folders, not below them.

    Args:
        folders: absolute paths.
        wake: a file descriptor; once it can be read, `hear` returns.

    Raises:
        OSError: the kernel refuses: its limits, a folder that is gone, or may not be read.
    """

    def __init__(self, folders: Iterable[str], wake: int) -> None:
        self._kernel = INotify()
        try:
            self._folders = {self._kernel.add_watch(folder, _WANTED): folder for folder in folders}
        except OSError:
            self.close()
            raise
        self._either = select.poll()
        for each in (self._kernel.fileno(), wake):
            self._either.register(each, select.POLLIN)

    def hear(self, timeout: float) -> Heard:
        """Wait up to so many seconds for changes; nothing where it was woken before."""
        changes: set[tuple[int, str]] = set()
        lost = False
        self._either.poll(max(0.0, timeout) * 1000)
        end = time.monotonic() + LONGEST
        events = self._kernel.read(timeout=0)
        while events:
            for event in events:
                lost = lost or bool(event.mask & flags.Q_OVERFLOW)
                folder = self._folders.get(event.wd)
                if folder is not None and not event.mask & flags.IGNORED:
                    path = os.path.join(folder, event.name) if event.name else folder
                    changes.add((_what(event.mask), path))
            events = self._kernel.read(timeout=QUIET) if time.monotonic() < end else []
        return Heard(changes, lost)

    def close(self) -> None:
        """Watch nothing any more."""
        self._kernel.close()


def _what(mask: int) -> int:
    return DELETED if mask & _GONE else ADDED if mask & _CAME else MODIFIED
