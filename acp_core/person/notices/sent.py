"""Which of a person's dashboards tells a piece of news: the first that comes, and no other.

Several dashboards of one person notice the same at the same time. What goes beyond their own
terminals (desktop, command, webhook) is told by one of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from acp_core.files import modes
from acp_core.person import paths
from acp_core.person.notices.news import AGAIN, Message

try:
    import fcntl
except ImportError:  # Windows: each dashboard tells for itself
    fcntl = None  # type: ignore[assignment]

SUPPORTED = fcntl is not None
LARGEST = 1 << 20  # bytes of the file that are read


def path() -> Path:
    """Where it is kept what was told last; it need not exist."""
    return paths.state_folder() / "notices.json"


def take_unsent(news: Iterable[Message], now: datetime) -> list[Message]:
    """Those of these messages that nobody has told within the last minute; they count as told.

    All of them where that cannot be kept: twice is better than never.
    """
    listed = list(news)
    try:
        modes.private_folder(path().parent)
        descriptor = os.open(path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return listed
    try:
        if not SUPPORTED:
            return listed
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # held for the blink of an eye
        return _take(descriptor, listed, now.timestamp())
    except OSError:
        return listed
    finally:
        os.close(descriptor)


def _take(descriptor: int, news: list[Message], now: float) -> list[Message]:
    earliest = now - AGAIN.total_seconds()
    told = {name: at for name, at in _read(descriptor).items() if earliest < at <= now}
    ours = [message for message in news if _name(message) not in told]
    if ours:
        told |= dict.fromkeys(map(_name, ours), now)
        data = json.dumps(told).encode()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, data, 0)
    return ours


def _read(descriptor: int) -> dict[str, float]:
    """What was told, and when; nothing where a killed writer left half of it."""
    with contextlib.suppress(ValueError):
        found = json.loads(os.pread(descriptor, LARGEST, 0) or b"{}")
        if isinstance(found, dict):
            return {name: at for name, at in found.items() if isinstance(at, int | float)}
    return {}


def _name(message: Message) -> str:
    said = "\0".join((message.kind, message.location, message.participant, message.reason))
    return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:32]
