"""``python -m acp_core.loops.detached``: a loop in the background.

Started by `acp_core.loops.launch.start`, which gives it its spec on the standard input; or by the
shell that a parked loop is (`acp_core.loops.parking`), which gives it its place and why it goes on.
"""

from __future__ import annotations

import sys
from pathlib import Path

from acp_core.agents import background
from acp_core.agents.loop_directory import LoopDirectory, LoopRunning
from acp_core.loops import parking, process
from acp_core.loops.launch import LaunchError, Spec, load_spec


def main() -> int:
    """Run the loop that is asked for. Returns its exit code."""
    if sys.argv[1:2] == [parking.RESUME]:
        return _resume(*sys.argv[2:4])
    return background.run_asked(
        Spec, lambda spec, ready: process.run(spec, ready=ready), LaunchError
    )


def _resume(where: str, why: str) -> int:
    """Go on with the loop that this process was before it was parked."""
    locks = parking.inherited()
    spec = load_spec(LoopDirectory(Path(where)))
    if spec is None:
        return 2  # its place was removed: there is nothing to go on with
    try:
        return process.resume(spec, process.Resumed(locks, why))
    except (LaunchError, LoopRunning):
        return 2  # it may not write any more


if __name__ == "__main__":
    sys.exit(main())
