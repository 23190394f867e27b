"""What the system's kernel tells of changes in folders: by inotify on Linux, elsewhere by watchfiles."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from acp_core.files.changes import Heard

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

STEP = 10  # ms of quiet that end a batch of changes of watchfiles
DEBOUNCE = 50  # ms after which such a batch ends although changes go on

LINUX = sys.platform == "linux"


class Kernel(Protocol):
    """Tells of changes in some folders."""

    def hear(self, timeout: float) -> Heard:
        """Wait up to so many seconds for changes, or until woken.

        Raises:
            RuntimeError: it cannot go on.
        """

    def close(self) -> None:
        """Watch nothing any more."""


class Wake(threading.Event):
    """An event that also wakes a thread which waits for the kernel.

    `open` and `close` belong to that thread; in between `fileno` can be read once it is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._pipe: tuple[int, int] | None = None

    def open(self) -> None:
        """Be of use to a thread from now on."""
        pipe = os.pipe()
        for each in pipe:
            os.set_blocking(each, False)
        self._pipe = pipe

    def fileno(self) -> int:
        """What can be read once it is set."""
        assert self._pipe is not None
        return self._pipe[0]

    def set(self) -> None:
        """Wake."""
        super().set()
        with self._lock, contextlib.suppress(BlockingIOError):  # full: it wakes anyway
            if self._pipe is not None:
                os.write(self._pipe[1], b".")

    def clear(self) -> None:
        """Wake no more until it is set again."""
        super().clear()
        if self._pipe is not None:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._pipe[0], 4096):
                    pass

    def close(self) -> None:
        """Let go of what `open` made."""
        with self._lock:
            pipe, self._pipe = self._pipe, None
        for each in pipe or ():
            os.close(each)


class Watchfiles:
    """The library's way: asked in steps of `STEP`."""

    def __init__(self, folders: Sequence[str], wake: threading.Event) -> None:
        from watchfiles._rust_notify import RustNotify  # late: Linux needs none of it

        debug = polling = recursive = ignore_denied = False  # ignoring would hide the limit as well
        self._wake = wake
        self._rust: RustNotify = RustNotify(
            list(folders), debug, polling, 300, recursive, ignore_denied
        )

    def hear(self, timeout: float) -> Heard:
        """See `Kernel.hear`."""
        heard = self._rust.watch(DEBOUNCE, STEP, int(timeout * 1000) + 1, self._wake)
        return Heard(heard if isinstance(heard, set) else set())

    def close(self) -> None:
        """See `Kernel.close`."""
        self._rust.close()


def ask(folders: Sequence[str], wake: Wake) -> Kernel:
    """Have the kernel tell of changes in these folders, not below them.

    Raises:
        OSError, RuntimeError: it refuses.
    """
    if LINUX:
        from acp_core.files.inotify import Inotify  # late: there is none elsewhere

        return Inotify(folders, wake.fileno())
    return Watchfiles(folders, wake)
