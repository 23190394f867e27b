"""An orchestrator that is killed at its so-and-so-many-th operation on files or processes.

Run as ``python -m tests.protocols.cycle.dying ROOT CYCLE COUNT``: it conducts the cycle with the programs of
before, and kills itself without warning, before or after the operation.
"""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from acp_core.protocols.cycle.conduct import process
from acp_core.protocols.cycle.read import orchestrator_spec


def main() -> None:
    root, cycle, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    spec = orchestrator_spec.load(root, cycle)
    assert spec is not None
    left = itertools.count(count, -1)

    def dying(operation: Callable[..., Any]) -> Callable[..., Any]:
        def run(*words: Any, **more: Any) -> Any:
            at = next(left)
            if at == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            value = operation(*words, **more)
            if at == 1 and count % 2:
                os.kill(os.getpid(), signal.SIGKILL)
            return value

        return run

    for name in ("replace", "link", "unlink", "mkdir", "write"):
        setattr(os, name, dying(getattr(os, name)))
    original = subprocess.Popen.__init__

    def popen(self: Any, *words: Any, **more: Any) -> None:
        dying(original)(self, *words, **more)

    subprocess.Popen.__init__ = popen  # type: ignore[method-assign]
    sys.exit(process.conduct(spec))


if __name__ == "__main__":
    main()
