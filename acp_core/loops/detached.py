"""``python -m acp_core.loops.detached``: a loop in the background.

Started by `acp_core.loops.launch.start`, which gives it its spec on the standard input.
"""

from __future__ import annotations

import sys

from acp_core.agents import background
from acp_core.loops import process
from acp_core.loops.launch import LaunchError
from acp_core.loops.spec import Spec


def main() -> int:
    """Run the loop that is asked for. Returns its exit code."""
    return background.run_asked(
        Spec, lambda spec, ready: process.run(spec, ready=ready), LaunchError
    )


if __name__ == "__main__":
    sys.exit(main())
