"""The loop of one participant, as a process: from its spec to its exit code.

It waits for the participant's turn, gives a program the turn's prompt, runs it once, and looks
whether the participant's event appeared: nothing else counts, least of all an exit code. A turn
that was not taken is tried again with what was refused; when that does not help, the loop says
so, stays, and goes on when the turn passes or a person asks it to. Of programs whose changed
documents are all that can be seen of them, it looks at those.

Looking costs a few stat calls: many loops wait on one machine. None of them holds an inotify
instance, and none reads anything as long as names, sizes and times are the same.

Source: folder protocol specification, "Polling And Watchers" (stay alive until completed, blocked
or a deadline; act only when waited for).
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import permissions
from acp_core.agents.background import importable
from acp_core.agents.limits import Budget
from acp_core.agents.live import binding
from acp_core.agents.live.turn import CRASHED, CRASHES, LiveCommand, only_now
from acp_core.agents.loop_directory import CannotClaim, LoopRunning, place
from acp_core.agents.permissions import NO_TOOLS, ToolServer
from acp_core.agents.presets import PresetError
from acp_core.agents.program import Command, Program, SpawnError, missing
from acp_core.agents.session import Session
from acp_core.agents.session_lock import Locks
from acp_core.agents.state import Phase, Run
from acp_core.files import atomic, claims
from acp_core.files.reading import Stamp, Unreadable, read_bounded, stamp
from acp_core.files.watch import Poller
from acp_core.loops import launch, parking
from acp_core.loops.attempts import LATE, Attempts, correction, lost_with_machine, summary
from acp_core.loops.launch import (
    Keeping,
    LaunchError,
    Restart,
    Spec,
    caps_in,
    conductor,
    open_folder,
    recorded,
    save_spec,
    shown_command,
)
from acp_core.loops.parking import Parked
from acp_core.model import OutcomeState, Severity, Status
from acp_core.model.clock import utc_now
from acp_core.model.turn import Mode, TurnState
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.processes import LIVE

_ANYWAY = 30.0  # seconds after which it is read again although nothing seems to have changed

_CALM = 60.0  # seconds without a change after which it is looked at half as often


class Polling:
    """Says when a collaboration is worth reading again.

    Args:
        collaboration: The collaboration.
    """

    def __init__(self, collaboration: Collaboration) -> None:
        self._collaboration = collaboration
        self._poller = Poller()
        self._folders: frozenset[Path] = frozenset()
        self._signs = collaboration.turn_signs()
        self._stamps: list[Stamp | None] = []
        self._read_at = 0.0
        self._changed_at = time.monotonic()

    def changed(self) -> bool:
        """Whether something changed since the last call that said so, or may have.

        Changes that come while the collaboration is being read are seen by the next call.
        """
        now = time.monotonic()
        if self._signs_changed() if self._signs else self._folders_changed():
            self._changed_at = self._read_at = now
            return True
        if now - self._read_at > _ANYWAY:
            self._read_at = now
            return True
        return False

    def pause(self, interval: float) -> float:
        """How long to wait until the next look, in seconds."""
        calm = time.monotonic() - self._changed_at > _CALM
        return 2 * interval if calm else interval

    @property
    def signs(self) -> dict[str, object]:
        """The files that alone matter, with their stamps at the last look; empty without such."""
        pairs = zip(self._signs, self._stamps, strict=False)
        return {str(path): None if seen is None else list(seen) for path, seen in pairs}

    def _signs_changed(self) -> bool:
        stamps = [stamp(path) for path in self._signs]
        before, self._stamps = self._stamps, stamps
        return stamps != before

    def _folders_changed(self) -> bool:
        folders = self._collaboration.watched()
        changed, _ = self._poller.changes()
        if folders != self._folders:
            self._folders = folders
            self._poller.replace(folders)
            return True
        return bool(changed)


_LIMIT = 64 << 20


def digests(paths: Iterable[str]) -> dict[str, str]:
    """The content of each file, as something short that changes with it; "" where none is."""
    found = {}
    for path in paths:
        try:
            found[path] = hashlib.sha256(read_bounded(path, _LIMIT)).hexdigest()
        except Unreadable:
            found[path] = ""
    return found


def before(paths: Iterable[str], moment: datetime) -> dict[str, str]:
    """As `digests` would have been at an earlier moment: a file written since then had another."""
    found = digests(paths)
    for path in found:
        there = stamp(path)
        if there is not None and there.modified / 1e9 > moment.timestamp():
            found[path] = "another"
    return found


class TurnObstacles:
    """Remembers what was wrong with the files while a turn was tried.

    Args:
        collaboration: Where the turns are.
        clock: Says what time it is.
    """

    def __init__(self, collaboration: Collaboration, clock: Callable[[], datetime]) -> None:
        self._collaboration = collaboration
        self._clock = clock
        self._faults: frozenset[tuple[str, ...]] = frozenset()

    def __bool__(self) -> bool:
        """Whether a repair may let the next attempt succeed."""
        return bool(self._faults)

    def begin(self) -> None:
        """Look what is wrong before an attempt: it may be repaired while that is refused for it."""
        self._faults = self._read()

    def failed(self) -> None:
        """Look what is wrong now that the attempt failed."""
        self._faults |= self._read()

    def is_less(self) -> bool:
        """Whether some of the faults were repaired since, and none is new; then asks no more."""
        if not self._faults or not self._read() < self._faults:
            return False
        self._faults = frozenset()
        return True

    def _read(self) -> frozenset[tuple[str, ...]]:
        snapshot = self._collaboration.refresh(self._clock())
        errors = (
            (each.code, each.document or "", each.message)
            for each in snapshot.findings
            if each.severity is Severity.ERROR
        )
        damage = ((each.code, each.key) for each in snapshot.obstacles if each.wanted)
        return frozenset((*errors, *damage))


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


def server_of(collaboration: Collaboration, participant: str) -> ToolServer:
    """The server of a participant's tools; one without a command where none can be started."""
    from acp_core.protocols.kit.tools import tools_in  # late: most programs get no tools

    names = tools_in(collaboration.protocol)
    return permissions.server(collaboration.key, participant, importable(), names)


COMPLETED, GAVE_UP, BLOCKED = 0, 1, 5

PARKS = -1

"""No exit code: the loop has nothing to do, and may be parked (`acp_core.loops.parking`)."""

LOOKS = 10  # looks in vain after which it has nothing to do

_REFUSED = 300  # the same once it could not be parked

_SIGNALS = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}

_LONG = 60.0  # seconds of a pause during which it may be parked

_STUMBLES = 20  # faults of ours in a row after which the loop ends


class Loop:
    """Takes a participant's turns until all is over.

    Args:
        session: The participant's; entered already.
        collaboration: Where the turns are.
        spec: What was asked for.
        clock: Says what time it is.
        seen: Told the time whenever the collaboration was read.
        wait: Waits so many seconds between two looks; by default for a signal, too.
        parks: Looks in vain after which `run` returns `PARKS`; None for never.
    """

    def __init__(
        self,
        session: Session,
        collaboration: Collaboration,
        spec: Spec,
        clock: Callable[[], datetime] = utc_now,
        seen: Callable[[datetime], None] = lambda now: None,
        wait: Callable[[float], None] | None = None,
        parks: int | None = None,
    ) -> None:
        self._session = session
        self._collaboration = collaboration
        self._spec = spec
        self._clock = clock
        self._seen = seen
        self._wait_for = wait or session.signals.wait
        self._liveness = Liveness(session, spec.chosen())
        self._preset = self._liveness.program.preset
        self._brief = spec.brief(session.where, launch.usable_commands(self._preset.commands))
        self._polling = Polling(collaboration)
        self._attempts = Attempts(session, spec, self._preset, clock)
        self._budget = Budget(session, caps_in(session.where, spec), clock)
        self._obstacles = TurnObstacles(collaboration, clock)
        self._turn: TurnState | None = None
        self._ran = False  # a program that takes part alone was started
        self._passed_at: datetime | None = None
        self._looked_at = 0.0
        self._stumbles = 0
        self._parks, self._vain = parks, 0

    def run(self) -> int:
        """Take turns. Returns 0 when completed, 5 when blocked, 1 when it gave up or ran out of
        time, and 128 and the number of the signal that stopped it; `PARKS` where it has nothing
        to do: then it may be run again.
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
        if self._session.stopping:
            self._end(Phase.STOPPED, self._session.stopped)
            return _SIGNALS.get(self._session.stopping, GAVE_UP)
        turn = self._read_turn()
        if turn.over:
            self._end(Phase.DONE, turn.status.value)
            return COMPLETED if turn.status is Status.COMPLETED else BLOCKED
        if self._spec.deadline and self._clock() >= self._spec.deadline:
            self._end(Phase.STOPPED, "the deadline passed")
            return GAVE_UP
        self._attempts.take_message()
        self._liveness.begin_turn(turn)
        if not self._is_due(turn):
            return self._wait(turn)
        self._budget.begin_turn(f"{turn.since_event}/{turn.own}")
        self._attempts.begin_turn(turn)
        if over := self._budget.over():
            return self._hold(over)
        self._budget.release()
        if self._attempts.gave_up:
            return self._stay(turn)
        if left := self._attempts.seconds_left():
            return self._pause(turn, left)
        self._vain = 0
        self._try(turn)
        return None

    def _pause(self, turn: TurnState, left: float) -> int | None:
        """The next attempt may not begin yet."""
        if left > _LONG and self._may_park(turn):
            return PARKS
        self._wait_for(min(self._spec.interval, max(0.01, left)))
        return None

    def _stay(self, turn: TurnState) -> int | None:
        """A person is wanted: stay, so that they see it, unless asked to leave."""
        if self._spec.leave:
            self._end(Phase.GAVE_UP, self._session.state.note)
            return GAVE_UP
        if self._session.state.phase is not Phase.GAVE_UP:
            self._session.update(phase=Phase.GAVE_UP, note=self._attempts.gave_up)
        if self._obstacles.is_less():
            self._session.say("the files were repaired: trying the turn again")
            self._attempts.begin_anew()
        elif not self._obstacles and self._may_park(turn):
            return PARKS
        self._wait_for(self._spec.interval)
        return None

    def _hold(self, over: str) -> int | None:
        """A budget is used up: start nothing until a person raises it, or a new day begins."""
        if self._spec.leave:
            self._session.update(capped=True)
            self._end(Phase.GAVE_UP, over)
            return GAVE_UP
        self._budget.hold(over)
        self._attempts.excuse()
        self._wait_for(self._spec.interval)
        return None

    def _read_turn(self, *, anyway: bool = False) -> TurnState:
        """Where the participant stands; read again only where something changed."""
        if self._polling.changed() or anyway or self._turn is None:
            now = self._clock()
            found = self._collaboration.turn(self._spec.participant, now, self._brief)
            if found is None:
                raise NotImplementedError("this collaboration has no turns for a loop")
            if found.trouble and (self._turn is None or self._turn.trouble != found.trouble):
                self._session.say(f"cannot tell whose turn it is: {found.trouble}")
            self._turn = found
            self._seen(now)
        return self._turn

    def _is_due(self, turn: TurnState) -> bool:
        if self._spec.mode is not Mode.ALONE:
            return turn.waited
        again = turn.waited or bool(self._attempts.gave_up) or self._spec.restart is Restart.ALWAYS
        return again or not self._ran

    def _wait(self, turn: TurnState) -> int | None:
        """It is not our turn: wait for it."""
        note = turn.trouble or turn.what
        if self._session.state.phase is not Phase.WAITING or self._session.state.note != note:
            self._session.update(
                phase=Phase.WAITING,
                note=note,
                retry_at=None,
                limited=False,
                limit=None,
                failure="",
                waits=0,
                troubled=None,
                capped=False,
                turn_deadline=None,
                attempt=0,
            )
            self._seen(self._clock())
            self._vain = 0
        if self._may_park(turn):
            return PARKS
        self._wait_for(self._polling.pause(self._spec.interval))
        return None

    def _may_park(self, turn: TurnState) -> bool:
        """Whether it waited long enough, and nothing is under way that only this process knows."""
        self._vain += 1
        if self._parks is None or self._vain <= self._parks:
            return False
        self._vain = 0
        kept = self._attempts.message or turn.trouble or self._spec.mode is Mode.ALONE
        return not kept and bool(self._polling.signs)

    @property
    def signs(self) -> dict[str, object]:
        """The files whose change may make it this participant's turn, as they were last."""
        return self._polling.signs

    def stay(self) -> None:
        """It could not be parked: wait here, and do not try again soon."""
        self._parks = _REFUSED

    def _try(self, turn: TurnState) -> None:
        """Run the program once for this turn, and judge by the events."""
        self._attempts.begin(turn)
        self._obstacles.begin()
        documents = digests(turn.documents)
        self._ran = True
        self._passed_at = None
        try:
            run = self._session.run(self._command(turn), self._check_quietly)
        except SpawnError as error:
            self._session.say(str(error))
            self._attempts.failed(str(error))
            return
        if not self._liveness.ended(run):
            self._attempts.number -= 1  # that was no try
            return
        self._seen(self._clock())
        self._attempts.message = ""
        self._judge(run, turn, documents)

    def _command(self, turn: TurnState) -> Command | LiveCommand:
        number = self._session.next_number()
        attempts = self._attempts
        server = self._server()
        brief = replace(
            self._brief,
            correction=attempts.correction,
            message=attempts.message,
            tools=server.tools if server.command else (),
        )
        program, drafts = self._liveness.program, str(self._session.where.drafts)
        bound = binding.prepared(program, drafts, self._spec.permissions)
        prompt = self._collaboration.prompt(self._spec.participant, brief)
        prompt += binding.section(program, bound)
        path = self._session.file(number, "prompt")
        atomic.replace(path, prompt.encode(errors="replace"), sync=False, private=True)
        if bound is not None:
            return binding.command(
                program,
                self._session.where,
                self._spec.participant,
                str(path),
                importable(),
                module=LIVE.module,
                server=server,
                bound=bound,
            )
        return program.command(
            prompt,
            str(path),
            drafts,
            importable(),
            tool=launch.tool_words(self._brief.commands),
            commands=launch.allowed_commands(
                self._brief.commands, self._spec.folder, self._spec.participant
            ),
            documents=turn.documents,
            reads=turn.reads,
            server=server,
        )

    def _server(self) -> ToolServer:
        """The server of the participant's tools; nothing is loaded for an agent that gets none."""
        program = self._liveness.program
        gets_any = program.live or self._preset.tools
        if not gets_any or missing(self._preset, program.workdir):
            return NO_TOOLS

        return server_of(self._collaboration, self._spec.participant)

    def _check(self, run: Run) -> str:
        """Why a running program should be stopped now, or ""."""
        now = self._clock()
        if self._spec.deadline and now >= self._spec.deadline:
            return "the deadline passed"
        if self._attempts.late():
            return LATE
        if time.monotonic() - self._looked_at < self._spec.interval:
            return ""
        self._looked_at = time.monotonic()
        if not run.finished and (over := self._budget.over(run)):
            return over
        linger = timedelta(seconds=self._spec.linger)
        if run.finished and now - run.finished > linger:
            return "finished but kept running"
        turn = self._read_turn()
        passed = turn.over
        if self._spec.mode is not Mode.ALONE:
            passed = passed or (not turn.waited and turn.own > self._session.state.own)
        if not passed:
            self._passed_at = None
            return ""
        self._passed_at = self._passed_at or now
        quiet_since = max(run.last_output or run.started, self._passed_at)
        return "the turn was over but it kept running" if now - quiet_since > linger else ""

    def _judge(self, run: Run, began: TurnState, documents: dict[str, str]) -> None:
        """Whether the participant's event appeared, and what follows.

        ``began`` is how the participant stood, ``documents`` what its documents held then.
        """
        own, by = self._session.state.own, "program"
        turn = self._read_turn(anyway=True)
        refused = ""
        if turn.own <= own and self._spec.mode is Mode.CHANGE and not turn.over:
            refused = self._conclude(documents, began.gated)
            turn, by = self._read_turn(anyway=True), "loop"
        settled = time.monotonic() + self._spec.interval  # it may come after its program's end
        while turn.own <= own and not turn.over and not refused and time.monotonic() < settled:
            self._wait_for(self._spec.interval / 5)
            turn = self._read_turn(anyway=True)
        took = turn.own > own
        self._session.record(
            run,
            turn=began.since_event,
            attempt=self._attempts.number,
            took=took,
            event=turn.own_event if took else "",
            recorded_by=by if took else "",
            mode=self._spec.mode.value,
        )
        if took:
            self._attempts.correction = ""
            self._session.say(
                f"event {turn.own_event} appeared"
                + (" (appended by this loop)" if by == "loop" else "")
            )
            self._session.update(turns=self._session.state.turns + 1, own=turn.own, limit=None)
        if self._spec.mode is Mode.ALONE:
            self._ended_alone(run, turn, took)
        elif not took and run.stopped and run.stopped == self._budget.stopped:
            self._attempts.number -= 1  # its fault it was not
        elif not took and not turn.over and lost_with_machine(run):
            self._attempts.correction = correction(run, turn, self._preset)
            self._attempts.number -= 1
        elif not took and not turn.over:
            self._attempts.correction = correction(run, turn, self._preset, refused)
            self._obstacles.failed()
            self._attempts.failed(summary(run, self._preset, refused), run)

    def _ended_alone(self, run: Run, turn: TurnState, took: bool) -> None:
        """A program that takes part alone ended, although all is not over, or is it?"""
        if turn.over:
            return
        if took:
            self._attempts.number = 0
        self._attempts.correction = "" if took else correction(run, turn, self._preset)
        well = run.exit_code == 0 and not run.is_error and not turn.waited
        if well and self._spec.restart is Restart.ON_FAILURE:
            self._attempts.number = 0
            return
        self._attempts.number = max(self._attempts.number, 1)
        self._attempts.failed(summary(run, self._preset), run)

    def _conclude(self, documents: dict[str, str], gated: bool) -> str:
        """Record the turn for a program that only changes documents; why that is not possible."""
        if documents == digests(documents) and not gated:
            names = ", ".join(path.rpartition("/")[2] for path in documents) or "its document"
            return f"nothing was changed: {names} is the same as before"
        by = " ".join(
            filter(None, (self._preset.title or self._spec.name, self._session.state.version))
        )
        outcome = self._collaboration.conclude(
            self._spec.participant, self._brief, by, self._clock()
        )
        self._session.say(outcome.sentence)
        return "" if outcome.state is OutcomeState.DONE else outcome.sentence

    def _recover(self) -> int | None:
        """See to a run that an earlier loop began and did not see the end of."""
        run = self._session.unfinished()
        if run is None:
            return None
        if run.process.alive():
            self._session.say(
                f"taking over process {run.process.pid}, which an earlier loop started"
            )
        else:
            self._session.say(
                "an earlier loop died while its agent was running; the agent has ended since"
            )
        state = self._session.state
        self._attempts.resume()
        self._ran = True
        self._session.update(phase=Phase.RUNNING, note="taken over from an earlier loop")
        ended = self._session.take_over(run, self._check_quietly)
        turn = self._read_turn(anyway=True)
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
        self._session.say(f"the loop ends: {note}")
        over = (
            {"retry_at": None, "limited": False, "limit": None, "capped": False}
            if phase is Phase.DONE
            else {}
        )
        self._session.finish(phase, note, **over)
        self._seen(self._clock())

    def _stumble(self, error: Exception) -> int | None:
        """Something failed that should not: say so, wait, go on; not for ever."""
        self._stumbles += 1
        self._session.say(f"{type(error).__name__}: {error}")
        if self._stumbles >= _STUMBLES or isinstance(error, NotImplementedError):
            self._end(Phase.STOPPED, f"{type(error).__name__}: {error}")
            return GAVE_UP
        self._wait_for(min(60.0, self._spec.interval * 2**self._stumbles))
        return None


class Resumed(NamedTuple):
    """A loop that was parked goes on.

    Attributes:
        locks: what this process holds.
        why: `parking.WAKE`, `parking.LOST`, or the signal that asked it to stop.
    """

    locks: Locks
    why: str


def run(
    spec: Spec,
    *,
    ready: Callable[[], None] | None = None,
    echo: Callable[[str], None] | None = None,
    clock: Callable[[], datetime] = utc_now,
    wait: Callable[[float], None] | None = None,
) -> int:
    """Run a loop in this process until it ends.

    Args:
        spec: what it is asked to do.
        ready: called once the loop is the participant's only one; one that somebody waits for
            in this way is parked while it has nothing to do.
        echo: is given every line of its log.
        clock: says what time it is.
        wait: waits so many seconds; by default for a signal, too. A loop with its own is not parked.

    Returns:
        The exit code, see `Loop.run`.

    Raises:
        LaunchError: it cannot run.
    """
    where = place(spec.folder, spec.participant)
    program = _program(spec)
    collaboration = open_folder(spec.folder)
    try:
        run_id = _run_id(collaboration)
        with _session(spec, program, echo=echo, run_id=run_id, clock=clock) as session:
            save_spec(replace(spec, goes_on=False), where)
            session.say(f"a loop for {spec.participant} with {program.title} starts")
            if ready:
                ready()
            parks = LOOKS if ready and wait is None else None
            return _take_turns(session, collaboration, spec, parks, wait)
    except LoopRunning as error:
        holder = conductor(spec).holder(str(error))
        raise LaunchError(f"{spec.participant} already has a loop{holder}") from None
    except CannotClaim as error:
        raise LaunchError(str(error)) from None
    except OSError as error:
        raise LaunchError(f"{error.filename or where.folder}: {error.strerror or error}") from None
    finally:
        collaboration.close()


def resume(spec: Spec, resumed: Resumed) -> int:
    """Go on with a loop that was parked. Returns the exit code, see `Loop.run`.

    Raises:
        LaunchError: its preset is not what it should be.
        LoopRunning: it is not the participant's only loop any more.
    """
    with _session(spec, _program(spec), locks=resumed.locks) as session:
        if resumed.why not in (parking.WAKE, parking.LOST):
            session.signals.stop = resumed.why
        try:
            collaboration = open_folder(spec.folder)
        except LaunchError as error:
            session.finish(Phase.STOPPED, session.stopped if session.stopping else str(error))
            return GAVE_UP
        try:
            parks = 1 if resumed.why == parking.LOST else LOOKS
            return _take_turns(session, collaboration, spec, parks)
        finally:
            collaboration.close()


def _program(spec: Spec) -> Program:
    try:
        return spec.chosen()
    except PresetError as error:
        raise LaunchError(str(error)) from None


def _run_id(collaboration: Collaboration) -> str:
    """Which run stands there; "" where that cannot be read, which is seen at the first turn."""
    with contextlib.suppress(Exception):
        return collaboration.refresh(utc_now()).run_id
    return ""


def _session(
    spec: Spec,
    program: Program,
    *,
    echo: Callable[[str], None] | None = None,
    locks: Locks | None = None,
    run_id: str = "",
    clock: Callable[[], datetime] = utc_now,
) -> Session:
    return Session.of(
        program,
        spec.participant,
        mode=spec.mode.value,
        attempts=spec.attempts,
        deadline=spec.deadline,
        command=_command(program, spec.participant),
        echo=echo,
        locks=locks,
        run_id=run_id,
        clock=clock,
        goes_on=spec.goes_on,
    )


def _take_turns(
    session: Session,
    collaboration: Collaboration,
    spec: Spec,
    parks: int | None,
    wait: Callable[[float], None] | None = None,
) -> int:
    """Take turns, and be parked in between where ``parks`` says after how many looks in vain."""
    keeping = Keeping(collaboration, spec.folder, spec.participant, recorded(), session.say)
    loop = Loop(
        session,
        collaboration,
        spec,
        clock=session.clock,
        seen=keeping.record,
        wait=wait,
        parks=parks,
    )
    try:
        while (code := loop.run()) == PARKS:
            _park(session, spec, loop, keeping)
        if session.stopping != "SIGTERM":  # else who stops it does this, or the machine ends
            _leave(session, collaboration, spec.participant)
        return code
    finally:
        keeping.close()


def _leave(session: Session, collaboration: Collaboration, participant: str) -> None:
    """Let others act for the participant from now on."""
    if trouble := collaboration.leave(participant):
        session.say(trouble)


def _park(session: Session, spec: Spec, loop: Loop, keeping: Keeping) -> None:
    """Be parked. Returns where that is not possible, or there is something to do after all."""
    where, locks = session.where, session.locks
    if locks is None:
        loop.stay()
        return
    own = parking.own_files(where, claims.lock_of(spec.folder, session.claim))
    if session.stopping:
        return
    who, signs = spec.participant, loop.signs
    until = min(filter(None, (spec.deadline, session.state.retry_at)), default=None)
    parked = Parked(spec.folder, who, session.claim, signs, own, until)
    line = parking.ask(parked)
    if line is None and parking.end_silent():
        line = parking.ask(parked)
    if line is None:
        session.say("no supervisor available: the loop keeps checking by itself")
        loop.stay()
        return
    if session.state.phase is Phase.WAITING:
        session.update(note="not their turn")
    session.signals.let_go()
    if session.signals.stop:  # it came while it was still heeded
        line.connection.close()
        return
    keeping.close()
    parking.become_shell(line, where, locks)


def _command(program: Program, participant: str) -> tuple[str, ...]:
    """The command, to be shown; a program that has gone meanwhile is told of at the first turn."""
    try:
        return shown_command(program, participant)
    except SpawnError:
        return program.words
