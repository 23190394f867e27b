"""Assigning a turn and writing its bundle; the program that takes it, and that it failed.

What the program prints is ours alone, and stands in the user's state folder. Which process it is
stands with the run, below ``.acp/run/turns``, so that no other account starts a second one beside
it. Source: governed protocol specification, "Commands" and "Files".
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.agents.processes import Identity, end, identify
from acp_core.files import atomic, claims
from acp_core.files.claims import ClaimError, Seen, of_turn
from acp_core.files.transaction import REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import prompts, schema
from acp_core.protocols.governed.read import repository, turn_files
from acp_core.protocols.governed.read.turn_files import (
    MANIFEST,
    MARK,
    program_folder,
    program_logs,
    read_program_note,
    unrecorded_program,
)
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import Object, Programs, Runtime, decode, obj, text
from acp_core.protocols.governed.state import (
    AGAIN,
    AT_END,
    Move,
    active_turn,
    assigned,
    begun,
    ended,
    failed_start,
    format_time,
    initial,
    is_named,
    named,
    redispatched,
    turns_of,
)
from acp_core.protocols.governed.write import hooks
from acp_core.protocols.governed.write.initiative_opened import CONTEXT_NAME, context_of_run
from acp_core.protocols.governed.write.opened import (
    Opened,
    commit,
    content,
    locked,
    new_id,
    permitted,
    read_unlocked,
    removing,
)


class Dispatched(NamedTuple):
    """A turn whose bundle is written. ``again`` says that it was given out before."""

    turn_id: str
    role: str
    runtime: str
    adapter: str
    bundle: str
    staging: str
    attempt: int
    again: bool
    begun: bool
    warnings: tuple[str, ...] = ()


class Plan(NamedTuple):
    """What dispatching would write."""

    move: Move
    turn: Object
    files: dict[str, bytes]
    again: bool
    begun: bool


def dispatch(
    root: str | Path, role: str | None, now: datetime, taken_by: Identity | None = None
) -> Dispatched:
    """Give the next turn to a role, or once more the one whose program came to nothing.

    Args:
        root: the repository.
        role: who takes it; None for the one that comes next.
        now: the time.
        taken_by: the process that will have the turn taken, where a program takes it.

    Raises:
        Refused: nothing can be dispatched now. Nothing was written.
    """
    said = _ask(root, role, now)
    with locked(root, schema.STEP, role=role or "") as opened:
        planned = plan(opened, role, now)
        place = turn_files.bundle_folder(planned.turn["turn_id"])
        files = {f"{place}/{name}": data for name, data in planned.files.items()}
        written = [Write(opened.root / name, REPLACE, data) for name, data in files.items()]
        stale = removing(opened.root, place) if planned.again else []
        written += [each for each in stale if each.path not in {w.path for w in written}]
        what = f"step ({planned.turn['assigned_role']}, {planned.turn['turn_id']})"
        by_hand = describe(opened.config, planned).adapter == "manual"
        if taken_by is not None and not by_hand:  # before anybody sees the turn, and thinks it lost
            note_program(opened.root, planned.turn["turn_id"], taken_by)
        commit(opened, what, planned.move, written)
        room = schema.inside(opened.root, f"{prompts.STAGING}/{planned.turn['turn_id']}")
        if room is not None:
            with contextlib.suppress(OSError):  # whoever takes the turn can make it too
                atomic.shared_folder(room)
        done = describe(opened.config, planned)
    told_hooks = {"turn_id": done.turn_id, "role": done.role, "attempt": done.attempt}
    said += hooks.fire(root, "after_dispatch", told_hooks)
    return done._replace(warnings=tuple(said))


def _ask(root: str | Path, role: str | None, now: datetime) -> list[str]:
    """Ask the hooks that may stop a turn before it is assigned. Raises as `asked_hooks.ask`."""
    opened = read_unlocked(root)
    if not schema.asked_before(opened.config, schema.STEP):
        return []
    planned = describe(
        permitted(opened, schema.STEP, role=role or "").config, plan(opened, role, now)
    )
    about: Object = {"role": planned.role, "attempt": planned.attempt}
    return hooks.ask_hooks(root, schema.STEP, about | {"turn_id": planned.turn_id})


def plan(opened: Opened, role: str | None, now: datetime) -> Plan:
    """What dispatching would write. Writes nothing.

    Raises:
        Refused: nothing can be dispatched now.
    """
    at = format_time(now)
    state = opened.state or initial(opened.config, at)
    first: tuple[Object, ...] = ()
    starts = state.get("status") == "idle"
    if starts:
        beginning = begun(state, new_id("run"), at)
        state, first = beginning.state, beginning.events
    elif not is_named(state):
        naming = named(state, new_id("run"), at)
        state, first = naming.state, naming.events
    again = _again(opened, state, role)
    try:
        if again:
            before = _baseline(opened, state, again, at)
            move = redispatched(opened.config, state, again, now, before)
        else:
            stands = repository.baseline(opened.root).as_object(at)
            move = assigned(opened.config, state, role, new_id("turn"), stands, now)
    except repository.GitFailed as error:
        doubt = f"Changes cannot be read now: {error}. Try again"
        raise Refused(clean_line(doubt, 500)) from None
    move = move._replace(events=(*first, *move.events))
    turn = active_turn(move.state, again or None)
    talk = (content(opened.root, schema.TALK) or b"").decode("utf-8", "replace")
    others = context_of_run(opened.root)
    more = {} if others is None else {CONTEXT_NAME: others}
    files = prompts.bundle(opened.run, move.state, turn, at, talk, more)
    turn[MARK] = hashlib.sha256(files[MANIFEST]).hexdigest()  # an agent may rewrite the manifest
    return Plan(move, turn, files, bool(again), starts)


def _baseline(opened: Opened, state: Object, turn_id: str, at: str) -> Object | None:
    """How the repository stands before another attempt; None where the attempt before left no word."""
    turn = turns_of(state)[turn_id]
    if not isinstance(turn.get(AT_END), dict):
        return None
    return repository.taken_anew(opened.root, obj(turn, "baseline"), turn[AT_END], at)


def preview(root: str | Path, role: str | None, now: datetime) -> tuple[Dispatched, Plan]:
    """What `dispatch` would do, looked at without the lock.

    Raises:
        Refused: nothing can be dispatched now.
    """
    opened = read_unlocked(root)
    planned = plan(opened, role, now)
    return describe(opened.config, planned), planned


def describe(config: Object, planned: Plan) -> Dispatched:
    """What was planned, in the words of the outcome."""
    turn = planned.turn
    return Dispatched(
        turn["turn_id"],
        turn["assigned_role"],
        text(turn, "runtime_id", 200),
        _runtime(config, turn).adapter,
        turn_files.bundle_folder(turn["turn_id"]),
        prompts.staged(turn["turn_id"]),
        turn["attempt"],
        planned.again,
        planned.begun,
    )


def _runtime(config: Object, turn: Object) -> Runtime:
    """What takes a turn."""
    return decode(Programs, config).runtimes.get(text(turn, "runtime_id", 200)) or Runtime()


def _again(opened: Opened, state: Object, role: str | None) -> str:
    """The turn that is to be dispatched again, "" where a new one is to be assigned.

    Raises:
        Refused: a turn is at work.
    """
    for id, turn in turns_of(state).items():
        its = text(turn, "assigned_role", 80)
        if role is not None and role != its:
            raise Refused(f"Turn already assigned: {id} to {its}")
        place = schema.inside(opened.root, prompts.staged(id))
        if place is not None and place.exists():
            raise Refused(f"the result of {its} is staged: accept or reject it ({id})")
        by_hand = _runtime(opened.config, turn).adapter == "manual"
        room = schema.inside(opened.root, turn_files.bundle_folder(id))
        if text(turn, "status", 40) in AGAIN or (room is not None and not room.is_dir()):
            return id
        if not by_hand and not turn_files.is_program_running(opened.root, id):
            return id  # its program, or the command that was to start it, is gone
        other = turn_files.runs_elsewhere(opened.root, id)
        by = f"; {other.sentence}" if other else ""
        raise Refused(f"Turn already assigned: {id} to {its}{by}")
    return ""


def note_failed_start(
    root: str | Path, turn_id: str, reason: str, now: datetime, dispatched_at: object = None
) -> None:
    """Say in the state that a turn's program came to nothing.

    Args:
        root: the repository.
        turn_id: the turn.
        reason: why.
        now: the time.
        dispatched_at: when the program got the turn: one that was given out again since is left
            alone.

    Where the turn is not under way any more, or the run is damaged, nothing is said.
    """
    with contextlib.suppress(Refused), locked(root, guard.NOTING) as opened:
        turn = active_turn(opened.state, turn_id)
        if text(turn, "status", 40) not in ("dispatched", "running", "starting"):
            return
        if dispatched_at is not None and turn.get("dispatched_at") != dispatched_at:
            return
        seen = repository.observe(opened.root, obj(turn, "baseline"))
        move = ended(failed_start(opened.state, turn_id, reason, now), turn_id, seen)
        commit(opened, f"step (failed, {turn_id})", move)


def stop_turn(root: str | Path, turn_id: str | None, now: datetime) -> str:
    """End the program of a turn; you can reassign the turn. Returns the turn's id.

    Raises:
        Refused: no turn is under way, or no program of it runs.
        OSError: the program does not end.
    """
    opened = read_unlocked(root)
    id = str(active_turn(opened.state, turn_id)["turn_id"])
    if not end_program(opened.root, id):
        raise Refused(f"no program of the turn {id} is running on this machine")
    note_failed_start(root, id, "a human stopped the program", now)
    return id


# --- the program that takes a turn: who it is, what it prints, its end

PROGRAM_GRACE = (
    5.0  # seconds between asking a program to end and making it, and then for it to be gone
)


def fresh_program_logs(root: Path, turn_id: str) -> tuple[Path, ...]:
    """The same, without what an earlier attempt printed: that is kept beside them.

    Raises:
        OSError: the state folder cannot be written.
    """
    found = program_logs(root, turn_id)
    for path in found:
        with contextlib.suppress(FileNotFoundError):
            os.replace(path, path.with_suffix(".before.log"))
    return found


def note_program(root: Path, turn_id: str, identity: Identity) -> None:
    """Write down which process takes the turn.

    Raises:
        OSError: the state folder cannot be written.
    """
    record = asdict(identity) | {"root": os.fspath(root), "turn_id": turn_id}
    folder = program_folder(root, turn_id)
    atomic.private_folder(folder)
    atomic.replace(folder / "process.json", json.dumps(record).encode(), sync=False, private=True)
    try:
        claims.note(root, of_turn(turn_id), identity.pid, about=turn_id)
    except ClaimError as error:
        raise OSError(errno.EPERM, str(error)) from None


def note_program_end(root: Path, turn_id: str, how: str) -> None:
    """Write down how the program ended that staged the turn's result; "" for well.

    Raises:
        OSError: the state folder cannot be written.
    """
    path = program_folder(root, turn_id) / "ended"
    if how:
        atomic.replace(path, how.encode(errors="replace"), sync=False, private=True)
    else:
        path.unlink(missing_ok=True)


def forget_program(root: Path, turn_id: str) -> None:
    """Say that the turn's program has ended."""
    with contextlib.suppress(OSError, ClaimError):
        claims.note(root, of_turn(turn_id), None, about=turn_id)
    with contextlib.suppress(OSError):
        (program_folder(root, turn_id) / "process.json").unlink()


def end_program(root: Path, turn_id: str, *, grace: float = PROGRAM_GRACE) -> bool:
    """End the turn's program with everything that it started; returns whether it ran.

    Raises:
        OSError: it may not be ended, or does not end.
    """
    identity = read_program_note(root, turn_id)
    if identity is None or not identity.alive():
        seen = claims.seen(root, of_turn(turn_id))
        known = _stoppable(seen) if seen.child is not None else None
        identity = known or unrecorded_program(root, turn_id, seen)
    if identity is None:
        return False
    if not end([identity], grace, groups=True, patience=grace):
        raise OSError(errno.EBUSY, "the program does not exit")
    return True


def _stoppable(found: Seen) -> Identity | None:
    """The program that a claim shows, None where there is none.

    Raises:
        OSError: it belongs to another account, which alone may end it.
    """
    if found.child is None or found.owner is None:
        return None
    if not found.mine:
        raise OSError(errno.EPERM, f"{found.owner.account} started it and has to stop it")
    return identify(found.child.pid)
