"""What the signs on the screens mean, for help."""

from __future__ import annotations

from acp_core.cli import signs
from acp_core.model import PhaseState, Severity, Tone, Verdict
from acp_tui.widgets import fleet_lines

_TONES = {
    Tone.START: "started",
    Tone.SUBMIT: "submitted",
    Tone.REVIEW: "reviewed",
    Tone.REVISE: "revised",
    Tone.DECIDE: "decided, classified",
    Tone.ACCEPT: "accepted",
    Tone.PASS: "passed a check",
    Tone.DONE: "finished",
    Tone.BLOCKED: "blocked",
    Tone.OTHER: "anything else",
}

LEGEND: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    ("fleet", fleet_lines.LEGEND),
    (
        "phases",
        (
            (signs.PHASE[PhaseState.DONE], "done"),
            (signs.PHASE[PhaseState.CURRENT], "current"),
            (signs.PHASE[PhaseState.AHEAD], "ahead"),
            (signs.PHASE[PhaseState.SKIPPED], "skipped"),
        ),
    ),
    (
        "events",
        (
            *((signs.TONE[tone], words) for tone, words in _TONES.items()),
            ("✗", "illegal"),
            ("↳", "replies to"),
            ("•", "new since your last visit"),
        ),
    ),
    (
        "findings",
        tuple((signs.SEVERITY[severity], severity.value) for severity in Severity),
    ),
    (
        "files",
        (
            (signs.VERDICT[Verdict.VALID], "valid"),
            (signs.VERDICT[Verdict.INVALID], "invalid"),
            (signs.VERDICT[Verdict.UNKNOWN], "not validated"),
        ),
    ),
    (
        "participants",
        (("●", "has the turn"), ("○", "waits")),
    ),
    (
        "everywhere",
        ((signs.NEED, "needs a person"), ("❯", "selected"), ("…", "cut: enter shows all")),
    ),
)
"""Where signs stand, and each sign there with its meaning."""
