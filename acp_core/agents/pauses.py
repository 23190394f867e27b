"""Why and until when a participant's program is not tried again, as its loop or conductor noted it.

Whoever tells of a pause (diagnoses, commands that follow a run) takes words and moment from here.
"""

from __future__ import annotations

from datetime import datetime

from acp_core.agents.failures import FailureClass
from acp_core.agents.state import Phase, RunnerState, Saved
from acp_core.model.format import moment
from acp_core.model.matter import Until

WORDS = {
    FailureClass.LOGIN: "is not logged in",
    FailureClass.LIMIT: "has reached its usage limit",
    FailureClass.CREDIT: "has no credit left",
    FailureClass.SERVICE: "cannot use its model service",
    FailureClass.MODEL: "asked for a model that is not available",
    FailureClass.CONTEXT: "ran out of context",
}
"""What a class of failures means, as the end of "reader's agent ..."."""


def until(shown: Saved) -> Until | None:
    """When a pause ends; None where there is none, or nobody knows.

    A pause that acp chose itself ends when acp says; one for a limit as exactly as its reset is known.
    """
    if shown.phase is not Phase.PAUSING or shown.retry_at is None:
        return None
    if not shown.limited:
        return Until(shown.retry_at)
    if shown.limit is None:  # as acp 0.2.0 noted it
        return Until(shown.retry_at, source="guess")
    return Until(shown.retry_at, shown.limit.width, "field" if shown.limit.certain else "text")


def outlook(shown: Saved, now: datetime) -> str:
    """What becomes of a failed attempt, for the end of a sentence: when a living loop tries again.

    Args:
        shown: the state of a loop that lives and pauses.
        now: the time: what was due before it is not promised any more.
    """
    if shown.retry_at is None:
        return ""
    failed = shown.run.ended if shown.run and shown.run.ended else shown.retry_at
    text = ""
    if reset := shown.refused_after:
        text = f", which should have been reset at {moment(reset, failed)}"
    at = moment(shown.retry_at, failed)
    if shown.retry_at <= now:
        return f"{text}; its next attempt was due at {at}"
    return f"{text}; {'resumes' if shown.limited else 'retries'} at {at}"


def sentence(runner: RunnerState, now: datetime) -> str:
    """Why a program is not at work although it is to be, and until when; "" where it does not pause.

    Args:
        runner: the conductor of an agent, or a loop.
        now: the time.
    """
    shown = runner.shown
    if not runner.alive or shown.ended is not None:
        return ""
    if shown.capped and shown.phase is Phase.GAVE_UP:
        return f"{shown.participant}'s agent holds: {shown.note}"
    if shown.phase is not Phase.PAUSING:
        return ""
    words = next((words for kind, words in WORDS.items() if kind.value == shown.failure), "")
    if not words:
        return ""
    return f"{shown.participant}'s agent {words}{outlook(shown, now)}"
