"""The attempts at one turn: how many there were, when the next may begin, when a person is wanted.

With what a program is told about its last try, and what a person is.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple

from acp_core.agents import limits, registry
from acp_core.agents.failures import Failure, FailureClass, failure_of
from acp_core.agents.presets import Preset
from acp_core.agents.session import Session
from acp_core.agents.state import Phase, Run
from acp_core.loops.launch import Spec
from acp_core.model.turn import Mode, TurnState

_QUOTED = 5  # refusals that are quoted at most
_SAID = 3  # last lines that are quoted where nothing else is known
_STEPS = 8  # last lines that are quoted of a session that grew too large


def meaning(run: Run, preset: Preset) -> str:
    """How a run ended, in words: its exit code with what that means to this program."""
    known = preset.exits.get(run.exit_code) if run.exit_code is not None else None
    return f"{run.exit} ({known})" if known else run.exit


def lost_with_machine(run: Run) -> bool:
    """Whether the machine was restarted while it ran: that is nobody's fault, and no attempt."""
    return run.exit_code is None and run.signal is None and run.process.before_restart


def summary(run: Run, preset: Preset, extra: str = "") -> str:
    """Why a run did not take its turn, in one sentence for people."""
    how = meaning(run, preset)
    if run.cancelled:
        return run.stopped
    if run.stopped:
        how = f"{how}, stopped: {run.stopped}"
    if extra:
        return f"{extra} ({how})"
    if run.is_error and run.error:
        return f"{how}: {run.error}"
    if run.refused:
        return f"{how}, and was refused {', '.join(run.refused[-_QUOTED:])}"
    if run.refusals:
        return f"{how}: {run.refusals[-1]}"
    if run.cut_off:
        return f"{how} before finishing its work"
    if run.exit_code and run.lines:
        return f"{how}: {run.lines[-1]}"
    return f"{how} without an event"


def correction(run: Run, turn: TurnState, preset: Preset, extra: str = "") -> str:
    """What the next try is told: what was refused, word for word, or what is missing.

    Args:
        run: the run that did not take its turn.
        turn: where the participant stands now.
        preset: how the program was run.
        extra: why the loop could not record the turn, where it tried to.
    """
    kind = failure_of(run, preset.exits, run.ended or run.started).kind
    if kind is FailureClass.CONTEXT:
        return _with_less_context(run, turn)
    if lost_with_machine(run):
        return _INTERRUPTED.format(why="the machine was restarted")
    if kind.passes or kind.lasts:
        return _INTERRUPTED.format(why=_NO_SERVICE) if run.tokens_out else ""
    lines = ["Your last attempt ended without recording an event, so it is still your turn."]
    refusals = [extra] if extra else list(run.refusals[-_QUOTED:])
    if refusals:
        lines += ["This event was refused with:", *(f"    {text}" for text in refusals)]
        lines.append("Fix this, then append the event again.")
    if run.refused:
        lines.append("You were denied these tools; work without them:")
        lines += [f"    {tool}" for tool in run.refused[-_QUOTED:]]
    if run.is_error and run.error:
        lines.append(f"It ended with an error: {run.error}")
    elif not refusals and not run.refused:
        lines.append(
            f"It ended with: {meaning(run, preset)}. Nothing was refused; the event is missing."
        )
        lines += [f"    {text}" for text in run.lines[-_SAID:]]
    if turn.what:
        lines.append(f"Still to do: {turn.what}")
    return "\n".join(lines)


_NO_SERVICE = "the model service was not available"
_INTERRUPTED = (
    "Your last attempt was interrupted because {why}, so it is still "
    "your turn. A part of the work may be done: look before you repeat it."
)


def _with_less_context(run: Run, turn: TurnState) -> str:
    """What a new session is told where the last one had grown too large: what that one did."""
    lines = [
        "Your last session ran out of context before it recorded an event, so it is still your turn.",
        "This is a new session. These were the last steps of the old one; its changes are in the files:",
        *(f"    {text}" for text in run.lines[-_STEPS:]),
        "Read only the parts of files that you need, print little output, and take few steps.",
    ]
    if turn.what:
        lines.append(f"Still to do: {turn.what}")
    return "\n".join(lines)


LATE = "the turn's deadline passed"
_NO_PAUSE: dict[str, object] = {
    "retry_at": None, "limited": False, "failure": "", "waits": 0, "troubled": None,
}  # fmt: skip


class _Mark(NamedTuple):
    """What makes a turn this one and not another."""

    since_event: str
    own: int


class Attempts:
    """Counts the attempts at the turn under way, and notes them in the session's state.

    Args:
        session: The participant's.
        spec: What the loop was asked to do.
        preset: How the program is run.
        clock: Says what time it is.

    Attributes:
        number: Of the attempt that runs or ran last; 0 before the first.
        gave_up: Why a person is wanted; "" as long as none is.
        correction: What the next attempt is told about the last.
        message: What a person said about this turn.
    """

    def __init__(
        self, session: Session, spec: Spec, preset: Preset, clock: Callable[[], datetime]
    ) -> None:
        self._session = session
        self._spec = spec
        self._preset = preset
        self._clock = clock
        self._mark: _Mark | None = None
        self._excused = False  # it waits for its model service, which costs the turn no time
        self._next_at: datetime | None = None
        self.number = 0
        self.gave_up = ""
        self.correction = ""
        self.message = ""

    def resume(self) -> None:
        """Go on with the turn that an earlier loop's state tells of."""
        state = self._session.state
        self._mark = self._mark_of(state.turn, state.own)
        self.number = state.attempt

    def take_message(self) -> None:
        """A person's message begins the turn anew."""
        message = registry.take_nudge(self._session.where)
        if message is None:
            return
        self._session.say(f"a person says: {message}" if message else "a person asked for a retry")
        self.message = message
        self._restart()
        phase = self._session.state.phase
        again = Phase.PAUSING if phase is Phase.GAVE_UP else phase
        self._session.update(nudged=self._clock(), phase=again, **_NO_PAUSE)

    def begin_anew(self) -> None:
        """What kept the turn from being taken is gone: the next attempt is the first."""
        self._restart()
        self._session.update(phase=Phase.PAUSING, **_NO_PAUSE)

    def begin_turn(self, turn: TurnState) -> None:
        """Count from nothing where this is another turn than before."""
        mark = self._mark_of(turn.since_event, turn.own)
        if mark == self._mark:
            if self._session.state.turn_deadline is None and not self._excused:
                self._set_limit()
            return
        first, self._mark = self._mark is None, mark
        self.correction = ""
        if first and (self._gave_up_before() or self._goes_on_waiting(turn)):
            return
        self._restart()
        self._session.update(turn=turn.since_event, limit=None, **_NO_PAUSE)

    def _gave_up_before(self) -> bool:
        """Whether this loop gave up on this turn before it was parked."""
        state = self._session.state
        if state.phase is not Phase.GAVE_UP or state.capped:
            return False
        if self._mark_of(state.turn, state.own) != self._mark:
            return False
        self.number, self.gave_up = state.attempt, state.note
        return True

    def _goes_on_waiting(self, turn: TurnState) -> bool:
        """Whether the loop before this one waited for the model service, which goes on then."""
        state = self._session.state
        run, waited = (
            state.run,
            state.failure in (each.value for each in FailureClass if each.passes),
        )
        if run is None or state.retry_at is None or not waited:
            return False
        if self._mark_of(state.turn, state.own) != self._mark:
            return False
        self.number, self._next_at, self._excused = state.attempt, state.retry_at, True
        self.correction = correction(run, turn, self._preset)
        note = summary(run, self._preset)
        self._session.update(phase=Phase.PAUSING, note=note, turn_deadline=None)
        return True

    def _mark_of(self, since_event: str, own: int) -> _Mark:
        """Alone, there is one long turn, which only a person begins anew."""
        return _Mark("", 0) if self._spec.mode is Mode.ALONE else _Mark(since_event, own)

    def _restart(self) -> None:
        self.number = 0
        self.gave_up = ""
        self._next_at = None
        self._excused = False
        self._set_limit()

    def _set_limit(self) -> None:
        if self._spec.turn_limit is not None:
            until = self._clock() + timedelta(seconds=self._spec.turn_limit)
            self._session.update(turn_deadline=until)

    def excuse(self) -> None:
        """The turn waits for something that costs it no time: its limit begins anew afterwards."""
        self._excused = True
        if self._session.state.turn_deadline is not None:
            self._session.update(turn_deadline=None)

    def seconds_left(self) -> float:
        """Seconds until the next attempt may begin; 0 where it may now."""
        if self._next_at is None:
            return 0.0
        return max(0.0, (self._next_at - self._clock()).total_seconds())

    def begin(self, turn: TurnState) -> None:
        """Another attempt at the turn begins."""
        if self._excused:
            self._excused = False
            self._set_limit()
        self.number += 1
        self._session.update(
            phase=Phase.RUNNING,
            since=self._clock(),
            note=turn.what,
            limited=False,
            failure="",
            capped=False,
            turn=turn.since_event,
            own=turn.own,
            attempt=self.number,
            attempts=self._spec.attempts,
            restarts=self._session.state.restarts + (self.number > 1),
            retry_at=None,
        )
        limit = f" of {self._spec.attempts}" if self._spec.attempts else ""
        self._session.say(f"attempt {self.number}{limit}: {turn.what or 'take part'}")

    def late(self) -> bool:
        """Whether the turn takes longer than it may."""
        limit = self._session.state.turn_deadline
        return limit is not None and self._clock() >= limit

    def failed(self, note: str, run: Run | None = None) -> None:
        """The turn was not taken: pause, or give up.

        Args:
            note: why, in a sentence.
            run: the attempt; None where its program could not be started.
        """
        self._session.say(f"the turn was not taken: {note}")
        if self._session.stopping:
            return
        if run and run.cancelled:
            self._give_up(note)
            return
        failure = self._failure(run)
        if failure.kind.passes:
            self._wait(failure, note)
            return
        self._session.update(failure=failure.kind.value, waits=0, troubled=None, limit=None)
        attempts, stopped = self._spec.attempts, run.stopped if run else ""
        used_up = bool(attempts) and self.number >= attempts
        if failure.kind.lasts or stopped == LATE or used_up:
            self._give_up(note)
            return
        pause = self._spec.pause_after(self.number)
        self._next_at = self._clock() + timedelta(seconds=pause)
        self._session.say(f"trying again in {pause:.0f} s")
        self._session.update(phase=Phase.PAUSING, note=note, retry_at=self._next_at)

    def _give_up(self, note: str) -> None:
        self.gave_up = note
        self._session.say("giving up on this turn: it needs a person")
        self._session.update(phase=Phase.GAVE_UP, note=note, retry_at=None, limited=False)

    def _failure(self, run: Run | None) -> Failure:
        if run is None:
            return Failure(FailureClass.AGENT)
        return failure_of(run, self._preset.exits, self._clock())

    def _wait(self, failure: Failure, note: str) -> None:
        """Its model service refuses it for now: that was no attempt, and costs the turn no time.

        Where nobody knows for how long, each pause is longer than the last.
        """
        now, waits = self._clock(), self._session.state.waits + 1
        known = self._session.state.limit
        wait = limits.next_try(failure, self._spec.wait_after(waits), now, known)
        limited = failure.kind is FailureClass.LIMIT and wait.limit is not None
        often = "" if limited else f"the model service failed {waits} times in a row; "
        self._session.say(f"{often}{wait.said}")
        self.number -= 1
        self._next_at, self._excused = wait.until, True
        self._session.update(
            phase=Phase.PAUSING,
            note=note,
            attempt=self.number,
            failure=failure.kind.value,
            limited=wait.limited,
            limit=wait.limit,
            retry_at=wait.until,
            waits=waits,
            troubled=self._session.state.troubled or now,
            turn_deadline=None,
        )
