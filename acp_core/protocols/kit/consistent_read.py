"""Reading several files that another process writes as one: no reading mixes before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

READINGS = 3
"""How often is read until nothing was written meanwhile; a writer that never rests is not waited for."""


def steadily(read: Callable[[], T], stands: Callable[[], object]) -> T:
    """Read; again where a file that is written with others changed while it was read.

    A write that goes on is known by its journal; one that ended between the readings of two files
    has left none, and what was read of them contradicts itself.

    Args:
        read: Reads all of them.
        stands: What tells two states of these files apart, such as their stamps.

    Returns:
        What was read last.
    """
    for _ in range(READINGS - 1):
        before = stands()
        made = read()
        if stands() == before:
            return made
    return read()
