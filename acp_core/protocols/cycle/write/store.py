"""The state file of a cycle, written by one at a time: locked, whole or not at all, read again.

Every write of acp reads the file anew, changes it, and keeps what it does not know. Agents may write
the fields that are theirs; a status that pauses or stops the cycle is a signal that anybody may
give; unknown fields are kept, except for those that say when a cycle is done. Everything else
belongs to the orchestrator, which takes over what agents may write, and puts back the rest.

A change by somebody else shows because what acp wrote last is remembered, beside its own files and
in ``.acp/run/last-written-ID.json``, which every account sees that shares the project. The latter
lets an orchestrator that takes over tell a decision of another account from a change by some other
program. It informs, and authorises little: as long as an orchestrator conducts, only what it knows
itself counts; and nobody who writes with its own account eases by it what is wanted of the cycle
(`GUARDED`). Source: development cycle specification, "Shared State File" and "State Consistency
Rules" (single writer per field).
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from acp_core.files import atomic
from acp_core.files.claims import ClaimError, prepare
from acp_core.files.locked import LogError, locked_folder
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.protocols.cycle import matters, schema
from acp_core.protocols.cycle.read import scan, state_file
from acp_core.protocols.cycle.read.state_file import (
    LIMIT,
    SharedCopy,
    StateFile,
    digest,
    own_copy_path,
    read_shared_copy,
    read_state_file,
    shared_copy_path,
)
from acp_core.protocols.cycle.schema import REBUILD_ACT, Object, encoded
from acp_core.protocols.cycle.write import layout
from acp_core.protocols.kit.guard import check, refusal

OWNERS = {
    "requirements": "ra",
    "edge_cases": "ra",
    "exploration": "ep",
    "plan": "ep",
    "changes": "cd",
    "implementation": "cd",
    "test_results": "vas",
    "summary": "vas",
}

GUARDED = ("convergence", "phase_gates", "agent_focus")  # nobody eases what is wanted of it
SIGNALS = ("paused", "failed")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """A state in which what others changed is settled: taken over, or put back."""

    state: Object
    merged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def reconcile(known: Object, disk: Object) -> Reconciled:
    """Settle a file that somebody else wrote.

    Args:
        known: what acp wrote last.
        disk: what the file holds now.
    """
    state = copy.deepcopy(known)
    merged, refused = [], []
    for key in (*known, *(key for key in disk if key not in known)):
        if key in disk and key in known and disk[key] == known[key]:
            continue
        if key in OWNERS and key in disk:
            state[key] = copy.deepcopy(disk[key])
            merged.append(key)
        elif key not in known and key not in GUARDED:
            state[key] = copy.deepcopy(disk[key])
        elif key == "status" and known[key] == "running" and disk.get(key) in SIGNALS:
            state[key] = disk[key]
            merged.append(key)
        elif key not in ("updated_at", "revision"):
            refused.append(key)
    return Reconciled(state, tuple(merged), tuple(refused))


Known = tuple[tuple[str, str], Object]
"""The digests of the files that what was written last may stand in, and what it was."""


def remember_shared(root: Path, id: str, data: bytes, before: bytes) -> None:
    """Note what is about to be written, and sync it before that is; under the lock of the cycles.

    So a loss of power in between leaves a file of which it is known that acp wrote it.

    Args:
        root: the project's folder.
        id: the cycle.
        data: what is about to be written.
        before: what stands in the file until then.
    """
    record = {"digest": digest(data), "before": digest(before), "state": json.loads(data)}
    with contextlib.suppress(OSError, ClaimError):  # the file itself is right
        private = not atomic.is_shared(prepare(root).stat())
        atomic.sweep(shared_copy_path(root, id))
        atomic.replace(shared_copy_path(root, id), json.dumps(record).encode(), private=private)


def settle(
    root: Path, id: str, disk: Object, data: bytes, own: Known | None, *, first: bool
) -> Reconciled:
    """Settle a state file that somebody else wrote.

    Args:
        root: the project's folder.
        id: the cycle.
        disk: what the file holds.
        data: its bytes.
        own: what this account wrote last.
        first: whether this is the first look of an orchestrator that begins.
    """
    now = digest(data)
    if own is not None and now in own[0]:
        return Reconciled(disk)
    if not first:
        return Reconciled(disk) if own is None else reconcile(own[1], disk)
    shared = read_shared_copy(root, id)
    if shared is None:  # as acp 0.1 left it: what it kept privately counts if it is the file's
        return Reconciled(disk)
    base, refused = _unguarded(disk, own, shared)
    if now in shared.known:
        return Reconciled(base, refused=refused)
    return reconcile(_unguarded(shared.state, own, shared)[0], disk)


def _unguarded(
    state: Object, own: Known | None, shared: SharedCopy
) -> tuple[Object, tuple[str, ...]]:
    """A state without what programs of this account may have eased, and what that was."""
    if own is None or not shared.mine:
        return state, ()
    eased = tuple(key for key in GUARDED if state.get(key) != own[1].get(key))
    if not eased:
        return state, ()
    state = copy.deepcopy(state)
    for key in eased:
        state.pop(key, None)
        if key in own[1]:
            state[key] = copy.deepcopy(own[1][key])
    return state, eased


def remember_copies(root: Path, id: str, data: bytes, before: bytes) -> None:
    """Keep what is about to be written; where that crashes, the file itself is right.

    Args:
        root: the project's folder.
        id: the cycle.
        data: what is about to be written.
        before: what stands in the file until then.
    """
    kept = {"digest": digest(data), "before": digest(before), "state": json.loads(data)}
    place = own_copy_path(root, id)
    with contextlib.suppress(OSError):
        atomic.private_folder(place.parent)
        atomic.sweep(place)
        atomic.replace(place, json.dumps(kept).encode(), sync=False, private=True)
    remember_shared(root, id, data, before)


_PATIENCE = 2.0  # seconds for which a file that cannot be parsed counts as being written
_STEP = 0.05
_STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+08:00")
Change = Callable[[Object], None]
"""Changes a state in place; raises Refused where that is not possible."""


@dataclass(frozen=True, slots=True)
class Written:
    """How a write went.

    Attributes:
        before, state: what the file held, and what it was given.
        merged: fields that agents had changed themselves, and may: taken over.
        refused: fields that somebody else had changed: put back as they were.
        lost: another program replaced what was written, at once.
        restored: what was damaged and put back, in words; "" where nothing was.
    """

    before: Object
    state: Object
    merged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    lost: bool = False
    restored: str = ""


class Store:
    """One cycle's files. ``root`` is the project's folder, ``id`` the cycle's.

    Raises:
        Refused: the id is none, or the folder of the cycles is reached by a symbolic link.
    """

    def __init__(self, root: Path | str, id: str) -> None:
        self.root = Path(root)
        self.id = id
        if not scan.STATE.fullmatch(f"{id}.json"):
            raise Refused(f"{id!r} is not a cycle name (form: cycle-v1-DATE-WORD)")
        home = scan.home(self.root)
        if home is None:
            raise Refused(f"{self.root}: no folder {'/'.join(schema.HOME)}")
        self.home = home
        self.path = home / f"{id}.json"
        self.progress = home / f"{id}.progress"
        self._conducts = False  # an orchestrator has written by this store

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Be the only one of acp's processes that writes here.

        Raises:
            Refused: another one does not let go.
        """
        try:
            with locked_folder(str(self.home)):
                yield
        except LogError as error:
            raise Refused(str(error)) from None

    def read(self) -> Object:
        """What the state file holds; one that is being written is waited for.

        Raises:
            Refused: it is missing or damaged; the message names what mends it.
        """
        found = self._settled()
        if found.problem:
            raise Refused(refusal(matters.of_problem(self.root, self.id, found.problem)))
        return found.state

    def _settled(self) -> StateFile:
        """What the state file holds, once nobody is in the middle of writing it."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            found = read_state_file(self.path)
            if not found.problem or found.problem == schema.LOST or time.monotonic() > deadline:
                return found
            time.sleep(_STEP)

    def create(self, state: Object) -> None:
        """Write the state of a new cycle.

        Raises:
            Refused: there is one already.
        """
        with self.locked():
            data = encoded(state)
            remember_copies(self.root, self.id, data, b"")
            try:
                atomic.create(self.path, data)
            except FileExistsError:
                raise Refused(f"{self.path.name} already exists") from None
            layout.flush(self.progress, state)

    def change(
        self, change: Change, now: datetime, act: str = "", allow: Callable[[], None] | None = None
    ) -> Written:
        """Read the state, change it, write it, and read it again.

        Args:
            change: what is changed.
            now: becomes ``updated_at``.
            act: the person's act that changes it. Without one it is the orchestrator: what others
                changed and may not is put back, and so is a whole state that was damaged.
            allow: called under the lock, before anything is written; raises where that must not be.

        Raises:
            Refused: something stands in its way, or ``change`` refuses.
            OSError: it cannot be written.
        """
        with self.locked():
            if allow is not None:
                allow()
            read = self._settled()
            restored = "" if act else self._restored(read)
            read = read_state_file(self.path) if restored else read
            check(matters.of_problem(self.root, self.id, read.problem), act)
            atomic.sweep(self.path)
            disk, data = read.state, read.data
            found = Reconciled(disk) if act else self._reconciled(disk, data)
            before = copy.deepcopy(found.state)
            state = found.state
            layout.forget_flushed(self.progress, state)
            if restored:
                layout.note(state, now, "orchestrator", restored)
            for name in found.refused:
                message = f"acp undid a change of {name} by another program"
                layout.note(state, now, "orchestrator", message)
            for name in found.merged:
                message = f"took over {name}, which an agent changed itself"
                layout.note(state, now, "orchestrator", message)
            change(state)
            if state == before and not found.refused and not found.merged:
                if not act and not self._conducts:  # adopted: nobody undoes it from here on
                    remember_copies(self.root, self.id, data, data)
                    self._conducts = True
                return Written(before, state)
            self._conducts = self._conducts or not act
            finish(state, now)
            new = encoded(state)
            remember_copies(self.root, self.id, new, data)
            atomic.replace(self.path, new)
            layout.flush(self.progress, state)
            lost = self._now() != new
            return Written(before, state, found.merged, found.refused, lost, restored)

    def _restored(self, found: StateFile) -> str:
        """Put back what acp wrote last where the state file is lost or damaged; what was done.

        What stands there is kept beside it. "" where nothing is wrong, or nothing to put back.
        """
        last = state_file.last_whole_state(self.root, self.id) if found.problem else None
        if last is None or self.path.is_symlink() or matters.of_disk(self.root):
            return ""
        aside = self._set_aside("damaged", found.data)
        atomic.replace(self.path, encoded(last))
        copy_note = f"; the old file is kept as {aside}" if aside else ""
        return f"the state file {found.problem}: acp restored what it wrote last{copy_note}"

    def _set_aside(self, word: str, data: bytes) -> str:
        """Keep what stood in the state file beside it; the copy's name, "" where there is none."""
        if not data:
            return ""
        name = f"{self.path.name}.{word}-{hashlib.sha256(data).hexdigest()[:8]}"
        with contextlib.suppress(FileExistsError):
            atomic.create(self.home / name, data)
        return name

    def rewrite(self, state: Object, now: datetime) -> None:
        """Put a state in place of whatever stands there, which is kept beside it.

        Raises:
            Refused: something stands in its way.
            OSError: it cannot be written.
        """
        with self.locked():
            check(matters.of_state(self.root, self.id), REBUILD_ACT)
            old = self._now()
            finish(state, now)
            new = encoded(state)
            self._set_aside("before-rebuild", old)
            remember_copies(self.root, self.id, new, old)
            atomic.replace(self.path, new)
            layout.flush(self.progress, state)

    def _now(self) -> bytes:
        try:
            return read_bounded(self.path, LIMIT)
        except Unreadable:
            return b""

    def overwritten(self, written: Written) -> bool:
        """Whether another program wrote over a change of ours since: it writes from its memory."""
        try:
            revision = schema.count(self.read().get("revision")) or 0
        except Refused:
            return True
        return revision < (schema.count(written.state.get("revision")) or 0)

    def _reconciled(self, disk: Object, data: bytes) -> Reconciled:
        own = state_file.read_own_copy(self.root, self.id)
        first = not self._conducts
        return settle(self.root, self.id, disk, data, own, first=first)


def stamp(now: datetime) -> str:
    """A time as the specification writes it: UTC+8, with its offset."""
    return now.astimezone(schema.LOCAL).isoformat(timespec="seconds")


def finish(state: Object, now: datetime) -> None:
    """What every write brings up to date: the revision, the time, what is derived."""
    state["updated_at"] = stamp(now)
    state["revision"] = (schema.count(state.get("revision")) or 0) + 1
    agents = state.get("agents")
    _end_after_begin(state, "created_at")
    for agent in schema.obj(agents).values():
        _end_after_begin(schema.obj(agent), "started_at")
    for name, needs in schema.DEPENDS.items():
        agent = agents.get(name) if isinstance(agents, dict) else None
        if not isinstance(agent, dict):
            continue
        before = schema.obj(schema.obj(agents).get(needs)) if needs else {}
        ready = not needs or schema.text(before.get("status")).lower() in ("completed", "done")
        idle = schema.text(agent.get("status")) in ("idle", "waiting")
        agent["depends_on"] = [needs] if needs else []
        agent["ready"] = ready
        agent["can_start"] = ready and idle and state.get("status") == "running"


def _end_after_begin(held: Object, begin: str) -> None:
    """A clock that was put back ends nothing before it began: of times in the form of `stamp`."""
    began, ended = held.get(begin), held.get("completed_at")
    if not (isinstance(began, str) and isinstance(ended, str) and ended < began):
        return
    again = schema.text(held.get("status")) in ("running", "waiting")  # the end is an older one
    if not again and _STAMP.fullmatch(began) and _STAMP.fullmatch(ended):
        held["completed_at"] = began
