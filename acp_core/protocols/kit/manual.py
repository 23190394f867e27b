"""What stands under a command's options in its help: examples, and what its exit code says.

Tables of pages live with the commands that they are about, and are read only when help is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

USUAL = ((0, "done"), (2, "refused, or invalid input"), (130, "interrupted"))
"""Exit codes of a command whose page names no others."""

Exits = tuple[tuple[int, str], ...]


class Page(NamedTuple):
    """Examples, each a whole command line, and the exit codes with their meanings.

    No exit codes: the command's own help names them.
    """

    examples: tuple[str, ...]
    exits: Exits = USUAL

    def text(self) -> str:
        """The page as lines of help."""
        lines = "\n".join(f"  {example}" for example in self.examples)
        codes = "\n".join(f"  {code:<3}  {meaning}" for code, meaning in self.exits)
        return f"\nExamples:\n{lines}" + (f"\n\nExit codes:\n{codes}" if codes else "")


Manual = Mapping[str, Page]
"""Pages by the words of their command, such as ``governed step``."""


def page_of(words: tuple[str, ...], manual: Manual) -> Page | None:
    """The page of the command with which these words begin: the longest that there is."""
    for length in range(len(words), 0, -1):
        found = manual.get(" ".join(words[:length]))
        if found is not None:
            return found
    return None
