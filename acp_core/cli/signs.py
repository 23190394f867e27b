"""The signs that stand for states, the same on the screen and in what commands print.

A state always shows as a sign and a word, then as a colour: signs are for a quick eye,
and nothing is said by colour alone.
"""

from __future__ import annotations

from collections.abc import Mapping

from acp_core.model import PhaseState, Row, Severity, SourceState, Status, Tone, Verdict

NEED = "!"
"""A human is wanted."""

TONE: Mapping[Tone, str] = {
    Tone.START: "○",
    Tone.SUBMIT: "▲",
    Tone.REVIEW: "◆",
    Tone.REVISE: "△",
    Tone.DECIDE: "◇",
    Tone.ACCEPT: "✓",
    Tone.PASS: "»",
    Tone.DONE: "●",
    Tone.BLOCKED: "■",
    Tone.OTHER: "·",
}
SEVERITY: Mapping[Severity, str] = {
    Severity.ERROR: "✗",
    Severity.WARNING: "!",
    Severity.ADVICE: "i",
}
PHASE: Mapping[PhaseState, str] = {
    PhaseState.AHEAD: "○",
    PhaseState.CURRENT: "●",
    PhaseState.DONE: "✓",
    PhaseState.SKIPPED: "–",
}
STATUS: Mapping[Status, str] = {
    Status.ACTIVE: "○",
    Status.COMPLETED: "✓",
    Status.BLOCKED: "■",
    Status.UNKNOWN: "?",
}
VERDICT: Mapping[Verdict, str] = {
    Verdict.VALID: "✓",
    Verdict.WARNINGS: "!",
    Verdict.INVALID: "✗",
    Verdict.UNKNOWN: "?",
}
CHECKED: Mapping[bool, str] = {True: "✓", False: "✗"}
"""Whether something that is demanded is met."""
_URGENT = (Tone.REVIEW, Tone.REVISE, Tone.BLOCKED)
SOURCE: Mapping[SourceState, str] = {
    SourceState.LIVE: "",
    SourceState.STALE: "~",
    SourceState.UNREACHABLE: "?",
}


def of_row(row: Row) -> str:
    """The sign before a row of a card: met or not, or that it speaks against a decision."""
    if row.checked is not None:
        return CHECKED[row.checked]
    return NEED if row.tone in _URGENT else ""
