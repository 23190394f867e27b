"""The loops of this machine's user: which there are, whether they live, and how to end them.

What a loop says of itself stands in its state file; whether its processes are alive is asked of
the system, by process id and birth, at every look. So a reboot leaves none shown as alive.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from acp_core.agents import codec
from acp_core.agents.ending import GRACE, Stopped, end
from acp_core.agents.loop_directory import LoopDirectory, LoopRunning, place, root
from acp_core.agents.state import Phase, Run, RunnerState, Saved
from acp_core.files import atomic, claims
from acp_core.files.reading import Stamp, read_bounded, stamp
from acp_core.files.secrets import mask, mask_command
from acp_core.model.clock import utc_now
from acp_core.model.text import clean_line
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
    from acp_core.agents.ending import end_parked
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


def stop_all(states: Iterable[RunnerState], *, grace: float = GRACE) -> list[Stopped]:
    """Stop several loops at once.

    Args:
        states: the loops.
        grace: seconds between asking each and ending it, see `stop`.

    Returns:
        What came of each, in the same order.
    """
    wanted = list(states)
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:  # all are asked before one is waited for
        return list(pool.map(lambda each: stop(each.folder, each.participant, grace=grace), wanted))


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
