"""What this process has open, as the system tells it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def open_below(folder: Path) -> list[str]:
    """The files and folders below a folder, and the folder itself, that this process has open."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the list itself was open, and is no more
            path = os.readlink(f"/proc/self/fd/{number}")
            found += [path] if path.startswith(str(folder)) else []
    return found
