"""``python -m acp_core.loops.interrupted``: loops that ended because their machine did, or because somebody killed them: they can go on.

A loop that ends by itself, or is stopped, notes that it has. One of which neither is true, and
whose process is gone, was interrupted.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from acp_core.agents import registry
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.loops import launch
from acp_core.loops.launch import LaunchError, Spec
from acp_core.model.text import clean_line


def interrupted() -> list[Spec]:
    """What loops of this account were asked to do that were interrupted, oldest first."""
    found = []
    for loop in registry.runners():
        spec = launch.load_spec(LoopDirectory(Path(loop.place))) if loop.died else None
        if spec is not None:
            found.append(replace(spec, goes_on=True))
    return found


def go_on() -> list[tuple[Spec, str]]:
    """Start every interrupted loop again, as it was.

    Returns:
        Each, with why it could not be started; "" where it runs.
    """
    return [(spec, _start(spec)) for spec in interrupted()]


def _start(spec: Spec) -> str:
    try:
        launch.start(spec)
    except LaunchError as error:
        return str(error)
    return ""


def main() -> int:
    """Start them, as the system does at boot (`acp_core.loops.boot`); 1 where one does not start."""
    failed = [f"{spec.participant} in {spec.folder}: {why}" for spec, why in go_on() if why]
    for each in failed:
        sys.stderr.write(f"{clean_line(each, 1_000)}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
