"""The colours of states, by the names of the theme's own variables (``$success``, ``$error``, ...).

A state always shows as a sign (`acp_core.cli.signs`) and a word, then as a colour. With these
names every theme of Textual, and the sixteen colours of the terminal, work alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from acp_core.model import Severity, Tone, Verdict

if TYPE_CHECKING:
    pass

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
