"""What changed between two versions of a text, by lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

WORK = 4_000_000
"""Up to which product of lines two texts are compared closely; beyond, all between is changed."""


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines ``old`` of the one text became lines ``new`` of the other (places, from 0)."""

    old: range
    new: range


def lines_of(text: str) -> list[str]:
    """The lines of a text as an editor counts them: no empty one after the last newline."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    return lines


def compare(old: Sequence[str], new: Sequence[str]) -> tuple[Edit, ...]:
    """The edits that make ``new`` of ``old``, in order. For a thread where both are long."""
    start, shorter = 0, min(len(old), len(new))
    while start < shorter and old[start] == new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] == new[-1 - end]:
        end += 1
    before, after = old[start : len(old) - end], new[start : len(new) - end]
    if not before and not after:
        return ()
    if len(before) * len(after) > WORK or not before or not after:
        span = Edit(range(start, len(old) - end), range(start, len(new) - end))
        return (span,)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    return tuple(
        Edit(range(start + a, start + b), range(start + c, start + d))
        for tag, a, b, c, d in matcher.get_opcodes()
        if tag != "equal"
    )


def changed_lines(edits: Sequence[Edit]) -> frozenset[int]:
    """The lines of the new text that are new or different, from 1."""
    return frozenset(index + 1 for edit in edits for index in edit.new)


def removed_before(edits: Sequence[Edit]) -> frozenset[int]:
    """The lines of the new text before which lines were removed, from 1."""
    return frozenset(edit.new.start + 1 for edit in edits if edit.old and not edit.new)
