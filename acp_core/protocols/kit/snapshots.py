"""Files that are written together read as one, and Snapshots of which unchanged parts stay the same.

No reading mixes before and after. What did not change from one Snapshot to the next stays the same
object, which is cheap to compare.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from typing import TypeVar

from acp_core.model import Snapshot

T = TypeVar("T")


def with_parts_of(old: Snapshot, new: Snapshot) -> Snapshot:
    """``new`` with the parts of ``old`` that are equal; ``old`` itself where all are."""
    kept = {}
    changed = False
    for each in fields(Snapshot):
        before, after = getattr(old, each.name), getattr(new, each.name)
        if before is after:
            continue
        if before == after:
            kept[each.name] = before
        elif each.name != "as_of":
            changed = True
            if each.name == "documents":  # a pane shows one of them
                kept[each.name] = _same_where_equal(before, after)
    if not changed:
        return old
    return replace(new, **kept) if kept else new


def _same_where_equal(before: tuple[T, ...], after: tuple[T, ...]) -> tuple[T, ...]:
    """``after`` with the very objects of ``before`` where those at the same place are equal."""
    pairs = zip(before, after, strict=False)
    same = tuple(old if old == new else new for old, new in pairs)
    return same + after[len(same) :]


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
