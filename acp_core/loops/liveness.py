"""Whether a loop takes its turns in a live session, or starts its agent for each attempt."""

from __future__ import annotations

from dataclasses import replace

from acp_core.agents.live.turn import CRASHED, CRASHES, only_now
from acp_core.agents.program import Program
from acp_core.agents.session import Session
from acp_core.agents.state import Run
from acp_core.model.turn import TurnState

_INSTEAD = "the agent is started for each attempt"


class Liveness:
    """The program as it is run now.

    Args:
        session: the participant's; its state says to others what holds.
        program: as it was chosen.

    Attributes:
        program: the same, live or not.
    """

    def __init__(self, session: Session, program: Program) -> None:
        self._session = session
        self.program = program
        self._crashes = 0
        self._turn: tuple[str, int] | None = None
        if session.state.live.startswith("no"):  # found out before it was parked
            self.program = replace(program, live=False)

    def begin_turn(self, turn: TurnState) -> None:
        """Where this is another turn than before, a session that crashed or came too late is tried again."""
        now = (turn.since_event, turn.own)
        if now == self._turn:
            return
        self._turn, self._crashes = now, 0
        if only_now(self._session.state.live):
            self.program = replace(self.program, live=True)
            self._session.update(live="yes")

    def ended(self, run: Run) -> bool:
        """See how an attempt ended; False where it was none, as no live session is possible."""
        if run.unusable:
            self._session.say(f"no live session: {run.unusable}; {_INSTEAD} instead")
            self._give_up(f"no: {run.unusable}")
            return False
        if run.crashed:
            self._crashes += 1
            if self._crashes == CRASHES:
                self._session.say(f"the live session crashed again; {_INSTEAD} of this turn")
                self._give_up(CRASHED)
        return True

    def _give_up(self, why: str) -> None:
        self.program = replace(self.program, live=False)
        self._session.update(live=why)
