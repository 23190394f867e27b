"""Linux tells of changes by inotify: at once, and for nothing while nothing happens.

A thread sleeps in the kernel until something changes. (A library that asks in steps of
10 ms adds up to two of them to every change, and uses near 1 % of a processor for ever.)
Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import select
import struct
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

QUIET = 0.004  # s without a change that end a batch: who writes two files is often done by then
LONGEST = 0.03  # s after which a batch ends although changes go on

ADDED, MODIFIED, DELETED = 1, 2, 3

_MODIFY, _ATTRIB, _MOVED_FROM, _MOVED_TO = 0x2, 0x4, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_OVERFLOW, _IGNORED, _ONLY_FOLDERS = 0x4000, 0x8000, 0x01000000
_WANTED = (
    _MODIFY | _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
)
_HEAD = struct.Struct("iIII")  # watch, what, cookie, length of the name
_ENOUGH = 1 << 16  # bytes of one reading


class Heard(NamedTuple):
    """What happened: (`ADDED`, `MODIFIED` or `DELETED`, path); ``lost``: and more than that."""

    changes: set[tuple[int, str]]
    lost: bool = False


def is_there() -> bool:
    """Whether this system has it."""
    return sys.platform == "linux" and hasattr(ctypes.CDLL(None), "inotify_init1")


class Inotify:
    """Watches some folders, not below them.

    Args:
        folders: absolute paths.
        wake: a file descriptor; once it can be read, `hear` returns.

    Raises:
        OSError: the kernel refuses: its limits, a folder that is gone, or may not be read.
    """

    def __init__(self, folders: Iterable[str], wake: int) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._folders: dict[int, str] = {}
        self._fd = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC), "")
        try:
            for folder in folders:
                path, mask = os.fsencode(folder), _WANTED | _ONLY_FOLDERS
                watch = self._libc.inotify_add_watch(self._fd, path, mask)
                self._folders[self._checked(watch, folder)] = folder
        except OSError:
            self.close()
            raise
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._more = select.poll()
        self._more.register(self._fd, select.POLLIN)
        self._poll.register(wake, select.POLLIN)

    def hear(self, timeout: float) -> Heard:
        """Wait up to so many seconds for changes; nothing where it was woken before."""
        changes: set[tuple[int, str]] = set()
        lost = False
        ready = {fd for fd, _ in self._poll.poll(max(0.0, timeout) * 1000)}
        end = time.monotonic() + LONGEST
        while self._fd in ready:
            try:
                read = os.read(self._fd, _ENOUGH)
            except BlockingIOError:
                break
            lost = self._take(read, changes) or lost
            ready = set()
            if time.monotonic() < end:
                ready = {fd for fd, _ in self._more.poll(QUIET * 1000)}
        return Heard(changes, lost)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _take(self, read: bytes, changes: set[tuple[int, str]]) -> bool:
        """Add what was read to ``changes``; whether the kernel dropped some."""
        at, lost = 0, False
        while at < len(read):
            watch, what, _, length = _HEAD.unpack_from(read, at)
            name = read[at + _HEAD.size : at + _HEAD.size + length].rstrip(b"\0")
            at += _HEAD.size + length
            lost = lost or bool(what & _OVERFLOW)
            folder = self._folders.get(watch)
            if folder is None or what & _IGNORED:
                continue
            path = os.path.join(folder, os.fsdecode(name)) if name else folder
            if what & (_DELETE | _MOVED_FROM | _DELETE_SELF | _MOVE_SELF):
                changes.add((DELETED, path))
            elif what & (_CREATE | _MOVED_TO):
                changes.add((ADDED, path))
            else:
                changes.add((MODIFIED, path))
        return lost

    @staticmethod
    def _checked(result: int, path: str) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), path or None)
        return result
