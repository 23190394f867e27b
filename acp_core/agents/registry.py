"""The loops and conductors of this account: which there are, whether they live, and how to start and end them.

What a loop says of itself stands in its state file; whether its processes are alive is asked of
the system, by process id and birth, at every look: a reboot leaves none shown as alive. What conducts sessions for long (a loop, a cycle's orchestrator, the watcher of an agent) has the
place of a participant, so that there is one of it, and everybody sees whether it runs, what it does
and its log. It runs in a terminal, or as a module in the background (`acp_core.agents.background`),
where it outlives whoever started it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from acp_core.agents import background, codec, session_lock
from acp_core.agents.loop_directory import LoopDirectory, LoopRunning, place, root
from acp_core.agents.processes import GRACE, Identity, Stopped, end
from acp_core.agents.state import Phase, Run, RunnerState, Saved
from acp_core.files import atomic, claims
from acp_core.files.claims import Seen
from acp_core.files.reading import Stamp, read_bounded, stamp
from acp_core.files.secrets import mask, mask_command
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted
from acp_core.model.text import clean_line, clean_name
from acp_core.person.paths import key_of

_AT_ONCE = 256  # loops that are stopped at the same time

_OWN = 5.0  # seconds that a loop gets beyond those of its program


class Registry:
    """Looks at all loops again and again; unchanged state files are not read again."""

    def __init__(self) -> None:
        self._read: dict[Path, tuple[Stamp, Saved, Saved]] = {}

    def runners(self, folder: str | None = None) -> list[RunnerState]:
        """Every loop, or those of one collaboration (a path or URL), oldest first."""
        wanted = None if folder is None else key_of(folder)
        found = []
        for each in _places():
            read = self._saved(each)
            if read and (wanted is None or read[0].folder == wanted):
                found.append(_state(each, *read))
        return sorted(found, key=lambda state: (state.started, state.participant))

    def _saved(self, where: LoopDirectory) -> tuple[Saved, Saved] | None:
        """The state of a loop as it stands in its file, and the same safe to show."""
        seen = stamp(where.state)
        if seen is None:
            self._read.pop(where.folder, None)
            return None
        known = self._read.get(where.folder)
        if known is None or known[0] != seen:
            saved = load(where)
            if saved is None:
                return known[1:] if known else None
            known = (seen, saved, _safe(saved))
            self._read[where.folder] = known
        return known[1:]


def runners(folder: str | None = None) -> list[RunnerState]:
    """Every loop, or those of one collaboration (a path or URL), oldest first: one look."""
    return Registry().runners(folder)


def find(folder: str, participant: str) -> RunnerState | None:
    """The loop of one participant that this account started, running or not; None where there was none.

    Args:
        folder: the collaboration, a path or URL.
        participant: an id as the files have it, not as Snapshots show it.
    """
    where = place(folder, participant)
    saved = load(where)
    return _state(where, saved, _safe(saved)) if saved else None


def load(where: LoopDirectory) -> Saved | None:
    """What a loop's state file says, as it stands there; None where it cannot be read."""
    try:
        return codec.read(Saved, where.state)
    except codec.CodecError:
        return None


def _places() -> list[LoopDirectory]:
    try:
        return [LoopDirectory(Path(entry.path)) for entry in os.scandir(root()) if entry.is_dir()]
    except OSError:
        return []


def _state(where: LoopDirectory, saved: Saved, shown: Saved) -> RunnerState:
    return RunnerState(
        folder=saved.folder,
        participant=saved.participant,
        shown=shown,
        alive=saved.process.alive(),
        program_alive=bool(saved.run and saved.run.ended is None and saved.run.process.alive()),
        log=str(where.log),
        place=str(where.folder),
        nudge_waiting=where.nudge.exists(),
    )


def _safe(saved: Saved) -> Saved:
    """The same with every text safe to show and secrets masked; paths of ours stay."""
    run = saved.run
    return replace(
        saved,
        participant=_show(saved.participant),
        program=_show(saved.program),
        version=_show(saved.version),
        model=_show(saved.model),
        command=tuple(_show(word) for word in mask_command(saved.command)),
        workdir=_show(saved.workdir),
        note=_show(saved.note),
        turn=_show(saved.turn),
        run=_safe_run(run) if run else None,
    )


def _safe_run(run: Run) -> Run:
    return replace(
        run,
        exit=_show(run.exit),
        stopped=_show(run.stopped),
        cancelled=_show(run.cancelled),
        tool=_show(run.tool),
        refused=_show_all(run.refused),
        refusals=_show_all(run.refusals),
        retry_reason=_show(run.retry_reason),
        session=_show(run.session),
        opened=_show(run.opened),
        model=_show(run.model),
        version=_show(run.version),
        error=_show(run.error),
        error_name=_show(run.error_name),
        complaints=_show_all(run.complaints),
        error_lines=None if run.error_lines is None else _show_all(run.error_lines),
        lines=_show_all(run.lines),
        calls=tuple(
            replace(each, what=_show(each.what), status=_show(each.status)) for each in run.calls
        ),
    )


def _show(text: str) -> str:
    return clean_line(mask(text))


def _show_all(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(_show(text) for text in texts)


def stop(folder: str, participant: str, *, grace: float = GRACE, claim: str = "") -> Stopped:
    """Stop a loop and its program: ask both, then end whatever is left.

    One of another account is asked to stop, which only it can do itself. Blocks until everything
    has ended, for a little more than twice the ``grace`` at most.

    Args:
        folder: the collaboration.
        participant: whose loop.
        grace: seconds between asking and ending.
        claim: the name of its claim; by default that of the participant.
    """
    from acp_core.agents.processes import end_parked
    from acp_core.agents.session_lock import (
        has_claims,
        stop_elsewhere,  # late: who merely looks needs none of it
    )

    where = place(folder, participant)
    saved = load(where)
    if saved is None or not _is_at_work(saved):
        elsewhere = stop_elsewhere(folder, participant, claim, grace)
        if elsewhere is not None:
            return elsewhere
    if saved is None:
        return Stopped(True, f"{participant} has no loop")
    was_alive = saved.process.alive()
    if was_alive and saved.process.pid == os.getpid():
        return Stopped(False, f"{participant}: runs in this process")
    if was_alive:
        if not end_parked(saved.process):
            end([saved.process], grace + _OWN, patience=_OWN)
        saved = load(where) or saved
    run = saved.run
    left = [run.process] if run and run.ended is None and run.process.alive() else []
    end(left, grace, groups=True)
    from acp_core.agents.live import turn as live_turns  # only who stops loops needs it

    held = live_turns.is_held(where)
    live_turns.stop(where)
    strays = [each for each in saved.left_over if each.alive()]
    end(strays, grace)
    alive = [each.pid for each in (saved.process, *left, *strays) if each.alive()]
    if alive:
        numbers = ", ".join(str(pid) for pid in alive)
        return Stopped(False, f"{participant}: could not be stopped (process {numbers})")
    if not was_alive and not left and not strays and not held:
        return Stopped(True, f"{participant}: was not running")
    _note_stopped(where, saved)
    if has_claims(folder):
        claims.close_record(folder, claim or claims.of_participant(participant), saved.process.pid)
    return Stopped(True, f"{participant}: stopped")


def _is_at_work(saved: Saved) -> bool:
    run = saved.run
    return saved.process.alive() or bool(run and run.ended is None and run.process.alive())


def stop_all(states: Iterable[RunnerState]) -> list[Stopped]:
    """Stop several loops at once; what came of each, in the same order."""
    wanted = list(states)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:  # all are asked before one is waited for
        return list(pool.map(lambda each: stop(each.folder, each.participant), wanted))


def _note_stopped(where: LoopDirectory, saved: Saved) -> None:
    """Say so in the state file of a loop that could not say it itself."""
    from acp_core.agents.logs import Log  # late, as in `stop`

    with contextlib.suppress(LoopRunning, OSError), where.locked():
        saved = load(where) or saved
        if saved.ended is not None:
            return
        now = utc_now()
        run = saved.run
        if run and run.ended is None:
            run = replace(run, ended=now, exit="ended unseen", stopped="stopped by a person")
        saved = replace(saved, phase=Phase.STOPPED, since=now, note="stopped", run=run, ended=now)
        codec.write(where.state, saved)
        Log(where.log).write("loop", "the loop ends: stopped by a person", now)


def nudge(folder: str, participant: str, message: str, now: datetime) -> None:
    """Leave a message for a loop: it begins the turn anew, with the message in the prompt.

    Raises:
        OSError: it cannot be written.
    """
    where = place(folder, participant)
    told = {"message": message, "at": now.isoformat()}
    atomic.replace(where.nudge, json.dumps(told).encode(), sync=False, private=True)


def take_nudge(where: LoopDirectory) -> str | None:
    """The message that a person left, taken away.

    Returns:
        None where there is none; "" where one was left that says nothing.
    """
    if not where.nudge.exists():
        return None
    try:
        data = read_bounded(where.nudge, 1 << 20)
        where.nudge.unlink()
        told = json.loads(data)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return None
    message = told.get("message") if isinstance(told, dict) else None
    return message if isinstance(message, str) else ""


def forget(folder: str, participant: str) -> bool:
    """Remove everything that is kept of a loop that does not run. False where it runs."""
    where = place(folder, participant)
    if not where.folder.is_dir():
        return True
    try:
        with where.locked():
            saved = load(where)
            if saved and saved.run and saved.run.ended is None and saved.run.process.alive():
                return False
            shutil.rmtree(where.folder, ignore_errors=True)
    except (LoopRunning, OSError):
        return False
    return True


CONDUCTOR = "conductor"

"""What stands for the participant where a claim shows who conducts a run."""


@dataclass(frozen=True, slots=True)
class Conductor:
    """One that conducts, or could.

    Attributes:
        folder: the collaboration: a path or a URL.
        name: the participant whose place it takes.
        module: what runs in the background; its `main` calls `background.run`.
        title: what it is called where it cannot be started.
        claim: the name of its claim, where it is not that of the participant.
    """

    folder: str
    name: str
    module: str
    title: str
    claim: str = ""

    @property
    def place(self) -> LoopDirectory:
        """Where it keeps what is its own: its lock, state and log."""
        return place(self.folder, self.name)

    def start(
        self,
        words: tuple[str, ...] = (),
        asked: object = None,
        env: Mapping[str, str] | None = None,
    ) -> RunnerState:
        """Start it in the background, and wait until it runs.

        Args:
            words: the module's arguments.
            asked: a dataclass that says what is asked for, where the module reads one
                (`background.run_asked`).
            env: more environment variables, for what it runs as well.

        Raises:
            NotStarted: it does not run; the message says why.
        """
        over = f"{self.title} ended at once"
        try:
            background.start(self.module, words, b"" if asked is None else codec.encode(asked), env)
        except NotStarted as error:
            raise NotStarted(str(error) or over) from None
        state = self.last()
        if state is None:
            raise NotStarted(over)
        return state

    def last(self) -> RunnerState | None:
        """The one that ran last, whether it still does; None where there never was one."""
        return find(self.folder, self.name)

    def running(self) -> RunnerState | None:
        """The one that runs now."""
        state = self.last()
        return state if state and state.alive and state.shown.ended is None else None

    def holder(self, why: str = "") -> str:
        """Which process it is that runs now, to be put behind a sentence; "" where none does.

        Args:
            why: what is known where the process is not one of this account's.
        """
        state = self.running()
        if state:
            return f" (process {state.pid})"
        return f": {why}" if why else ""

    def elsewhere(self) -> Seen | None:
        """Who holds its claim, or left a program at work, without that our own folder knows it."""

        def unknown_holder() -> Seen | None:
            found = session_lock.seen(self.folder, self.name, self.claim)
            return None if found is None or session_lock.is_known(found, self.last()) else found

        found = unknown_holder()
        return session_lock.settled(unknown_holder) if found and found.mine else found

    def other(self) -> Seen | None:
        """Who else holds its claim, for whoever only looks: as `elsewhere`, and never waits.

        One of this account's that has only just begun is left out: it is soon known.
        """
        found = session_lock.seen(self.folder, self.name, self.claim)
        if found is None or not found.held or session_lock.is_known(found, self.last()):
            return None
        return None if found.mine and session_lock.has_just_begun(found) else found

    def is_held(self) -> bool:
        """Whether its place is taken at this moment, also by one that only just began."""
        found = session_lock.seen(self.folder, self.name, self.claim)
        return self.place.is_locked() or (found is not None and found.held)

    def program_runs(self) -> bool:
        """Whether a program that it started runs, as far as was noted."""
        last = self.last()
        return bool(last and last.program_alive) or session_lock.program_runs(
            self.folder, self.name
        )

    def stop(self, grace: float = GRACE) -> Stopped:
        """Stop it with the program that it runs, and wait until both have ended."""
        return stop(self.folder, self.name, grace=grace, claim=self.claim)


def strangers(folder: str) -> list[Seen]:
    """Those who play participants of a folder without that this account's own folder knows it."""
    if not session_lock.has_claims(folder):
        return []

    def unknown_holders() -> list[Seen]:
        held = [each for each in claims.listed(folder, "loops") if each.held]
        known = {state.pid for state in runners(folder)} if held else set()
        return [each for each in held if not each.owner or each.owner.process.pid not in known]

    found = unknown_holders()

    def still_unknown() -> list[Seen]:
        """Whoever was unknown at every look: others of this account may begin one after another."""
        nonlocal found
        before = {each.path for each in found}
        found = [each for each in unknown_holders() if each.path in before]
        return found

    return session_lock.settled(still_unknown) if found else []


def loops_of_others(folder: str) -> list[RunnerState]:
    """Loops of a folder that only their claims show, and that are at work: they can be stopped."""
    return [_as_loop(folder, each) for each in strangers(folder) if each.owner]


def seen_of_others(folder: str, known: Collection[int] | None = None) -> list[RunnerState]:
    """Loops and conductors of a folder that only their claims show, those that were killed too.

    For whoever only looks: it never waits, so that one of this account's that has only just
    begun is left out.

    Args:
        folder: the collaboration.
        known: process ids of this account's own loops in it; read from its state folder by default.
    """
    if not session_lock.has_claims(folder):
        return []
    found = [*claims.listed(folder, "loops"), claims.seen(folder, claims.CONDUCT)]
    found = [each for each in found if each.owner and (each.held or not each.owner.ended)]
    if known is None:
        known = {state.pid for state in runners(folder)} if found else set()
    return [
        _as_loop(folder, each)
        for each in found
        if each.owner and each.owner.process.pid not in known and not _is_own_past(each)
    ]


def _is_own_past(found: Seen) -> bool:
    """Whether it is one of this account's that just begins, or that ended: nobody else's."""
    return found.mine and (not found.held or session_lock.has_just_begun(found))


def _as_loop(folder: str, found: Seen) -> RunnerState:
    owner = found.owner
    assert owner is not None
    try:
        since = datetime.fromisoformat(owner.since)
    except ValueError:
        since = utc_now()
    process = Identity(owner.process.pid, 0.0)
    is_loop = found.name != claims.CONDUCT
    name = owner.about if is_loop else CONDUCTOR
    account = clean_line(owner.account, 80) or str(owner.uid)
    shown = Saved(
        key_of(folder),
        clean_name(name, 200),
        process,
        since,
        program=clean_line(owner.program, 200),
        since=since,
        note=_note(found, account),
    )
    return RunnerState(
        folder=shown.folder,
        participant=name,
        shown=shown,
        alive=found.held,
        program_alive=found.child is not None,
        log="",
        place="",
        account=account,
    )


def _note(found: Seen, account: str) -> str:
    if not found.held:
        return f"{found.sentence}, but its lock is free: the process was probably killed"
    if found.mine:
        return f"{found.sentence}; your state folder has no record of it"
    return f"{found.sentence}: ask {account}"
