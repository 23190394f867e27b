"""One Snapshot after the other: what did not change stays the same object, which is cheap to compare."""

from __future__ import annotations

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
