"""Whether a person is there to answer: somebody has used a terminal of this account lately.

That holds for a dashboard in a terminal as well as for a shell. A terminal that merely stays open
overnight says nothing, nor does one that an agent opened for itself. Somebody who only has the
dashboard in a browser is not seen: then requests wait.
"""

from __future__ import annotations

import os
from datetime import datetime

import psutil

from acp_core.agents.live.answers import ATTENDED
from acp_core.agents.live.state import MARK


def is_attended(now: datetime) -> bool:
    """Whether a person used a terminal in the last minutes, as many as a request waits then."""
    since = now.timestamp() - ATTENDED.total_seconds()
    return any(used >= since for used in terminals().values())


def terminals() -> dict[str, float]:
    """The terminals of this account's people, and when each was typed into last (seconds since 1970)."""
    found: set[str] = set()
    of_agents: set[str] = set()
    for process in psutil.process_iter():
        try:
            terminal = process.terminal()
            if terminal is None or process.uids().real != os.getuid():
                continue
            (of_agents if MARK in process.environ() else found).add(terminal)
        except (psutil.Error, OSError):
            continue
    used = {name: _used(name) for name in found - of_agents}
    return {name: at for name, at in used.items() if at is not None}


def _used(terminal: str) -> float | None:
    """When a terminal was typed into: the system notes it as its time of access."""
    try:
        return os.stat(terminal).st_atime
    except OSError:
        return None
