"""The loop of one participant.

It waits for the participant's turn, gives a program the turn's prompt, runs it once, and looks
whether the participant's event appeared: nothing else counts, least of all an exit code. A turn
that was not taken is tried again with what was refused; when that does not help, the loop says
so, stays, and goes on when the turn passes or a person asks it to.

Source: folder protocol specification, "Polling And Watchers" (stay alive until completed, blocked
or a deadline; act only when waited for).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from acp_core.agents import registry
from acp_core.agents.background import importable
from acp_core.agents.limits import reset_at
from acp_core.agents.spawn import Command, SpawnError, Values, build
from acp_core.agents.state import Phase, Run
from acp_core.agents.supervise import Runner
from acp_core.files import atomic
from acp_core.loops import commands
from acp_core.loops.correction import correction, summary
from acp_core.loops.digests import before, digests
from acp_core.loops.parked import Parked
from acp_core.loops.spec import Restart, Spec
from acp_core.model import OutcomeState, Status
from acp_core.model.clock import utc_now
from acp_core.model.turn import Mode, TurnState
from acp_core.protocols.contract import Collaboration

COMPLETED, GAVE_UP, BLOCKED = 0, 1, 5
_SIGNALS = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}
_LATE = "the turn's deadline passed"
_SPARE = timedelta(seconds=1)  # after a limit's reset, for clocks that differ
_STUMBLES = 20  # faults of ours in a row after which the loop ends


class _Mark(NamedTuple):
    """What makes a turn this one and not another."""

    since_event: str
    own: int


class Loop:
    """Takes a participant's turns until all is over.

    Args:
        runner: Runs the program; entered already.
        collaboration: Where the turns are.
        spec: What was asked for.
        clock: Says what time it is.
        seen: Told the time whenever the collaboration was read.
    """

    def __init__(
        self,
        runner: Runner,
        collaboration: Collaboration,
        spec: Spec,
        clock: Callable[[], datetime] = utc_now,
        seen: Callable[[datetime], None] = lambda now: None,
    ) -> None:
        self._runner = runner
        self._collaboration = collaboration
        self._spec = spec
        self._clock = clock
        self._seen = seen
        self._preset = spec.resolved()
        self._brief = spec.brief(runner.where, commands.usable(self._preset.commands))
        self._parked = Parked(collaboration)
        self._turn: TurnState | None = None
        self._mark: _Mark | None = None
        self._attempt = 0
        self._ran = False  # a program that takes part alone was started
        self._correction = ""
        self._message = ""
        self._gave_up = ""  # why, once it did
        self._limited = False  # until `_next_at`, its model service refuses it
        self._next_at: datetime | None = None
        self._passed_at: datetime | None = None
        self._looked_at = 0.0
        self._stumbles = 0

    def run(self) -> int:
        """Take turns. Returns 0 when completed, 5 when blocked, 1 when it gave up or ran out of
        time, and 128 and the number of the signal that stopped it.
        """
        step = self._recover
        while True:
            try:
                code = step()
                step = self._step
                self._stumbles = 0
            except Exception as error:  # a fault of ours must not end a collaboration
                code = self._stumble(error)
            if code is not None:
                return code

    def _step(self) -> int | None:
        """Do the next thing; an exit code when there is nothing more to do."""
        if self._runner.stopping:
            self._end(Phase.STOPPED, f"stopped by {self._runner.stopping}")
            return _SIGNALS.get(self._runner.stopping, GAVE_UP)
        turn = self._look()
        if turn.over:
            self._end(Phase.DONE, turn.status.value)
            return COMPLETED if turn.status is Status.COMPLETED else BLOCKED
        if self._spec.deadline and self._clock() >= self._spec.deadline:
            self._end(Phase.STOPPED, "the deadline passed")
            return GAVE_UP
        self._take_message()
        if not self._is_due(turn):
            self._wait(turn)
            return None
        self._begin_turn(turn)
        if self._gave_up:
            return self._stay()
        if self._next_at and self._clock() < self._next_at:
            left = (self._next_at - self._clock()).total_seconds()
            self._runner.signals.wait(min(self._spec.interval, max(0.01, left)))
            return None
        self._try(turn)
        return None

    def _stay(self) -> int | None:
        """A person is wanted: stay, so that they see it, unless asked to leave."""
        if self._spec.leave:
            self._end(Phase.GAVE_UP, self._runner.state.note)
            return GAVE_UP
        if self._runner.state.phase is not Phase.GAVE_UP:
            self._runner.update(phase=Phase.GAVE_UP, note=self._gave_up)
        self._runner.signals.wait(self._spec.interval)
        return None

    def _look(self, *, anyway: bool = False) -> TurnState:
        """Where the participant stands; read again only where something changed."""
        if self._parked.changed() or anyway or self._turn is None:
            now = self._clock()
            found = self._collaboration.turn(self._spec.participant, now, self._brief)
            if found is None:
                raise NotImplementedError("there are no turns here that a loop could take")
            if found.trouble and (self._turn is None or self._turn.trouble != found.trouble):
                self._runner.say(f"cannot tell whose turn it is: {found.trouble}")
            self._turn = found
            self._seen(now)
        return self._turn

    def _is_due(self, turn: TurnState) -> bool:
        if self._spec.mode is not Mode.ALONE:
            return turn.waited
        again = turn.waited or bool(self._gave_up) or self._spec.restart is Restart.ALWAYS
        return again or not self._ran

    def _wait(self, turn: TurnState) -> None:
        """It is not our turn: park."""
        note = turn.trouble or turn.what
        if self._runner.state.phase is not Phase.WAITING or self._runner.state.note != note:
            self._runner.update(
                phase=Phase.WAITING,
                note=note,
                retry_at=None,
                limited=False,
                turn_deadline=None,
                attempt=0,
            )
            self._seen(self._clock())
        self._runner.signals.wait(self._parked.pause(self._spec.interval))

    def _take_message(self) -> None:
        """A person's message begins the turn anew."""
        message = registry.take_nudge(self._runner.where)
        if message is None:
            return
        self._runner.say(f"a person says: {message}" if message else "a person asks to try again")
        self._message = message
        self._restart_turn()
        self._runner.update(nudged=self._clock())

    def _begin_turn(self, turn: TurnState) -> None:
        """Count from nothing where this is another turn than before."""
        mark = self._mark_of(turn.since_event, turn.own)
        if mark == self._mark:
            if self._runner.state.turn_deadline is None and not self._limited:
                self._set_limit()
            return
        self._mark = mark
        self._correction = ""
        self._restart_turn()
        self._runner.update(turn=turn.since_event)

    def _mark_of(self, since_event: str, own: int) -> _Mark:
        """Alone, there is one long turn, which only a person begins anew."""
        return _Mark("", 0) if self._spec.mode is Mode.ALONE else _Mark(since_event, own)

    def _restart_turn(self) -> None:
        self._attempt = 0
        self._gave_up = ""
        self._next_at = None
        self._limited = False
        self._set_limit()

    def _set_limit(self) -> None:
        if self._spec.turn_limit is not None:
            until = self._clock() + timedelta(seconds=self._spec.turn_limit)
            self._runner.update(turn_deadline=until)

    def _try(self, turn: TurnState) -> None:
        """Run the program once for this turn, and judge by the events."""
        if self._limited:
            self._limited = False
            self._set_limit()
        self._attempt += 1
        again = self._attempt > 1
        self._runner.update(
            phase=Phase.RUNNING,
            note=turn.what,
            limited=False,
            turn=turn.since_event,
            own=turn.own,
            attempt=self._attempt,
            attempts=self._spec.attempts,
            restarts=self._runner.state.restarts + again,
            retry_at=None,
        )
        limit = f" of {self._spec.attempts}" if self._spec.attempts else ""
        self._runner.say(f"try {self._attempt}{limit}: {turn.what or 'take part'}")
        documents = digests(turn.documents)
        self._ran = True
        self._passed_at = None
        try:
            run = self._runner.run(self._command(turn), self._check_quietly)
        except SpawnError as error:
            self._runner.say(str(error))
            self._failed(str(error))
            return
        self._seen(self._clock())
        self._message = ""
        self._judge(run, turn, documents)

    def _command(self, turn: TurnState) -> Command:
        number = self._runner.next_number()
        brief = replace(self._brief, correction=self._correction, message=self._message)
        prompt = self._collaboration.prompt(self._spec.participant, brief)
        path = self._runner.file(number, "prompt")
        atomic.replace(path, prompt.encode(errors="replace"), sync=False)
        values = Values(
            folder=self._spec.folder,
            workdir=self._spec.workdir,
            drafts=str(self._runner.where.drafts),
            prompt=prompt,
            prompt_file=str(path),
            model=self._spec.model,
            tool=commands.tool(self._brief.commands),
            documents=turn.documents,
            reads=turn.reads,
        )
        command = build(self._preset, values, self._spec.program or None)
        return replace(command, env={**command.env, **importable()})

    def _check(self, run: Run) -> str:
        """Why a running program should be stopped now, or ""."""
        now = self._clock()
        if self._spec.deadline and now >= self._spec.deadline:
            return "the deadline passed"
        limit = self._runner.state.turn_deadline
        if limit and now >= limit:
            return _LATE
        if time.monotonic() - self._looked_at < self._spec.interval:
            return ""
        self._looked_at = time.monotonic()
        linger = timedelta(seconds=self._spec.linger)
        if run.finished and now - run.finished > linger:
            return "it had finished and went on running"
        turn = self._look()
        passed = turn.over
        if self._spec.mode is not Mode.ALONE:
            passed = passed or (not turn.waited and turn.own > self._runner.state.own)
        if not passed:
            self._passed_at = None
            return ""
        self._passed_at = self._passed_at or now
        quiet_since = max(run.last_output or run.started, self._passed_at)
        return "its turn was over and it went on running" if now - quiet_since > linger else ""

    def _judge(self, run: Run, began: TurnState, documents: dict[str, str]) -> None:
        """Whether the participant's event appeared, and what follows.

        ``began`` is how the participant stood, ``documents`` what its documents held then.
        """
        own, by = self._runner.state.own, "program"
        turn = self._look(anyway=True)
        refused = ""
        if turn.own <= own and self._spec.mode is Mode.CHANGE and not turn.over:
            refused = self._conclude(documents, began.gated)
            turn, by = self._look(anyway=True), "loop"
        settled = time.monotonic() + self._spec.interval  # it may come after its program's end
        while turn.own <= own and not turn.over and not refused and time.monotonic() < settled:
            self._runner.signals.wait(self._spec.interval / 5)
            turn = self._look(anyway=True)
        took = turn.own > own
        self._runner.record(
            run,
            turn=began.since_event,
            attempt=self._attempt,
            took=took,
            event=turn.own_event if took else "",
            recorded_by=by if took else "",
            mode=self._spec.mode.value,
        )
        if took:
            self._correction = ""
            self._runner.say(
                f"event {turn.own_event} appeared"
                + (" (appended by this loop)" if by == "loop" else "")
            )
            self._runner.update(turns=self._runner.state.turns + 1, own=turn.own)
        if self._spec.mode is Mode.ALONE:
            self._ended_alone(run, turn, took)
        elif not took and not turn.over:
            self._correction = correction(run, turn, self._preset, refused)
            self._failed(summary(run, self._preset, refused), run)

    def _ended_alone(self, run: Run, turn: TurnState, took: bool) -> None:
        """A program that takes part alone ended, although all is not over, or is it?"""
        if turn.over:
            return
        if took:
            self._attempt = 0
        self._correction = "" if took else correction(run, turn, self._preset)
        well = run.exit_code == 0 and not run.is_error and not turn.waited
        if well and self._spec.restart is Restart.ON_FAILURE:
            self._attempt = 0
            return
        self._attempt = max(self._attempt, 1)
        self._failed(summary(run, self._preset), run)

    def _conclude(self, documents: dict[str, str], gated: bool) -> str:
        """Record the turn for a program that only changes documents; why that is not possible."""
        if documents == digests(documents) and not gated:
            names = ", ".join(path.rpartition("/")[2] for path in documents) or "its document"
            return f"nothing was changed: {names} stands as before"
        by = " ".join(
            filter(None, (self._preset.title or self._spec.name, self._runner.state.version))
        )
        outcome = self._collaboration.conclude(
            self._spec.participant, self._brief, by, self._clock()
        )
        self._runner.say(outcome.sentence)
        return "" if outcome.state is OutcomeState.DONE else outcome.sentence

    def _failed(self, note: str, run: Run | None = None) -> None:
        """The turn was not taken: pause, or give up."""
        self._runner.say(f"the turn was not taken: {note}")
        if self._runner.stopping:
            return
        reset = reset_at((run.error, *reversed(run.lines)), self._clock()) if run else None
        if reset is not None and (run is None or run.exit_code or run.is_error):
            self._wait_for_reset(reset, note)
            return
        attempts, stopped = self._spec.attempts, run.stopped if run else ""
        if stopped == _LATE or (attempts and self._attempt >= attempts):
            self._gave_up = note
            self._runner.say("giving up on this turn: a person is wanted")
            self._runner.update(phase=Phase.GAVE_UP, note=note, retry_at=None, limited=False)
            return
        pause = self._spec.pause_after(self._attempt)
        self._next_at = self._clock() + timedelta(seconds=pause)
        self._runner.say(f"trying again in {pause:.0f} s")
        self._runner.update(phase=Phase.PAUSING, note=note, retry_at=self._next_at)

    def _wait_for_reset(self, reset: datetime, note: str) -> None:
        """Its model service refuses it until then: that was no try, and costs the turn no time."""
        self._attempt -= 1
        self._next_at = reset + _SPARE
        self._limited = True
        self._runner.say(f"its limit is reset at {self._next_at.isoformat(timespec='seconds')}")
        self._runner.update(
            phase=Phase.PAUSING, note=note, limited=True, retry_at=self._next_at, turn_deadline=None
        )

    def _recover(self) -> int | None:
        """See to a run that an earlier loop began and did not see the end of."""
        run = self._runner.unfinished()
        if run is None:
            return None
        if run.process.alive():
            self._runner.say(
                f"taking over process {run.process.pid}, which an earlier loop started"
            )
        else:
            self._runner.say("an earlier loop died while the program ran, which has ended since")
        state = self._runner.state
        self._mark = self._mark_of(state.turn, state.own)
        self._attempt = state.attempt
        self._ran = True
        self._runner.update(phase=Phase.RUNNING, note="taken over from an earlier loop")
        ended = self._runner.take_over(run, self._check_quietly)
        turn = self._look(anyway=True)
        began = replace(turn, since_event=state.turn, own=state.own)
        self._judge(ended, began, before(turn.documents, run.started))
        return None

    def _check_quietly(self, run: Run) -> str:
        """As `_check`; what cannot be read now is no reason to stop a program."""
        try:
            return self._check(run)
        except Exception:
            return ""

    def _end(self, phase: Phase, note: str) -> None:
        self._runner.say(f"the loop ends: {note}")
        self._runner.end_strays()
        self._runner.update(
            phase=phase, note=note, retry_at=None, limited=False, ended=self._clock()
        )
        self._seen(self._clock())

    def _stumble(self, error: Exception) -> int | None:
        """Something failed that should not: say so, wait, go on; not for ever."""
        self._stumbles += 1
        self._runner.say(f"{type(error).__name__}: {error}")
        if self._stumbles >= _STUMBLES or isinstance(error, NotImplementedError):
            self._end(Phase.STOPPED, f"{type(error).__name__}: {error}")
            return GAVE_UP
        self._runner.signals.wait(min(60.0, self._spec.interval * 2**self._stumbles))
        return None
