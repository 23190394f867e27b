"""The state file of a cycle, written by one at a time: locked, whole or not at all, read again.

Source: development cycle specification, "Shared State File" and "State Consistency Rules". Every
write of acp reads the file anew, changes it, and keeps what it does not know. What acp wrote last
is remembered beside its own files, so that a change by somebody else shows: the orchestrator
takes over what agents may write, and puts back the rest.
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
from acp_core.files.locked import LogError, locked_folder
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.records import shallow
from acp_core.person import paths
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.write import Refused, coordination, ownership

LIMIT = 4 << 20  # bytes of a state file
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
    """

    before: Object
    state: Object
    merged: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    lost: bool = False


class Store:
    """One cycle's files. ``root`` is the project's folder, ``id`` the cycle's.

    Raises:
        Refused: the id is none, or the folder of the cycles is reached by a symbolic link.
    """

    def __init__(self, root: Path | str, id: str) -> None:
        self.root = Path(root)
        self.id = id
        if not scan.STATE.fullmatch(f"{id}.json"):
            raise Refused(f"{id!r} is no name of a cycle: cycle-v1-DATE-WORD")
        home = scan.home(self.root)
        if home is None:
            raise Refused(f"{self.root}: there is no folder {'/'.join(schema.HOME)}")
        self.home = home
        self.path = home / f"{id}.json"
        self.progress = home / f"{id}.progress"

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
            Refused: it is missing, or cannot be read.
        """
        return self._read()[0]

    def _read(self) -> tuple[Object, bytes]:
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._parsed()
            except Refused:
                if time.monotonic() > deadline or not self.path.is_file():
                    raise
            time.sleep(_STEP)

    def _parsed(self) -> tuple[Object, bytes]:
        name = self.path.name
        if self.path.is_symlink():
            raise Refused(f"{name} is a symbolic link: it is not followed")
        try:
            data = read_bounded(self.path, LIMIT)
        except Unreadable as error:
            raise Refused(f"{name} {error}") from None
        return parsed(name, data), data

    def create(self, state: Object) -> None:
        """Write the state of a new cycle.

        Raises:
            Refused: there is one already.
        """
        with self.locked():
            data = encoded(state)
            self._remember(data, b"")
            try:
                atomic.create(self.path, data)
            except FileExistsError:
                raise Refused(f"{self.path.name} exists already") from None
            coordination.flush(self.progress, state)

    def change(self, change: Change, now: datetime, *, guard: bool = False) -> Written:
        """Read the state, change it, write it, and read it again.

        Args:
            change: what is changed.
            now: becomes ``updated_at``.
            guard: as the orchestrator: what others changed and may not is put back.

        Raises:
            Refused: the state cannot be read, or ``change`` refuses.
            OSError: it cannot be written.
        """
        with self.locked():
            atomic.sweep(self.path)
            disk, data = self._read()
            found = self._reconciled(disk, data) if guard else ownership.Reconciled(disk)
            before = copy.deepcopy(found.state)
            state = found.state
            coordination.forget_flushed(self.progress, state)
            for name in found.refused:
                told = f"a change of {name} by another program was put back"
                coordination.note(state, now, "orchestrator", told)
            for name in found.merged:
                told = f"took over {name}, which an agent changed itself"
                coordination.note(state, now, "orchestrator", told)
            change(state)
            if state == before and not found.refused and not found.merged:
                return Written(before, state)
            finish(state, now)
            new = encoded(state)
            self._remember(new, data)
            atomic.replace(self.path, new)
            coordination.flush(self.progress, state)
            lost = self._now() != new
            return Written(before, state, found.merged, found.refused, lost)

    def rewrite(self, state: Object, now: datetime) -> None:
        """Put a state in place of whatever stands there, which is kept beside it."""
        with self.locked():
            old = self._now()
            finish(state, now)
            new = encoded(state)
            if old:
                digest = hashlib.sha256(old).hexdigest()[:8]
                with contextlib.suppress(FileExistsError):
                    atomic.create(self.home / f"{self.id}.json.before-rebuild-{digest}", old)
            self._remember(new, old)
            atomic.replace(self.path, new)
            coordination.flush(self.progress, state)

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

    # what acp wrote last

    @property
    def _memory(self) -> Path:
        key = hashlib.sha256(f"{self.root.resolve()}\0{self.id}".encode()).hexdigest()[:16]
        return paths.state_folder() / "cycles" / f"{self.id[:60]}-{key}.json"

    def _remember(self, data: bytes, before: bytes) -> None:
        """Keep what is about to be written; where that crashes, the file itself is right."""
        kept = {
            "digest": _digest(data),
            "before": _digest(before),
            "state": json.loads(data),
        }
        with contextlib.suppress(OSError):
            atomic.make_folder(self._memory.parent, 0o700)
            atomic.replace(self._memory, json.dumps(kept).encode(), sync=False)

    def _reconciled(self, disk: Object, data: bytes) -> ownership.Reconciled:
        try:
            kept = json.loads(read_bounded(self._memory, 2 * LIMIT))
            known, state = (kept["digest"], kept["before"]), kept["state"]
        except (Unreadable, ValueError, KeyError, TypeError):
            return ownership.Reconciled(disk)
        if _digest(data) in known or not isinstance(state, dict):
            return ownership.Reconciled(disk)
        return ownership.reconcile(state, disk)


def parsed(name: str, data: bytes) -> Object:
    """The state in a file's bytes.

    Raises:
        Refused: it holds no state.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise Refused(f"{name} is not valid JSON; see `acp cycle rebuild`") from None
    if not isinstance(value, dict) or not shallow(value):
        raise Refused(f"{name} holds no state; see `acp cycle rebuild`")
    if not isinstance(value.get("agents"), dict):
        raise Refused(f"{name} has no agents; see `acp cycle rebuild`")
    return value


def encoded(state: Object) -> bytes:
    """A state as it stands in its file."""
    try:
        return json.dumps(state, ensure_ascii=False, indent=2).encode() + b"\n"
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(state, indent=2).encode() + b"\n"


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


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
