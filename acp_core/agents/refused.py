"""Waiting while a model service refuses a program for now: until when, and as no attempt of the work.

A usage limit is waited for until it is reset. Where nobody knows for how long, each pause is longer
than the last one, up to half an hour.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from acp_core.agents.failures import Failure, FailureClass
from acp_core.agents.session import Session
from acp_core.agents.state import Phase

FIRST = 5.0  # seconds of the first pause
LONGEST = 1800.0
GROWTH = 3
_SPARE = timedelta(seconds=1)  # after a limit's reset, for clocks that differ
_LOOK = 0.5  # seconds between two looks whether it is still wanted


def pause(times: int, first: float = FIRST, longest: float = LONGEST) -> float:
    """Seconds until the next try, after so many in a row that failed."""
    return float(min(first * GROWTH ** min(times - 1, 20), max(first, longest)))


def next_try(failure: Failure, seconds: float, now: datetime) -> tuple[datetime, str]:
    """When to try again, and a sentence that says so.

    Args:
        failure: it passes by itself.
        seconds: the pause where nobody knows until when it lasts.
        now: the present time.
    """
    until = now + timedelta(seconds=seconds)
    if is_limited(failure) and failure.until:
        until = failure.until + _SPARE
        return until, f"the limit resets at {until.isoformat(timespec='seconds')}"
    until = max(until, failure.until or until)
    return until, f"trying again in {(until - now).total_seconds():.0f} s"


def is_limited(failure: Failure) -> bool:
    """Whether it is a usage limit of which is known when it is reset."""
    return failure.kind is FailureClass.LIMIT and failure.until is not None


def wait(
    session: Session, failure: Failure, why: str, times: int, is_over: Callable[[], str]
) -> str:
    """Wait until a program may be started again; the session's state tells of it.

    Args:
        session: the participant's, entered.
        failure: why its program was refused.
        why: the same in a sentence.
        times: how often in a row.
        is_over: says why it need not be waited for any more, or "".

    Returns:
        Why the wait ended before its time; "" where it did not.
    """
    now = session.clock()
    until, said = next_try(failure, pause(times), now)
    session.say(f"{why}: {said}")
    session.update(
        phase=Phase.PAUSING,
        note=why,
        failure=failure.kind.value,
        limited=is_limited(failure),
        retry_at=until,
        waits=times,
        troubled=session.state.troubled or now,
    )
    while (left := (until - session.clock()).total_seconds()) > 0:
        if session.stopping:
            return session.stopped
        if over := is_over():
            return over
        session.signals.wait(min(_LOOK, max(0.01, left)))
    return ""


def end(session: Session) -> None:
    """It is not refused any more: its state tells of no wait."""
    if session.state.waits:
        session.update(failure="", limited=False, retry_at=None, waits=0, troubled=None)
