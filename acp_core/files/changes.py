"""What happened in watched folders, as every way of watching tells it."""

from __future__ import annotations

from typing import NamedTuple

ADDED, MODIFIED, DELETED = 1, 2, 3
"""The kinds of a change."""


class Heard(NamedTuple):
    """What happened: (`ADDED`, `MODIFIED` or `DELETED`, path); ``lost``: and more than that."""

    changes: set[tuple[int, str]]
    lost: bool = False
