"""Which programs this machine has: asked for all presets together, once for each thing that can be done.

A search goes through every folder of ``PATH``, so that its outcome holds for a moment.
"""

from __future__ import annotations

import os
import shutil
import time
from functools import lru_cache

_HOLDS = 1.0  # s


def is_installed(program: str) -> bool:
    """Whether a program is on ``PATH``, as it was at most a second ago; False for no program."""
    path = os.environ.get("PATH", os.defpath)
    return bool(program) and _is_on(path, program, time.monotonic() // _HOLDS)


@lru_cache(maxsize=256)
def _is_on(path: str, program: str, moment: float) -> bool:
    return shutil.which(program, path=path) is not None
