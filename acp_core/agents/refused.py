"""Waiting while a model service refuses a program for now: until when, and as no attempt of the work.

A usage limit is waited for until it is reset. A service may still refuse after that, with the same
words: then it is tried again soon, for an hour, and after that once an hour, until the words can be
about a later time. Where nobody knows for how long, each pause is longer than the last one, up to
half an hour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from acp_core.agents.failures import LONGEST as LONGEST_LIMIT
from acp_core.agents.failures import Failure, FailureClass
from acp_core.agents.session import Session
from acp_core.agents.state import Limit, Phase

FIRST = 5.0  # seconds of the first pause
LONGEST = 1800.0
GROWTH = 3
SPARE = timedelta(seconds=2)  # after a limit's reset, for clocks that differ
AFTER_RESET = (
    1,
    2,
    5,
    10,
)  # minutes between tries after a limit's reset; the last one again and again
HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)  # in which a field and a text may differ that are about one reset
_LOOK = 0.5  # seconds between two looks whether it is still wanted


class Wait(NamedTuple):
    """How a refusal is waited for.

    Attributes:
        until: when to try again; it may have passed while nobody ran.
        said: a sentence that says so.
        limited: whether that is when a limit is reset.
        limit: the usage limit, as it is now known; None for any other trouble.
    """

    until: datetime
    said: str
    limited: bool = False
    limit: Limit | None = None


def pause(times: int, first: float = FIRST, longest: float = LONGEST) -> float:
    """Seconds until the next try, after so many in a row that failed."""
    return float(min(first * GROWTH ** min(times - 1, 20), max(first, longest)))


def next_try(failure: Failure, seconds: float, now: datetime, known: Limit | None = None) -> Wait:
    """When to try again, and a sentence that says so.

    Args:
        failure: it passes by itself.
        seconds: the pause where nobody knows until when it lasts.
        now: the present time.
        known: the limit that refused it before, where it was one.
    """
    told = failure.printed or now
    limit = _limit_of(failure, told, known) if failure.kind is FailureClass.LIMIT else None
    if limit is None:
        until = now + timedelta(seconds=seconds)
        if failure.reset is not None:
            until = max(until, _begins(failure.reset.at, failure.reset.width))
        return Wait(until, f"trying again in {(until - now).total_seconds():.0f} s", limit=known)
    begins = _begins(limit.at, limit.width)
    at = limit.at.isoformat(timespec="minutes" if limit.width == 60 else "seconds")
    if limit.later:
        until = min(told + HOUR, begins) if told < begins else told + HOUR
        said = f"the service still refuses: the limit resets at {at}, or before; trying every hour"
        return Wait(until, said, limit=limit)
    if limit.since is None:
        again = begins.isoformat(timespec="seconds")
        return Wait(begins, f"the limit resets at {at}: trying again at {again}", True, limit)
    pause = HOUR if told - limit.since >= HOUR else timedelta(minutes=_after_reset(limit.late))
    said = f"the limit should have been reset at {at}, but the service still refuses"
    return Wait(told + pause, f"{said}; trying again in {pause.total_seconds():.0f} s", limit=limit)


def _begins(at: datetime, width: float) -> datetime:
    """When the first try after a reset is made: at the end of what was printed of it."""
    return at + timedelta(seconds=width) + SPARE


def _after_reset(late: int) -> int:
    return AFTER_RESET[min(late, len(AFTER_RESET)) - 1]


def _limit_of(failure: Failure, told: datetime, known: Limit | None) -> Limit | None:
    """The limit that refuses it now; None where nobody knows when it is reset.

    The same words as before are no new time: what they meant then has passed, or is still ahead.
    """
    reset = failure.reset
    if reset is None:
        if known is None or told < known.at:
            return None
        limit = known
    elif known is not None and any(abs(each - known.at) < _MINUTE for each in reset.readings):
        limit = known
        if reset.is_field and not known.later:
            limit = replace(known, at=reset.at, width=reset.width, certain=True)
    else:
        limit = Limit(reset.at, reset.width, reset.is_field)
    limit = replace(limit, told=told)
    begins = _begins(limit.at, limit.width)
    if told < begins:
        return limit
    if limit.later:  # now the later reading has passed, too
        limit = replace(limit, later=False, since=None, late=0)
    since = limit.since or told
    limit = replace(limit, since=since, late=limit.late + 1, first=limit.first or since)
    if told - since < HOUR or reset is None:
        return limit
    ahead = [each for each in reset.readings if told < each <= told + LONGEST_LIMIT]
    return replace(limit, at=ahead[0], later=True) if ahead else limit


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
    now, state = session.clock(), session.state
    known = state.limit
    if known and known.told == failure.printed and state.retry_at and state.failure:
        until = state.retry_at  # a session before this one noted this very refusal
        session.say(f"{why}: trying again at {until.isoformat(timespec='seconds')}")
        session.update(phase=Phase.PAUSING, note=why)
    else:
        until, said, limited, limit = next_try(failure, pause(times), now, known)
        session.say(f"{why}: {said}")
        session.update(
            phase=Phase.PAUSING,
            note=why,
            failure=failure.kind.value,
            limited=limited,
            limit=limit,
            retry_at=until,
            waits=times,
            troubled=state.troubled or now,
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
        session.update(failure="", limited=False, limit=None, retry_at=None, waits=0, troubled=None)
