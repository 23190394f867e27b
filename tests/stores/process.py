"""`acp` that is killed, or fails, at a named step: ``python -m tests.stores.process STEP ARGUMENTS``.

The steps are those of `acp_core.stores.engine`; ``STEP:2`` means the second time that it is reached,
``STEP=stop`` stops the process there (SIGSTOP) instead of killing it, ``STEP=full`` has the disk full.
"""

from __future__ import annotations

import errno
import os
import signal
import sys

from acp_core.stores.engine import fault_point


class At:
    """Does at one step what is asked for."""

    def __init__(self, wish: str) -> None:
        step, _, self.act = wish.partition("=")
        self.step, _, number = step.partition(":")
        self.left = int(number or 1)

    def __call__(self, name: str) -> None:
        """A step is reached."""
        if name != self.step:
            return
        self.left -= 1
        if self.left:
            return
        if self.act == "full":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.kill(os.getpid(), signal.SIGSTOP if self.act == "stop" else signal.SIGKILL)


if __name__ == "__main__":
    from acp_tui.__main__ import main

    fault_point.listener = At(sys.argv[1])
    sys.argv = ["acp", *sys.argv[2:]]
    raise SystemExit(main(sys.argv[1:]))
