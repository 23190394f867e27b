"""``python -m acp_core.loops.supervisor``: looks whether parked loops have something to do.

There is one for each account (each state folder). It is started by the first loop that parks,
and ends when there are none. It reads no collaboration and writes nothing but a sign of life: where
files changed that may make it somebody's turn, a worker (`acp_core.loops.due`) reads whose, and ends
when it has been idle for a while. Whatever is not clear here is left to the loop itself: it is woken.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import select
import selectors
import socket
import subprocess
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from acp_core.agents import background, codec
from acp_core.agents.background import importable
from acp_core.files import atomic, claims, requests
from acp_core.files.claims import run_folder
from acp_core.files.watch import Report, Wake, Watcher
from acp_core.loops.parking import READY, WAKE, Heartbeat, Parked, folder, numbers
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted
from acp_core.protocols.processes import DUE

_WORKER_PATIENCE = 20.0  # seconds for an answer: then the loops look themselves


class WorkerAnswer(NamedTuple):
    """Who has something to do.

    Attributes:
        folder: the collaboration.
        due: the participants; all of them where that could not be found out.
    """

    folder: str
    due: frozenset[str]


class Worker:
    """A process that is there when it is needed: it ends by itself when it is idle."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: WorkerAnswer | None = None
        self._until = 0.0

    @property
    def busy(self) -> bool:
        """Whether an answer is waited for."""
        return self._asked is not None

    @property
    def answers(self) -> IO[bytes] | None:
        """What can be read once there is an answer, or the worker ended."""
        return self._process.stdout if self._process else None

    def seconds_left(self) -> float:
        """How long an answer may still take."""
        return self._until - time.monotonic()

    def ask(self, folder: str, participants: Iterable[str]) -> None:
        """Ask who of some participants has something to do. `answer` says it."""
        self._asked = WorkerAnswer(folder, frozenset(participants))
        self._until = time.monotonic() + _WORKER_PATIENCE
        line = json.dumps([folder, sorted(self._asked.due)]).encode() + b"\n"
        for _ in range(2):  # one that was idle may just be ending
            if self._write(line):
                return
        self._until = 0.0

    def _write(self, line: bytes) -> bool:
        try:
            if self._process is None or self._process.poll() is not None:
                self.close()
                self._process = _start()
            assert self._process.stdin is not None
            self._process.stdin.write(line)
        except OSError:
            self.close()
            return False
        return True

    def answer(self) -> WorkerAnswer | None:
        """The answer to what was asked last; None where it is still waited for."""
        asked = self._asked
        if asked is None:
            return None
        out = self.answers
        if out is None or self.seconds_left() <= 0:
            self.close()
        elif not select.select([out], [], [], 0)[0]:
            return None
        self._asked = None
        try:
            return WorkerAnswer(asked.folder, frozenset(json.loads(out.readline() if out else b"")))
        except (ValueError, TypeError):  # it has ended, or was ended
            self.close()
            return asked

    def close(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for each in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if each:
                        each.close()


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-P", "-m", DUE.module],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={**os.environ, **importable()},
    )


_IDLE = 5.0  # seconds without a parked loop after which it ends
_ANYWAY = 30.0  # seconds between two looks at all files although nothing seems to have changed
_READ = 3600.0  # seconds between two readings of a collaboration, likewise
_AGAIN = 3.0  # seconds after a reading until the next: what was being written is written then
_LARGEST = 1 << 20  # bytes of what a loop asks
_PATIENCE = 2.0  # seconds for a loop to say what it asks
SPARE = 64  # open files beside the loops' connections
_OPEN = 1 << 16  # open files that are asked of the system


@dataclass
class _Folder:
    """A collaboration in which loops are parked."""

    read_at: float = field(default_factory=lambda: time.monotonic() + _READ)
    loops: dict[socket.socket, Parked] = field(default_factory=dict)


class Supervisor:
    """Takes loops in, looks at their files, and wakes those that have something to do.

    Args:
        listening: The socket that loops connect to.
        still_there: Whether loops would connect to this one.
    """

    def __init__(self, listening: socket.socket, still_there: Callable[[], bool]) -> None:
        self._listening = listening
        self._still_there = still_there
        self._folders: dict[str, _Folder] = defaultdict(_Folder)
        self._where: dict[socket.socket, str] = {}
        self._wake = Wake()
        self._reports: deque[frozenset[Path]] = deque()
        self._watcher = Watcher(self._report)
        self._worker = Worker()
        self._heartbeat = Heartbeat()
        self._selector = selectors.DefaultSelector()
        self._inspect_at = 0.0
        self._most = _connections()

    def run(self) -> int:
        """Look until no loop is parked any more, or none could come. Returns the exit code."""
        self._wake.open()
        for each in (self._listening, self._wake.fileno()):
            self._selector.register(each, selectors.EVENT_READ)
        used = time.monotonic()
        while self._still_there():
            now = time.monotonic()
            used = now if self._where else used
            if now - used > _IDLE:
                break
            self._heartbeat.beat()
            self._once(now)
        self._heartbeat.end()
        self._listening.close()
        self._watcher.close()
        self._worker.close()
        return 0

    def _once(self, now: float) -> None:
        """Wait for something, and do what follows."""
        for key, _ in self._selector.select(self._seconds(now)):
            if key.fileobj is self._listening:
                self._accept()
            elif isinstance(key.fileobj, socket.socket):
                self._drop(key.fileobj)  # it never says anything more: it has ended
        self._take_answers()
        self._wake.clear()
        changed: set[Path] = set()
        while self._reports:
            changed |= self._reports.popleft()
        if time.monotonic() >= self._inspect_at:
            self._inspect_at = time.monotonic() + _ANYWAY
            self._inspect(list(self._where))
        else:
            self._inspect(self._concerned(changed))
        self._read()

    def _concerned(self, changed: set[Path]) -> list[socket.socket]:
        """The loops with files in folders that changed, or whose time is over."""
        over = [each for each in self._where if _is_late(self._parked(each))]
        if not changed:
            return over
        return over + [each for each in self._where if not changed.isdisjoint(self._watched(each))]

    def _seconds(self, now: float) -> float:
        if not self._where:
            return min(_IDLE, max(0.01, self._heartbeat.seconds_left()))
        due = [self._inspect_at, *(each.read_at for each in self._folders.values())]
        soon = min(min(due) - now, self._heartbeat.seconds_left())
        deadlines = [d for each in self._where if (d := self._parked(each).deadline)]
        if deadlines:
            soon = min(soon, (min(deadlines) - utc_now()).total_seconds())
        if self._worker.busy:
            soon = min(soon, self._worker.seconds_left())
        return max(0.01, soon)

    def _parked(self, connection: socket.socket) -> Parked:
        return self._folders[self._where[connection]].loops[connection]

    # loops that come and go

    def _accept(self) -> None:
        connection, _ = self._listening.accept()
        parked = _asked(connection) if len(self._where) < self._most else None
        if parked is None:  # it goes on looking by itself
            connection.close()
            return
        self._folders[parked.folder].loops[connection] = parked
        self._where[connection] = parked.folder
        self._selector.register(connection, selectors.EVENT_READ)
        try:
            connection.sendall(READY + str(len(self._where)).encode())
        except OSError:
            self._drop(connection)
            return
        self._watch()
        self._inspect([connection])

    def _drop(self, connection: socket.socket) -> None:
        key = self._where.pop(connection)
        known = self._folders[key]
        del known.loops[connection]
        if not known.loops:
            del self._folders[key]
        self._selector.unregister(connection)
        connection.close()
        self._watch()

    def _rouse(self, connection: socket.socket) -> None:
        """Have a loop go on by itself; it comes back when there is nothing more to do."""
        with contextlib.suppress(OSError):  # it has just ended
            connection.sendall(f"{WAKE}\n".encode())
        self._drop(connection)

    # what they wait for

    def _report(self, report: Report) -> None:
        """Something changed (in the watcher's thread)."""
        self._reports.append(report.changed)
        self._wake.set()

    def _watch(self) -> None:
        self._watcher.replace({path for each in self._where for path in self._watched(each)})

    def _watched(self, connection: socket.socket) -> set[Path]:
        parked = self._parked(connection)
        folders = {Path(path).parent for path in (*parked.signs, *parked.own)}
        return folders | {run_folder(parked.folder) / requests.FOLDER}

    def _inspect(self, connections: list[socket.socket]) -> None:
        """Compare the files of loops with how they were."""
        for each in dict.fromkeys(connections):
            parked = self._parked(each)
            if _has_own(parked):
                self._rouse(each)
            elif not _is_same(parked.signs):
                parked.signs.update({path: numbers(path) for path in parked.signs})
                self._folders[parked.folder].read_at = 0.0

    def _read(self) -> None:
        """Have the worker read where it is time to, one collaboration after the other."""
        now = time.monotonic()
        due = [key for key, each in self._folders.items() if each.read_at <= now]
        if not due or self._worker.busy:
            return
        key = min(due, key=lambda each: self._folders[each].read_at)
        known = self._folders[key]
        known.read_at = now + (_AGAIN if known.read_at == 0.0 else _READ)
        people = {each.participant for each in known.loops.values()}
        self._worker.ask(key, people)
        if self._worker.answers is not None:
            self._selector.register(self._worker.answers, selectors.EVENT_READ)

    def _take_answers(self) -> None:
        if not self._worker.busy:
            return
        answers = self._worker.answers
        answer = self._worker.answer()
        if answer is None:
            return
        if answers is not None and answers in self._selector.get_map():
            self._selector.unregister(answers)
        known = self._folders.get(answer.folder)
        for each, parked in list(known.loops.items()) if known else ():
            if parked.participant in answer.due:
                self._rouse(each)


def _connections() -> int:
    """How many loops can be parked: as many files as the system lets a process open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN if hard == resource.RLIM_INFINITY else min(_OPEN, hard)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    return max(1, max(soft, wanted) - SPARE)


def _has_own(parked: Parked) -> bool:
    """Whether there is something that only the loop itself can see to.

    As long as the whole folder is away, its claim is not lost.
    """
    if _is_late(parked):
        return True
    away = not os.path.isdir(parked.folder)
    lock = str(claims.lock_of(parked.folder, parked.claim))
    own = {path: seen for path, seen in parked.own.items() if not (away and path == lock)}
    return not _is_same(own) or _is_asked(parked)


def _is_late(parked: Parked) -> bool:
    return parked.deadline is not None and utc_now() >= parked.deadline


def _is_same(stamps: dict[str, object]) -> bool:
    return all(numbers(path) == before for path, before in stamps.items())


def _is_asked(parked: Parked) -> bool:
    return any(each.act == requests.STOP for each in requests.pending(parked.folder, parked.claim))


def _asked(connection: socket.socket) -> Parked | None:
    """What a loop asks for, which just connected; None where that is not understood."""
    connection.settimeout(_PATIENCE)
    data = b""
    try:
        while not data.endswith(b"\n") and len(data) < _LARGEST:
            more = connection.recv(1 << 16)
            if not more:
                return None
            data += more
        return codec.decode(Parked, data)
    except (OSError, codec.CodecError):
        return None


def main() -> int:
    """Be this account's supervisor. Returns the exit code."""
    return background.run(_supervise, NotStarted)


def _supervise(ready: background.Ready) -> int:
    where = folder()
    atomic.private_folder(where)
    lock = os.open(where / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise NotStarted("there is a supervisor already") from None
    listening = _listen(where)
    mine = numbers(where / "socket")
    ready()

    def still_there() -> bool:
        return claims.is_same(where / "lock", lock) and numbers(where / "socket") == mine

    return Supervisor(listening, still_there).run()


def _listen(where: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    os.chdir(where)  # names of sockets are short
    (where / "socket").unlink(missing_ok=True)
    before = os.umask(0o177)
    listening.bind("socket")
    os.umask(before)
    os.chdir("/")
    listening.listen(256)
    return listening


if __name__ == "__main__":
    sys.exit(main())
