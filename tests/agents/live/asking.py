"""Programs that ask for a permission, as processes of their own (see `publisher`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from acp_core.agents.live import answers
from acp_core.agents.live.answers import OpenRequest
from tests.agents.support import ROOT


class Asking(NamedTuple):
    """A program that waits for an answer, and what it asks."""

    process: subprocess.Popen[str]
    opened: OpenRequest

    def end(self) -> str:
        """What it prints once it was answered, its request's id left out."""
        out, _ = self.process.communicate(timeout=60)
        return out.strip()


@contextmanager
def asking(
    folder: Path, command: str, *how: str, participant: str = "reviewer", program: str = "claude"
) -> Iterator[Asking]:
    """A program that asks to run a command in a folder; it ends with the block."""
    words = [str(folder), participant, program, command, *how]
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.agents.live.publisher", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        id = process.stdout.readline().strip()
        yield Asking(process, next(each for each in answers.waiting() if each.id == id))
    finally:
        process.kill()
        process.communicate()
