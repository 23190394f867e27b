"""What diagnoses look at beside Snapshots: the loops of this machine, and other processes.

One for a whole fleet, used from any thread. Loops cost a look at their state files; whether
their processes live is asked all the time, at next to no cost. What takes time to import is
imported by the first look, in a worker.
"""

from __future__ import annotations

import contextlib
import logging
import os
import select
import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.agents import loop_directory
from acp_core.files import claims
from acp_core.model import Runner, Snapshot, Status
from acp_core.person.paths import key_of
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import Patience, UnmanagedProcess, safe_id

if TYPE_CHECKING:
    from acp_core.agents.live.answers import OpenRequest
    from acp_core.agents.registry import Registry
    from acp_core.agents.state import RunnerState
    from acp_core.diagnosis.engine import Diagnosis
    from acp_core.diagnosis.processes import UnmanagedProcesses

_log = logging.getLogger(__name__)
Loops = tuple["RunnerState", ...]
Waiting = tuple["OpenRequest", ...]


class Observer:
    """Knows every loop, and who else is at work.

    Args:
        patience: How long things may last; by default as in earnest, or at a demo's speed.

    Attributes:
        note: what keeps parked loops from waking; "" while they do.
    """

    def __init__(self, patience: Patience | None = None) -> None:
        self.patience = patience or Patience.of_environment()
        self._lock = threading.Lock()
        self._registry: Registry | None = None
        self._strangers: UnmanagedProcesses | None = None
        self._loops: dict[str, Loops] | None = None
        self._waiting: dict[str, Waiting] = {}
        self._pulse = Pulse()
        self.note = ""

    def loops(self, key: str) -> Loops:
        """The loops of one collaboration, as of the last look (the first one, if need be).

        Args:
            key: the collaboration's, as in its Snapshot; links in the path are followed.
        """
        with self._lock:
            if self._loops is None:
                self._read()
            return self._loops.get(key_of(key), ()) if self._loops else ()

    def at_rest(self, key: str) -> str | None:
        """What is known of a collaboration's loops where none is at work, and nothing is asked.

        Args:
            key: the collaboration's, as in its Snapshot; links in the path are followed.

        Returns:
            A text that is another one wherever that is; None where something is at work.
        """
        with self._lock:
            if self._loops is None:
                self._read()
            assert self._loops is not None
            if not self._loops and not self._waiting:
                return ""
            name = key_of(key)
            loops, waiting = self._loops.get(name, ()), self._waiting.get(name)
        if waiting or any(loop.alive or loop.program_alive for loop in loops):
            return None
        return repr(loops) if loops else ""

    def refresh(self) -> frozenset[str]:
        """Read the state of all loops, and the requests for permission that wait.

        Returns:
            The names (see `key_of`) of collaborations where either changed since the last time.
        """
        with self._lock:
            before, asked = self._loops or {}, self._waiting
            self._read()
            return _changed(before, self._loops or {}) | _changed(asked, self._waiting)

    def _read(self) -> None:
        if self._registry is None and loop_directory.are_any():
            from acp_core.agents.registry import Registry

            self._registry = Registry()
        by_key: dict[str, list[RunnerState]] = {}
        for loop in self._registry.runners() if self._registry is not None else ():
            by_key.setdefault(loop.folder, []).append(loop)
        self.note = _silence() if by_key else ""
        self._loops = {key: tuple(loops) for key, loops in by_key.items()}
        self._waiting = _waiting()
        living = [pid for loops in by_key.values() for loop in loops for pid in _pids(loop)]
        asking = [each.publisher.pid for found in self._waiting.values() for each in found]
        self._pulse.follow([*living, *asking])

    def stopped(self) -> bool:
        """Whether a process that lived at the last look has ended. Costs next to nothing."""
        with self._lock:
            return self._pulse.stopped()

    @property
    def alive(self) -> bool:
        """Whether any process lived at the last look."""
        with self._lock:
            return bool(self._pulse)

    def folders(self, names: Iterable[str]) -> frozenset[Path]:
        """The folders in which something changes when a loop of these collaborations does.

        Args:
            names: of the collaborations (see `key_of`).
        """
        with self._lock:
            known = self._loops or {}
            places = {Path(loop.place) for name in names for loop in known.get(name, ())}
        return frozenset({loop_directory.root(), loop_directory.permissions(), *places})

    def diagnosis(self) -> Diagnosis:
        """A new diagnosis for one collaboration."""
        from acp_core.diagnosis.engine import Diagnosis

        return Diagnosis(self.patience)

    def diagnosed(
        self, diagnosis: Diagnosis, collaboration: Collaboration, snapshot: Snapshot, now: datetime
    ) -> Snapshot:
        """A Snapshot with its causes, by what is known of its loops and of other processes.

        As it is where that fails: what was read is worth showing without causes too.
        """
        try:
            loops = self.loops(snapshot.key)
            strangers: tuple[UnmanagedProcess, ...] = ()
            if snapshot.status is Status.ACTIVE and snapshot.turns:
                strangers = self._processes().of(snapshot.key, loops)
            runners = _runners(snapshot, loops, strangers)
            waiting = self._waiting.get(key_of(snapshot.key), ()) if self._waiting else ()
            return diagnosis.diagnose(
                collaboration, snapshot, loops, strangers, now, runners, waiting
            )
        except Exception:
            _log.warning("the diagnosis of %s failed", snapshot.key, exc_info=True)
            return snapshot

    def forget_processes(self) -> None:
        """Look at all processes again the next time."""
        self._processes().forget()

    def _processes(self) -> UnmanagedProcesses:
        with self._lock:
            if self._strangers is None:
                from acp_core.diagnosis.processes import UnmanagedProcesses

                self._strangers = UnmanagedProcesses()
            return self._strangers


def _silence() -> str:
    """What keeps parked loops from waking, with its cure; "" while nothing does."""
    from acp_core.loops import parking

    silent = parking.silent()
    return f"{silent.sentence} (to resume them: `{silent.cure}`)" if silent else ""


def _waiting() -> dict[str, Waiting]:
    """The requests that wait for a person, by collaboration."""
    if not loop_directory.permissions().is_dir():
        return {}
    from acp_core.agents.live.answers import waiting

    found: dict[str, Waiting] = {}
    for each in waiting():
        found[each.folder] = (*found.get(each.folder, ()), each)
    return found


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> frozenset[str]:
    keys = before.keys() | after.keys()
    return frozenset(key for key in keys if before.get(key) != after.get(key))


def _runners(
    snapshot: Snapshot, loops: Loops, strangers: Sequence[UnmanagedProcess]
) -> tuple[Runner, ...]:
    """Who runs the collaboration now: loops, those of others by their claims, and other agents."""
    running = [loop for loop in loops if loop.alive]
    there = "://" not in snapshot.key and claims.exists(snapshot.key)
    if there and claims.run_folder(snapshot.key).is_dir():
        from acp_core.agents.registry import seen_of_others

        known = {loop.pid for loop in loops}
        running += [loop for loop in seen_of_others(snapshot.key, known) if loop.alive]
    people = {participant.id for participant in snapshot.participants}
    named = [(safe_id(loop.participant), loop.account) for loop in running]
    known_names = {name for name, _ in named}
    strange = (safe_id(each.participant) for each in strangers)
    named += [(name, "") for name in strange if name not in known_names]
    found = (Runner(name if name in people else "", account) for name, account in named)
    return tuple(dict.fromkeys(found))


def _pids(loop: RunnerState) -> tuple[int, ...]:
    """The processes of a loop that live."""
    pids = [loop.pid] if loop.alive else []
    if loop.program_alive and loop.run:
        pids.append(loop.run.process.pid)
    return tuple(pids)


class Pulse:
    """Notices that one of some processes has ended, without asking about each of them."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}  # process id -> descriptor that tells of its end
        self._without: set[int] = set()

    def follow(self, pids: Iterable[int]) -> None:
        """Watch these processes from now on."""
        wanted = set(pids)
        for pid in self._open.keys() - wanted:
            os.close(self._open.pop(pid))
        self._without = set()
        for pid in wanted - self._open.keys():
            try:
                self._open[pid] = os.pidfd_open(pid)
            except (AttributeError, OSError):
                self._without.add(pid)

    def stopped(self) -> bool:
        """Whether one of them has ended since."""
        if self._open:
            poll = select.poll()
            for descriptor in self._open.values():
                poll.register(descriptor, select.POLLIN)
            if poll.poll(0):
                return True
        return any(not _exists(pid) for pid in self._without)

    def __bool__(self) -> bool:
        return bool(self._open or self._without)

    def __del__(self) -> None:
        for descriptor in self._open.values():
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
