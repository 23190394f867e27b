"""The wire from one host to a server's socket: cut, held up in one direction, or slow."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time

OPEN, CUT, DEAF, MUTE, SLOW = "open", "cut", "deaf", "mute", "slow"
DELAY = 0.4  # seconds that a slow wire takes for each piece


class Relay:
    """A TCP port that leads to a socket, as its ``state`` allows.

    Args:
        to: the path of the server's socket.

    Attributes:
        state: OPEN; CUT: nobody gets through; DEAF and MUTE: the server hears, or is heard,
            nothing, and the connection is lost once anything was swallowed; SLOW.
    """

    def __init__(self, to: str) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.state = OPEN
        self._ended = False
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """End it, with all that goes over it."""
        self._ended = True
        self.state = CUT
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while not self._ended:
            with contextlib.suppress(OSError):
                near, _ = self._listener.accept()
                if self.state == CUT:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                try:
                    far.connect(self._to)
                except OSError:
                    near.close()
                    far.close()
                    continue
                threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        swallowed = False
        with near, far, contextlib.suppress(OSError):
            while self.state != CUT and not (swallowed and self.state == OPEN):
                ready, _, _ = select.select([near, far], [], [], 0.05)
                for each in ready:
                    data = each.recv(1 << 16)
                    if not data:
                        return
                    if self.state == CUT:
                        return
                    if self.state == (DEAF if each is near else MUTE):
                        swallowed = True
                        continue
                    if self.state == SLOW:
                        time.sleep(DELAY)
                    (far if each is near else near).sendall(data)
