from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import spawn
from acp_core.model.text import clean_line
from acp_core.protocols.governed.read.existing_program import NAME

PATIENCE = 600.0  # seconds that the program may take


class Ran(NamedTuple):
    """How the program ended, and the last thing that it said."""

    code: int
    output: str

    @property
    def ok(self) -> bool:
        """Whether it did what it was asked."""
        return self.code == 0


def hand_over(root: Path, arguments: Sequence[str]) -> Ran:
    """Run the program in the folder ``root``. Never raises: what went wrong is said."""
    found = shutil.which(NAME)
    if found is None:
        return Ran(127, f"{NAME} is no longer installed")
    try:
        done = subprocess.run(
            [found, *arguments],
            cwd=root,
            env=spawn.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ran(124, f"{NAME} took longer than {PATIENCE:.0f} seconds and was ended")
    except (OSError, ValueError) as error:
        return Ran(126, clean_line(f"{NAME} cannot be run: {error}", 300))
    printed = done.stdout if done.returncode == 0 else done.stderr or done.stdout
    lines = [line for line in printed.decode("utf-8", "replace").splitlines() if line.strip()]
    output = clean_line(lines[-1].strip(), 300) if lines else ""
    return Ran(done.returncode, output or f"{NAME} ended with code {done.returncode}")
