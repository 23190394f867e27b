"""What an action would change, as texts that are safe to show. Standard library only."""

from __future__ import annotations

import difflib

from acp_core.model.action import Change
from acp_core.protocols.kit.wording import bounded, difference, lines_of, safe


def file_change(path: str, name: str, before: bytes, after: bytes) -> Change:
    """A file's change as a unified diff; ``before`` may be only the part that changes."""
    old, new = lines_of(before), lines_of(after)
    verb = "replace" if before and not after.startswith(before) else "append"
    lines = difflib.unified_diff(old, new, f"{name} (now)", f"{name} (then)", lineterm="")
    return Change(safe(path), verb, bounded("\n".join(lines)))


def new_file(path: str, content: bytes) -> Change:
    """A file that is made, with its content."""
    return Change(safe(path), "create", difference(b"", content))
