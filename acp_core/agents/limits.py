"""Whether a participant's program may be started now: what its budgets allow, and how a refusal is waited for.

A loop asks for the budgets before each attempt at a turn, an assignment before each start of its
program, and both while a program works. Where a model service refuses a program for now, that is no
attempt of the work: a usage limit is waited for until it is reset. A service may still refuse after
that, with the same words: then it is tried again soon, for an hour, and after that once an hour,
until the words can be about a later time. Where nobody knows for how long, each pause is longer than
the last one, up to half an hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from acp_core.agents import budgets, registry
from acp_core.agents.budgets import Cap, Spent, Use
from acp_core.agents.failures import LONGEST as LONGEST_LIMIT
from acp_core.agents.failures import Failure, FailureClass
from acp_core.agents.session import Session
from acp_core.agents.state import Limit, Phase, Run, RunnerState, Saved

FIRST_PAUSE = 5.0  # seconds of the first pause

LONGEST_PAUSE = 1800.0

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


def pause_after(times: int, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> float:
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


def wait_until_accepted(
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
        until, said, limited, limit = next_try(failure, pause_after(times), now, known)
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


def end_wait(session: Session) -> None:
    """It is not refused any more: its state tells of no wait."""
    if session.state.waits:
        session.update(failure="", limited=False, limit=None, retry_at=None, waits=0, troubled=None)


LOOK = 0.5  # seconds between two measures


class Budget:
    """Measures what was taken against caps, which a person may raise meanwhile.

    Args:
        session: The participant's.
        caps: Gives the caps as they are now.
        clock: Says what time it is; by default the session's.
    """

    def __init__(
        self,
        session: Session,
        caps: Callable[[], Sequence[Cap]],
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._session = session
        self._caps = caps
        self._clock = clock or session.clock
        self._warned: set[tuple[str, str, float]] = set()
        self._looked = 0.0
        self.stopped = ""  # why a running program was stopped

    def begin_turn(self, name: str) -> None:
        """Count from nothing where this is another turn than before.

        Args:
            name: the turn; the same for all attempts at it.
        """
        state = self._session.state
        if state.counted == name:
            return
        self._session.update(
            counted=name, counted_tokens=state.tokens, counted_cost=state.cost or 0.0
        )

    def over(self, run: Run | None = None) -> str:
        """Why no program may go on, in a sentence; "" where one may.

        Args:
            run: the one at work; what it took so far counts, as far as it says so.
        """
        caps = self._caps()
        if not caps:
            return ""
        found = budgets.uses(caps, self._spent(run, {cap.scope for cap in caps}))
        if found != self._session.state.budget:
            self._session.update(budget=found)
        for each in found:
            self._warn(each)
        over = next((each.sentence for each in found if each.is_over), "")
        if run is not None:
            self.stopped = over
        return over

    def check(self, run: Run) -> str:
        """Why a program at work may not go on; measured now and then, and not once it is through."""
        if run.finished or time.monotonic() - self._looked < LOOK:
            return ""
        self._looked = time.monotonic()
        return self.over(run)

    def hold(self, over: str) -> None:
        """Note that a person must raise a budget first."""
        state = self._session.state
        if state.capped and state.note == over and state.phase is Phase.GAVE_UP:
            return
        self._session.say(f"{over}; it starts nothing until you raise it")
        self._session.update(phase=Phase.GAVE_UP, note=over, capped=True)

    def release(self, note: str = "the budgets allow the next attempt") -> None:
        """Note that the budgets hold nothing any more, where they did before.

        Args:
            note: why.
        """
        if self._session.state.capped:
            self._session.say(note)
            self._session.update(phase=Phase.PAUSING, note=note, capped=False)

    def _warn(self, use: Use) -> None:
        what = (use.scope, use.unit, use.amount)
        if use.is_near and not use.is_over and what not in self._warned:
            self._warned.add(what)
            self._session.say(use.sentence)

    def _spent(self, run: Run | None, wanted: set[str]) -> dict[str, Spent]:
        """What was taken in each scope, as far as a cap asks for it."""
        state = self._session.state
        now = spent_by_run(run) if run else Spent()
        began = Spent(state.counted_tokens, state.counted_cost)
        all_turns = spent_before(state)
        turn = Spent(
            all_turns.tokens - began.tokens, max(0.0, all_turns.usd - began.usd), all_turns.unknown
        )
        spent = {"turn": turn + now, "participant": all_turns + now}
        if "collaboration" in wanted:
            others = self._others(registry.runners(state.folder))
            spent["collaboration"] = sum(
                (spent_with_run(each) for each in others if _same_run(each, state)),
                spent["participant"],
            )
        if "day" in wanted:
            spent["day"] = spent_today(self._clock(), now, str(self._session.where.folder))
        return spent

    def _others(self, found: list[RunnerState]) -> list[RunnerState]:
        own = self._session.where.folder
        return [each for each in found if each.place != str(own)]


def spent_today(now: datetime, own: Spent, place: str = "") -> Spent:
    """What this account's programs took today: the runs that ended, and those at work.

    Args:
        now: the time.
        own: what the caller's own program took that is at work.
        place: the caller's own place, which ``own`` stands for.
    """
    others = (each for each in registry.runners() if each.place != place)
    return sum(map(spent_at_work, others), budgets.spent_on(now) + own)


def spent_by_run(run: Run) -> Spent:
    """What a run took, as far as its program said so."""
    return Spent(run.tokens_in + run.tokens_out, run.cost or 0.0, run.unpriced)


def spent_before(state: Saved) -> Spent:
    """What all runs of a participant took that have ended."""
    return Spent(state.tokens, state.cost or 0.0, state.figures.is_partial)


def spent_at_work(runner: RunnerState) -> Spent:
    """What the run took that is at work."""
    run = runner.run
    return spent_by_run(run) if run is not None and run.ended is None else Spent()


def spent_with_run(runner: RunnerState) -> Spent:
    """What all runs of a participant took, the one at work included."""
    return spent_before(runner.shown) + spent_at_work(runner)


def _same_run(runner: RunnerState, state: Saved) -> bool:
    """Whether figures belong to the same run of a collaboration, as far as that is known."""
    return "" in (runner.shown.run_id, state.run_id) or runner.shown.run_id == state.run_id
