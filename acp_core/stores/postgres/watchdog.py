"""No wait for an answer without an end: a server that is stopped, or a proxy that swallows it, says nothing.

The system's own keep-alives see machines and networks that are gone, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator


class Watchdog:
    """Shuts a socket down on which an answer takes too long: whoever waits there sees its end.

    Args:
        patience: how many seconds an answer may take.
    """

    def __init__(self, patience: Callable[[], float]) -> None:
        self._patience = patience
        self._turn = threading.Condition()
        self._over: tuple[float, int] | None = None  # a deadline, and the socket
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def over(self, fd: int) -> Iterator[None]:
        """Watch over a socket for as long as this lasts."""
        outer = self._over
        with self._turn:
            self._over = outer or (time.monotonic() + self._patience(), fd)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._watch, name="acp-watchdog", daemon=True
                )
                self._thread.start()
        try:
            yield
        finally:
            with self._turn:
                self._over = outer

    def end(self) -> None:
        """No more watching; it begins again with the next socket."""
        with self._turn:
            self._thread = None
            self._turn.notify_all()

    def _watch(self) -> None:
        me = threading.current_thread()
        with self._turn:
            while self._thread is me:
                if self._over is not None and time.monotonic() >= self._over[0]:
                    _shut_down(self._over[1])
                    self._over = None
                self._turn.wait(min(5.0, self._patience() / 4))


def _shut_down(fd: int) -> None:
    """End a connection from both sides; the descriptor stays its owner's."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(fd)) as same:
        same.shutdown(socket.SHUT_RDWR)
