"""The colours of states, and the choice of a theme.

A state always shows as a sign (`acp_core.signs`) and a word, then as a colour. Colours come from the theme's own variables (``$success``, ``$error``, ...), so that every
theme of Textual, and the sixteen colours of the terminal, work alike: the names in
the ``..._COLOURS`` are those variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from acp_core.model import Severity, Tone, Verdict

DEFAULT = "textual-dark"
WITHOUT_COLOUR = "ansi-dark"  # says by reversed, bold and dim text what others say by colour

TONE_COLOURS: Mapping[Tone, str] = {
    Tone.START: "text-muted",
    Tone.SUBMIT: "text-primary",
    Tone.REVIEW: "text-accent",
    Tone.REVISE: "text-primary",
    Tone.DECIDE: "text-accent",
    Tone.ACCEPT: "text-success",
    Tone.PASS: "text-success",
    Tone.DONE: "text-success",
    Tone.BLOCKED: "text-error",
    Tone.OTHER: "text-muted",
}
SEVERITY_COLOURS: Mapping[Severity, str] = {
    Severity.ERROR: "text-error",
    Severity.WARNING: "text-warning",
    Severity.ADVICE: "text-muted",
}
VERDICT_COLOURS: Mapping[Verdict, str] = {
    Verdict.VALID: "text-success",
    Verdict.WARNINGS: "text-warning",
    Verdict.INVALID: "text-error",
    Verdict.UNKNOWN: "text-muted",
}


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
    return DEFAULT, f"There is no theme {wanted!r}; there are {', '.join(names)}."
