"""A golden and what is printed today, side by side."""

from __future__ import annotations

import difflib
from pathlib import Path

from tests.golden.capture import DATA


def path_of(name: str) -> Path:
    """The file of a golden."""
    return DATA / (name if "." in name else f"{name}.json")


def difference(name: str, today: str) -> str:
    """What became different, as a unified difference; empty if nothing did."""
    path = path_of(name)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    if before == today:
        return ""
    lines = difflib.unified_diff(
        before.splitlines(), today.splitlines(), f"{name} (golden)", f"{name} (today)", lineterm=""
    )
    return "\n".join(lines)
