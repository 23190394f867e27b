"""The state file of a cycle: how it begins, is written by one at a time, and is made anew where it was lost.

Every write of acp reads the file anew, changes it, and keeps what it does not know. Agents may write
the fields that are theirs; a status that pauses or stops the cycle is a signal that anybody may
give; unknown fields are kept, except for those that say when a cycle is done. Everything else
belongs to the orchestrator, which takes over what agents may write, and puts back the rest.

A change by somebody else shows because what acp wrote last is remembered, beside its own files and
in ``.acp/run/last-written-ID.json``, which every account sees that shares the project. The latter
lets an orchestrator that takes over tell a decision of another account from a change by some other
program. It informs, and authorises little: as long as an orchestrator conducts, only what it knows
itself counts; and nobody who writes with its own account eases by it what is wanted of the cycle
(`GUARDED`).

A state is made anew from the documents of the agents: what they do not tell is left unknown; it says
that it was rebuilt, and waits for a person. Source: development cycle specification, "Shared State
File", "Shared State", "Progress Markdown Files" and "State Consistency Rules" (single writer per
field).
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from acp_core.files import atomic
from acp_core.files.claims import ClaimError, prepare
from acp_core.files.locked import LogError, locked_folder
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.protocols.cycle import matters, schema
from acp_core.protocols.cycle.read import scan
from acp_core.protocols.cycle.read.scan import (
    STATE_LIMIT,
    StateFile,
    WrittenCopy,
    content_digest,
    own_copy_path,
    read_copy,
    read_state_file,
    shared_copy_path,
)
from acp_core.protocols.cycle.schema import (
    AGENTS,
    DOCUMENT_NAMES,
    REBUILD_ACT,
    START_ACT,
    Object,
    agent_in,
    encoded,
    iteration_of,
    plan_of,
)
from acp_core.protocols.cycle.state import failed_names, what_is_lacking
from acp_core.protocols.cycle.write import changes, layout
from acp_core.protocols.cycle.write.layout import note
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


def remember_shared(root: Path, id: str, data: bytes, before: bytes) -> None:
    """Note what is about to be written, and sync it before that is; under the lock of the cycles.

    So a loss of power in between leaves a file of which it is known that acp wrote it.

    Args:
        root: the project's folder.
        id: the cycle.
        data: what is about to be written.
        before: what stands in the file until then.
    """
    place = shared_copy_path(root, id)
    with contextlib.suppress(OSError, ClaimError):  # the file itself is right
        private = not atomic.is_shared(prepare(root).stat())
        atomic.sweep(place)
        atomic.replace(place, _copy_of(data, before), private=private)


def _copy_of(data: bytes, before: bytes) -> bytes:
    """What a copy holds: the digests of the files that a state may stand in, and the state."""
    digests = {"digest": content_digest(data), "before": content_digest(before)}
    return json.dumps(digests | {"state": json.loads(data)}).encode()


def _unguarded(
    state: Object, own: WrittenCopy | None, shared: WrittenCopy
) -> tuple[Object, tuple[str, ...]]:
    """A state without what programs of this account may have eased, and what that was."""
    if own is None or not shared.mine:
        return state, ()
    eased = tuple(key for key in GUARDED if state.get(key) != own.state.get(key))
    if not eased:
        return state, ()
    state = copy.deepcopy(state)
    for key in eased:
        state.pop(key, None)
        if key in own.state:
            state[key] = copy.deepcopy(own.state[key])
    return state, eased


def remember_copies(root: Path, id: str, data: bytes, before: bytes) -> None:
    """Keep what is about to be written; where that crashes, the file itself is right.

    Args:
        root: the project's folder.
        id: the cycle.
        data: what is about to be written.
        before: what stands in the file until then.
    """
    place = own_copy_path(root, id)
    with contextlib.suppress(OSError):
        atomic.private_folder(place.parent)
        atomic.sweep(place)
        atomic.replace(place, _copy_of(data, before), sync=False, private=True)
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
        last = scan.last_whole_state(self.root, self.id) if found.problem else None
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
            return read_bounded(self.path, STATE_LIMIT)
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
        """Settle what somebody else wrote into the file.

        At its first look an orchestrator goes by what every account knows, later by what it wrote.
        """
        now, own = content_digest(data), read_copy(own_copy_path(self.root, self.id))
        if own is not None and now in own.known:
            return Reconciled(disk)
        if self._conducts:
            return Reconciled(disk) if own is None else reconcile(own.state, disk)
        shared = read_copy(shared_copy_path(self.root, self.id))
        if shared is None:  # as acp 0.1 left it: what it kept privately counts if it is the file's
            return Reconciled(disk)
        base, refused = _unguarded(disk, own, shared)
        if now in shared.known:
            return Reconciled(base, refused=refused)
        return reconcile(_unguarded(shared.state, own, shared)[0], disk)


def finish(state: Object, now: datetime) -> None:
    """What every write brings up to date: the revision, the time, what is derived."""
    state["updated_at"] = schema.stamp_of(now)
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
    """A clock that was put back ends nothing before it began: of times in the form of `stamp_of`."""
    began, ended = held.get(begin), held.get("completed_at")
    if not (isinstance(began, str) and isinstance(ended, str) and ended < began):
        return
    again = schema.text(held.get("status")) in ("running", "waiting")  # the end is an older one
    if not again and _STAMP.fullmatch(began) and _STAMP.fullmatch(ended):
        held["completed_at"] = began


ITERATIONS = 5

PREPARED = ("convergence", "phase_gates", "agent_focus", "source_refs")

_SIGNS = "abcdefghijklmnopqrstuvwxyz0123456789"


def new_id(now: datetime) -> str:
    """A name for a cycle that begins now."""
    word = "".join(secrets.choice(_SIGNS) for _ in range(8))
    return f"cycle-v1-{now.astimezone(schema.LOCAL):%Y%m%dT%H%M%S}-{word}"


def first_state(
    id: str,
    now: datetime,
    description: str,
    title: str = "",
    iterations: int = ITERATIONS,
    prepared: Object | None = None,
    messages: Sequence[str] = (),
) -> Object:
    """The state of a cycle that begins.

    Args:
        id: its name.
        now: when.
        description: what is to be built.
        title: "" for the beginning of the description.
        iterations: how many there are at most.
        prepared: the fields that the project's package fills.
        messages: what is said of that package in the timeline.

    Raises:
        Refused: there is nothing to do, or the limit is no number of iterations.
    """
    said = description.strip()
    if not said:
        raise Refused("give the task: what to build")
    if not 1 <= iterations <= changes.LIMIT:
        raise Refused(f"the iteration limit must be a number from 1 to {changes.LIMIT}")
    agents: Object = {
        name: {"status": "idle", "output_files": [], "iterations_completed": 0}
        for name in schema.AGENTS
    }
    state: Object = {
        "cycle_id": id,
        "title": " ".join((title.strip() or said).split())[:100],
        "description": said,
        "task_history": [said],
        "status": "running",
        "created_at": schema.stamp_of(now),
        "updated_at": schema.stamp_of(now),
        "max_iterations": iterations,
        "current_iteration": 0,
        "agents": agents,
        "current_phase": "init",
        "completed_phases": [],
        "phase_errors": [],
        "requirements": None,
        "exploration": None,
        "plan": None,
        "changes": [],
        "test_results": None,
        "iterations": [],
        "coordination": {"feedback_log": [], "pending_decisions": [], "blockers": []},
        "version": schema.FIRST_VERSION,
        **dict.fromkeys(PREPARED),
        **(prepared or {}),
    }
    note(state, now, "orchestrator", "created cycle")
    for each in messages:
        note(state, now, "orchestrator", each)
    finish(state, now)
    return state


def create_cycle(root: Path, state: Object) -> Store:
    """Make a cycle's folders and write its state.

    Raises:
        Refused: there is one of that name, or a symbolic link stands in the way.
        OSError: it cannot be written.
    """
    folder = root
    if not root.is_dir():
        raise Refused(f"{root}: no such folder")
    check(matters.of_disk(root), START_ACT)
    for name in schema.HOME:
        folder = folder / name
        if folder.is_symlink():
            raise Refused(f"{folder} is a symbolic link: acp does not follow links")
        atomic.shared_folder(folder)
    store = Store(root, schema.text(state.get("cycle_id")))
    if store.path.exists():
        raise Refused(f"{store.path.name} already exists")
    layout.make(store.progress)
    store.create(state)
    return store


_NUMBERED_LOGS = ("changes.log", "code-changes.log", "debug-log.ndjson")

_MOST_ITERATIONS = 1_000  # iterations that are recorded


def rebuilt_state(progress: Path, id: str, now: datetime, old: Object | None = None) -> Object:
    """The state that the documents tell of.

    Args:
        progress: the cycle's progress folder.
        id: the cycle.
        now: when it is made.
        old: what can still be read of the old one: it is kept where the documents tell nothing.

    Raises:
        Refused: no agent has left a document, and the old state is whole or cannot be read.
    """
    is_partial = bool(old) and what_is_lacking(old or {}) != ""  # it is only not whole
    if not is_partial and not any(scan.agent_documents(progress, name) for name in AGENTS):
        raise Refused(f"{progress.name} has no documents to rebuild from")
    state = first_state(id, now, _first_heading(progress, id))
    state["coordination"] = {}  # no line says that it was created just now
    state |= {k: v for k, v in (old or {}).items() if k != "agents" and v is not None}
    state["cycle_id"] = id
    before = (old or {}) if is_partial else {}
    versions = [
        _keep_agent(state, before, n) or _rebuild_agent(state, progress, n, now) for n in AGENTS
    ]
    common = max(
        (each for each in versions if each), key=layout.parts, default=schema.FIRST_VERSION
    )
    state["version"] = common
    if not iteration_of(state):
        state["current_iteration"] = _latest_iteration(progress) or max(
            1, layout.parts(common)[1] + 1
        )
    if not schema.objects(state.get("iterations")):
        numbers = range(1, int(str(state["current_iteration"])) + 1)
        state["iterations"] = [
            {"number": each, "agent_results": {}} for each in numbers[:_MOST_ITERATIONS]
        ]
    limit = schema.count(state.get("max_iterations")) or 0
    state["max_iterations"] = max(limit, int(str(state["current_iteration"])))
    _rebuild_plan(state, progress, now)
    _rebuild_tests(state, progress, now)
    undone = [n for n in AGENTS if changes.agent_of(state, n).get("status") != "completed"]
    state["current_phase"] = undone[0] if undone else AGENTS[-1]
    state["status"] = "paused"
    state.pop("completed_at", None)
    state["rebuilt_at"] = schema.stamp_of(now)
    note(state, now, "orchestrator", "the state was rebuilt from the agents' documents")
    return state


def _first_heading(progress: Path, id: str) -> str:
    for line in layout.read(progress / "ra" / "requirements.md").splitlines():
        if line.startswith("#") and (said := line.lstrip("# ").strip()):
            return said[:500]
    return f"Rebuilt: {id}"


def _latest_iteration(progress: Path) -> int:
    """The latest iteration of which the tests' results or a log tell; 0 for none."""
    rows = [layout.read_json(progress / "vas" / "test-results.json") or {}]
    for name in AGENTS:
        for log in _NUMBERED_LOGS:
            rows += [row for _, row in schema.numbered_objects(layout.read(progress / name / log))]
    return max((schema.count(each.get("iteration")) or 0 for each in rows), default=0)


def _failed_tests(tests: Object) -> list[str]:
    """The tests that failed: also those that are only counted."""
    names = failed_names(tests)
    count = schema.count(schema.obj(tests.get("summary")).get("failed")) or 0
    more = range(len(names) + 1, min(count, schema.MANY) + 1)
    return [*names, *(f"{each} of {count}, not named" for each in more)]


def _keep_agent(state: Object, before: Object, name: str) -> str:
    """What can still be read of an agent stays as it is: its version, "" where nothing can be."""
    held = agent_in(before, name)
    if schema.ALIASES.get(held.status, held.status) not in schema.AGENT_STATUSES:
        return ""
    agents = schema.obj(state.get("agents"))
    state["agents"] = agents | {name: held.raw}
    return held.version or schema.FIRST_VERSION


def _rebuild_agent(state: Object, progress: Path, name: str, now: datetime) -> str:
    """What an agent has left: its first document says that it had its turn."""
    version = layout.version_of_agent(progress, name)
    there = scan.is_regular(progress / name / DOCUMENT_NAMES[name][0])
    if name == "ep":
        there = there or scan.is_regular(progress / name / "plan.json")
    if name == "vas":
        there = there or scan.is_regular(progress / name / "test-results.json")
    made: Object = {
        "status": "completed" if there else "idle",
        "output_files": layout.listed(progress, name),
        "iterations_completed": 1 if there else 0,
    }
    if there:
        made |= {"version": version or schema.FIRST_VERSION, "completed_at": schema.stamp_of(now)}
    agents = schema.obj(state.get("agents"))
    agents[name] = made
    state["agents"] = agents
    return version if there else ""


def _rebuild_plan(state: Object, progress: Path, now: datetime) -> None:
    value = layout.read_json(progress / "ep" / "plan.json")
    if not value or plan_of(state.get("plan")).tasks:
        return
    found = plan_of(value)
    state["plan"] = {
        "version": found.version or schema.FIRST_VERSION,
        "tasks": [each.entry(each.status) for each in found.tasks],
        "critical_path": [*found.critical_path],
        "last_updated": schema.stamp_of(now),
    }


def _rebuild_tests(state: Object, progress: Path, now: datetime) -> None:
    tests = layout.read_json(progress / "vas" / "test-results.json")
    if not tests or state.get("test_results"):
        return
    summary = schema.obj(tests.get("summary"))
    coverage = tests.get("coverage")
    state["test_results"] = {
        "version": schema.text(tests.get("version")) or schema.FIRST_VERSION,
        "failed_tests": _failed_tests(tests),
        "total_tests": schema.count(summary.get("total", tests.get("total_tests"))),
        "coverage": coverage.get("lines") if isinstance(coverage, dict) else coverage,
        "last_run": tests.get("timestamp") or schema.stamp_of(now),
    }
