"""What a participant's programs took so far, and whether its budgets allow another one.

A loop asks before each attempt at a turn, an assignment before each start of its program, and both
while a program works.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime

from acp_core.agents import budgets, ledger, registry
from acp_core.agents.budgets import Cap, Spent, Use
from acp_core.agents.session import Session
from acp_core.agents.state import Phase, Run, RunnerState, Saved

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
        now = of_run(run) if run else Spent()
        began = Spent(state.counted_tokens, state.counted_cost)
        all_turns = of_saved(state)
        turn = Spent(
            all_turns.tokens - began.tokens, max(0.0, all_turns.usd - began.usd), all_turns.unknown
        )
        spent = {"turn": turn + now, "participant": all_turns + now}
        if "collaboration" in wanted:
            others = self._others(registry.runners(state.folder))
            spent["collaboration"] = sum(
                (with_run(each) for each in others if _same_run(each, state)), spent["participant"]
            )
        if "day" in wanted:
            spent["day"] = of_day(self._clock(), now, str(self._session.where.folder))
        return spent

    def _others(self, found: list[RunnerState]) -> list[RunnerState]:
        own = self._session.where.folder
        return [each for each in found if each.place != str(own)]


def of_day(now: datetime, own: Spent, place: str = "") -> Spent:
    """What this account's programs took today: the runs that ended, and those at work.

    Args:
        now: the time.
        own: what the caller's own program took that is at work.
        place: the caller's own place, which ``own`` stands for.
    """
    others = (each for each in registry.runners() if each.place != place)
    return sum(map(of_running, others), ledger.of_day(now) + own)


def of_run(run: Run) -> Spent:
    """What a run took, as far as its program said so."""
    return Spent(run.tokens_in + run.tokens_out, run.cost or 0.0, run.unpriced)


def of_saved(state: Saved) -> Spent:
    """What all runs of a participant took that have ended."""
    return Spent(state.tokens, state.cost or 0.0, state.figures.is_partial)


def of_running(runner: RunnerState) -> Spent:
    """What the run took that is at work."""
    run = runner.run
    return of_run(run) if run is not None and run.ended is None else Spent()


def with_run(runner: RunnerState) -> Spent:
    """What all runs of a participant took, the one at work included."""
    return of_saved(runner.shown) + of_running(runner)


def _same_run(runner: RunnerState, state: Saved) -> bool:
    """Whether figures belong to the same run of a collaboration, as far as that is known."""
    return "" in (runner.shown.run_id, state.run_id) or runner.shown.run_id == state.run_id
