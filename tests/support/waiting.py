"""Waiting for what another process or thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(holds: Callable[[], T], what: str = "it", patience: float = 60.0) -> T:
    """What ``holds`` gives, once it is true; fails where it never is."""
    ends = time.monotonic() + patience
    while not (value := holds()):
        assert time.monotonic() < ends, f"waited in vain for {what}"
        time.sleep(0.02)
    return value
