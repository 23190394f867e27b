"""Whether a shared folder follows its store: which process sees to that, and as of when the folder is else.

A process that synchronizes a folder holds ``.acp/run/sync.lock`` and says in ``.acp/run/sync.json``
whether it reaches the store. What is read while none does, or while it does not, is as it was when it
was brought last. Standard library only: what agents run at every turn imports this module.
"""

from __future__ import annotations

import contextlib
import json
import os
import time

from acp_core.files.atomic import Unreadable, read_bounded
from acp_core.model.light import Any, NamedTuple

try:
    import fcntl
except ImportError:  # Windows: nothing can be written there
    fcntl = None  # type: ignore[assignment]

_SUPPORTED = fcntl is not None

LOCK = os.path.join(".acp", "run", "sync.lock")

NOTE = os.path.join(".acp", "run", "sync.json")
"""Whether the process that publishes reaches the store, as it said last."""

_BASE = os.path.join(".acp", "base.json")  # what was brought last; its time says when
_LIMIT = 1 << 16
_NOW = 10.0  # seconds for which what was brought counts as looked at now


class Behind(NamedTuple):
    """A folder that may not hold what its store holds.

    Attributes:
        at: when it was known last that it does, in seconds since 1970; None where nobody knows.
        reason: why its store is not read; "" where nothing tries to.
        is_refused: the store answers, and what it holds is refused; else it does not answer.
    """

    at: float | None
    reason: str = ""
    is_refused: bool = False


def is_synced(folder: str) -> bool:
    """Whether a process publishes for this folder: it holds the lock; the file alone means nothing."""
    if not _SUPPORTED:
        return False
    try:
        fd = os.open(os.path.join(folder, LOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def behind(folder: str) -> Behind | None:
    """Since when, and why, a shared folder does not follow its store; None where it does.

    Args:
        folder: one that is shared.
    """
    note, noted = _note(folder)
    try:
        at = os.stat(os.path.join(folder, _BASE)).st_mtime
    except OSError:
        at = None
    refused = note.get("refused") is True and noted >= (at or 0.0)
    if is_synced(folder):
        if note.get("reached") is not False:
            return None
    elif not refused:  # whatever was noted is over
        is_new = at is not None and abs(time.time() - at) < _NOW
        return None if is_new else Behind(at)
    return Behind(at, str(note.get("reason") or "its store does not answer"), refused)


def _note(folder: str) -> tuple[dict[str, Any], float]:
    """What the process that synchronizes a folder noted last, and when."""
    path = os.path.join(folder, NOTE)
    try:
        note = json.loads(read_bounded(path, _LIMIT))
        return (note, os.stat(path).st_mtime) if isinstance(note, dict) else ({}, 0.0)
    except (OSError, Unreadable, ValueError, RecursionError):
        return {}, 0.0


def followed(folder: str) -> None:
    """Note that a shared folder holds what its store holds at this moment."""
    with contextlib.suppress(OSError):
        os.utime(os.path.join(folder, _BASE))
