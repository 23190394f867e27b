"""Words that every protocol says alike: one safe line, why something is refused, a difference.

Standard library only.
"""

from __future__ import annotations

import difflib

from acp_core.model.text import clean, clean_line
from acp_core.protocols.kit.command_line import reason_of

RETRYING = "; trying again"
"""After the reason why a source is not reached, where acp keeps trying."""
LINE = 2_000
"""Characters of a line of strangers' text that is printed."""
DIFFERENCE = 1 << 16
"""Characters of a difference that is shown."""


def safe(text: str) -> str:
    """One line of any text, safe to show."""
    return clean_line(text, LINE)


def reason(error: Exception) -> str:
    """Why something is not done, on one line; an error of the system with the file it is about."""
    return safe(reason_of(error) if isinstance(error, OSError) else str(error))


def without_retry(note: str) -> str:
    """The reason why a source is not reached, for a command, which does not try again."""
    return note.removesuffix(RETRYING)


def difference(before: bytes, after: bytes, old: str = "now", new: str = "then") -> str:
    """What becomes of a file's bytes, as a unified difference, safe to show.

    A file that is made (nothing stands there before) is shown as its lines, each with a plus.
    """
    if not before:
        return bounded("\n".join(f"+{line}" for line in lines_of(after)))
    return bounded(
        "\n".join(difflib.unified_diff(lines_of(before), lines_of(after), old, new, lineterm=""))
    )


def lines_of(data: bytes) -> list[str]:
    """The lines of a text, safe to show."""
    text = clean(data.decode(errors="replace"))
    return text.removesuffix("\n").split("\n") if text else []


def bounded(text: str) -> str:
    """A text of at most `DIFFERENCE` characters; what is too long ends in "…"."""
    return text if len(text) <= DIFFERENCE else text[:DIFFERENCE] + "\n…"
