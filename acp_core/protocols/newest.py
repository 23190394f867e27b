"""The newest events of a collaboration that is not read yet: what its log ends with.

To read a collaboration takes the whole log, and all that follows from it. Its end is there at
once, and says what happens now. Nothing follows from what is told here: no phase, no finding, and
not whether an event was legal.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from acp_core.protocols import registry


class NewestEvent(NamedTuple):
    """An event as a log holds it; texts are as they were written. ``at`` is ISO 8601, or any text."""

    at: str
    actor: str
    kind: str
    summary: str


def newest(folder: Path, protocol: registry.Protocol, most: int) -> tuple[NewestEvent, ...]:
    """The newest events of a folder, in order.

    Args:
        folder: where the collaboration is.
        protocol: its protocol.
        most: how many events at most.

    Returns:
        Nothing where the protocol tells none, or where they cannot be read now.
    """
    if protocol.newest is None:
        return ()
    try:
        found: tuple[NewestEvent, ...] = registry.load(protocol.newest)(folder, most)
    except Exception:  # what is read next says what is wrong, whoever's protocol it is
        return ()
    return found
