"""A process that is killed before any chosen operation on files, in the middle of any write."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CHANGES = {"os.rename", "os.remove", "os.link", "os.truncate", "os.mkdir"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def killed_at(number: int, place: Path, work: Callable[[], object]) -> bool:
    """Do ``work`` in a process of its own that is killed before its operation ``number`` (from 1).

    Operations are those that change files below ``place``; of a write, half is still done.
    Returns whether it was killed: False where it ended before.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a test's process may have threads
        child = os.fork()
    if child == 0:
        try:
            _arm(number, str(place))
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _arm(number: int, place: str) -> None:
    left = number
    write = os.write

    def count() -> bool:
        nonlocal left
        left -= 1
        return left == 0

    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def heard(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
        if (opened or event in _CHANGES) and place in str(arguments[0]) and count():
            die()

    def half(fd: int, data: bytes) -> int:
        if count():
            write(fd, bytes(data)[: len(data) // 2])
            die()
        return write(fd, data)

    sys.addaudithook(heard)
    os.write = half
