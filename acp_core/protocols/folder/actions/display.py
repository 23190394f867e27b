"""What an action would change, and why it would not, as texts that are safe to show."""

from __future__ import annotations

import difflib

from acp_core.files.text import clean, clean_line
from acp_core.model import Change
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.kit.command_line import reason_of

_SHOWN = 1 << 16  # characters of a diff


def safe(text: str) -> str:
    """One line of any text, safe to show."""
    return clean_line(text, 2_000)


def refusal(error: Refused | OSError) -> str:
    """Why something is not done."""
    return safe(str(error) if isinstance(error, Refused) else reason_of(error))


def file_change(path: str, name: str, before: bytes, after: bytes) -> Change:
    """A file's change as a unified diff; ``before`` may be only the part that changes."""
    old, new = _lines(before), _lines(after)
    verb = "replace" if before and not after.startswith(before) else "append"
    lines = difflib.unified_diff(old, new, f"{name} (now)", f"{name} (then)", lineterm="")
    return Change(safe(path), verb, _bounded("\n".join(lines)))


def new_file(path: str, content: bytes) -> Change:
    """A file that is made, with its content."""
    lines = [f"+{line}" for line in _lines(content)]
    return Change(safe(path), "create", _bounded("\n".join(lines)))


def _lines(data: bytes) -> list[str]:
    text = clean(data.decode(errors="replace"))
    return text.removesuffix("\n").split("\n") if text else []


def _bounded(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "\n…"
