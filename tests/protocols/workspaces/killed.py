"""``python -m tests.protocols.workspaces.killed FOLDER AGENT ATTEMPT AT``: a watcher killed at an operation.

It is killed before its file operation number ``AT`` (0: not at all), and prints how many there were.
"""

from __future__ import annotations

import os
import signal
import sys

from acp_core.protocols.workspaces.conduct.detached import watch
from tests.faults.shim import _Injector


def main(folder: str, agent: str, attempt: str, at: str) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    injector = _Injector("kill" if int(at) else "count", int(at), die)
    injector.install()
    watch(folder, agent, int(attempt))
    print(len(injector.names))


if __name__ == "__main__":
    main(*sys.argv[1:5])
