"""Waiting for what another process or thread does."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
_ENDLESS = 900.0  # seconds
_SIGN_OF_LIFE = "alive"  # the supervisor of parked loops writes it without anything to do


def until(holds: Callable[[], T], what: str = "it", patience: float = 60.0) -> T:
    """What ``holds`` gives, once it is true; fails where it never is."""
    ends = time.monotonic() + patience
    while not (value := holds()):
        assert time.monotonic() < ends, f"waited in vain for {what}"
        time.sleep(0.02)
    return value


def until_still(
    holds: Callable[[], T], what: Callable[[], str], place: Path, still: float = 60.0
) -> T:
    """As `until`, on a machine however slow: it fails only once nothing moves any more.

    What moves below ``place`` is what files change; signs of life alone are no movement. Nor is
    it waited for what moves without an end.

    Args:
        holds: what is waited for.
        what: says what that is and how it stands, where it is waited for in vain.
        place: the folder in which all files lie of those who work on it.
        still: seconds.
    """
    begun = since = time.monotonic()
    seen, look = _newest(place), begun + 1.0
    while not (value := holds()):
        now = time.monotonic()
        if now > look:
            newest, look = _newest(place), now + 1.0
            if newest != seen:
                seen, since = newest, now
            idle = now - since
            assert idle < still, f"nothing has moved for {idle:.0f} s; waited for {what()}"
            assert now - begun < _ENDLESS, f"no end after {_ENDLESS:.0f} s; waited for {what()}"
        time.sleep(0.02)
    return value


def _newest(place: Path) -> tuple[int, int]:
    """How many files there are, and when the last of them was changed."""
    times = []
    for folder, _, names in os.walk(place):
        for name in names:
            if name != _SIGN_OF_LIFE:
                with contextlib.suppress(OSError):
                    times.append(os.lstat(os.path.join(folder, name)).st_mtime_ns)
    return len(times), max(times, default=0)
