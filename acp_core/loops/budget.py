"""The budgets of a loop: what its programs took so far, and whether they may go on."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from acp_core.agents import budgets, ledger, registry
from acp_core.agents.budgets import Cap, Spent, Use
from acp_core.agents.session import Session
from acp_core.agents.state import Phase, Run, RunnerState, Saved
from acp_core.files.reading import stamp
from acp_core.loops import spec as specs
from acp_core.loops.spec import Spec
from acp_core.model.turn import TurnState


class Budget:
    """Measures what was taken against the caps of a loop's spec, which a person may raise meanwhile.

    Args:
        session: The participant's.
        spec: What the loop was asked to do.
        clock: Says what time it is.
    """

    def __init__(self, session: Session, spec: Spec, clock: Callable[[], datetime]) -> None:
        self._session = session
        self._caps = spec.caps
        self._clock = clock
        self._read: object = None
        self._warned: set[tuple[str, str, float]] = set()
        self.stopped = ""  # why a running program was stopped

    def begin_turn(self, turn: TurnState) -> None:
        """Count from nothing where this is another turn than before."""
        state, name = self._session.state, f"{turn.since_event}/{turn.own}"
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
        self._reload()
        if not self._caps:
            return ""
        found = budgets.uses(self._caps, self._spent(run))
        if found != self._session.state.budget:
            self._session.update(budget=found)
        for each in found:
            self._warn(each)
        over = next((each.sentence for each in found if each.is_over), "")
        if run is not None:
            self.stopped = over
        return over

    def hold(self, over: str) -> None:
        """Note that a person must raise a budget first."""
        state = self._session.state
        if state.capped and state.note == over and state.phase is Phase.GAVE_UP:
            return
        self._session.say(f"{over}; it starts nothing until you raise it")
        self._session.update(phase=Phase.GAVE_UP, note=over, capped=True)

    def release(self) -> None:
        """Note that the budgets allow to continue, where they did not before."""
        if self._session.state.capped:
            note = "the budgets allow the next attempt"
            self._session.say(note)
            self._session.update(phase=Phase.PAUSING, note=note, capped=False)

    def _reload(self) -> None:
        where = self._session.where
        read = stamp(where.spec)
        if read != self._read:
            self._read = read
            saved = specs.load(where)
            self._caps = saved.caps if saved else self._caps

    def _warn(self, use: Use) -> None:
        what = (use.scope, use.unit, use.amount)
        if use.is_near and not use.is_over and what not in self._warned:
            self._warned.add(what)
            self._session.say(use.sentence)

    def _spent(self, run: Run | None) -> dict[str, Spent]:
        """What was taken in each scope, as far as a cap asks for it."""
        state, wanted = self._session.state, {cap.scope for cap in self._caps}
        now = of_run(run) if run else Spent()
        began = Spent(state.counted_tokens, state.counted_cost)
        all_turns = of_loop(state)
        turn = Spent(
            all_turns.tokens - began.tokens, max(0.0, all_turns.usd - began.usd), all_turns.unknown
        )
        spent = {"turn": turn + now, "participant": all_turns + now}
        if "collaboration" in wanted:
            others = self._others(registry.runners(state.folder))
            spent["collaboration"] = sum(map(with_run, others), spent["participant"])
        if "day" in wanted:
            others = self._others(registry.runners())
            today = ledger.of_day(self._clock())
            spent["day"] = sum(map(of_running, others), today + now)
        return spent

    def _others(self, loops: list[RunnerState]) -> list[RunnerState]:
        own = self._session.where.folder
        return [each for each in loops if each.place != str(own)]


def of_run(run: Run) -> Spent:
    """What a run took, as far as its program said so."""
    return Spent(run.tokens_in + run.tokens_out, run.cost or 0.0, run.unpriced)


def of_loop(state: Saved) -> Spent:
    """What all runs of a loop took that have ended."""
    return Spent(state.tokens, state.cost or 0.0, state.figures.is_partial)


def of_running(loop: RunnerState) -> Spent:
    """What the run took that is at work."""
    run = loop.run
    return of_run(run) if run is not None and run.ended is None else Spent()


def with_run(loop: RunnerState) -> Spent:
    """What all runs of a loop took, the one at work included."""
    return of_loop(loop.shown) + of_running(loop)


def caps_of(usual: dict[str, str], chosen: list[str]) -> tuple[Cap, ...]:
    """The caps of the settings, as the options change them.

    Raises:
        Refused: one is no amount.
    """
    by_settings = [
        budgets.parse_amount(scope, word)
        for scope, words in usual.items()
        for word in words.replace(",", " ").split()
    ]
    return budgets.merged(by_settings, map(budgets.parse, chosen))
