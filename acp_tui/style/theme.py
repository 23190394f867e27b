"""The choice of a theme; the colours of states in all of them are in `acp_tui.style.colours`.

Needed before the first picture: this imports nothing that is slow.
"""

from __future__ import annotations

from collections.abc import Iterable

DEFAULT = "textual-dark"
WITHOUT_COLOUR = "ansi-dark"  # says by reversed, bold and dim text what others say by colour


def choose(wanted: str | None, available: Iterable[str], *, colour: bool = True) -> tuple[str, str]:
    """The theme to start with, and what to tell where the wanted one does not exist ("" else).

    Args:
        wanted: What the settings ask for.
        available: The names of all themes.
        colour: Whether colours may be used (``NO_COLOR`` says not).
    """
    if not colour:
        return WITHOUT_COLOUR, ""
    if not wanted:
        return DEFAULT, ""
    names = sorted(available)
    if wanted in names:
        return wanted, ""
    return DEFAULT, f"Unknown theme {wanted!r} (available: {', '.join(names)})."
