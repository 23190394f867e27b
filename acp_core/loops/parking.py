"""A loop that waits becomes a program of a tenth of a megabyte, and the same process.

It asks this account's supervisor (`acp_core.loops.supervisor`) to look in its stead, over a
connection, and then runs a shell in its own place, which does nothing but read that connection.
It is the same process: its id, its locks and its environment stay, so that its claim, its state
and whoever stops it need not know. When there is something to do the supervisor writes a word,
and the shell becomes the loop again; when the supervisor dies the connection ends, and it does
so, too. When the process dies the connection ends as well, which is how the supervisor hears of it.

A supervisor that was stopped (SIGSTOP) or hangs keeps its connections open, so that no parked loop
would ever hear of anything. So it gives a sign of life (`Heartbeat`): it writes a line now and then,
in the very loop in which it does its work. A shell beside it, its watchdog, reads that line and kills
it where the line stays the same: then every connection ends, and every loop goes on by itself. Where
the watchdog does not live either, whoever looks sees how old the line is.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

from acp_core.agents import background, codec
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.processes import PARKED_NAME
from acp_core.agents.session_lock import Locks
from acp_core.files import claims
from acp_core.files.claims import Process
from acp_core.files.reading import Unreadable, read_bounded, stamp
from acp_core.model.errors import NotStarted
from acp_core.person import paths
from acp_core.protocols.kit.diagnosis import Patience
from acp_core.protocols.processes import LOOP, SUPERVISOR

RESUME = "resume"
WAKE, LOST = "wake", "lost"
"""Why a loop goes on: there may be something to do; the supervisor is gone."""
READY = b"ok "
_CLAIM, _OWN = 8, 9  # where the locks are open in the shell: POSIX knows numbers of one digit
_HIGH = 20  # above the numbers that are used here
_PATIENCE = 5.0  # seconds for the supervisor's answer
_TRIES = 20
_STEP = 0.1
_AT_A_TIME = 4  # loops that begin in the same second, when the supervisor is gone
_SHELLS = ("dash", "sh")  # the smallest first
_WAIT = """\
trap 'exec "$@" SIGTERM </dev/null' TERM
trap 'exec "$@" SIGINT </dev/null' INT
trap 'exec "$@" SIGHUP </dev/null' HUP
read -r word || { word=%s; sleep %d 8>&- 9>&- & wait $!; }
exec "$@" "$word" </dev/null
"""
Numbers = list[int] | None
"""A file's stamp, as JSON has it; None where there is no such file."""


@dataclass(frozen=True, slots=True)
class Parked:
    """What a loop asks the supervisor to look at.

    Attributes:
        folder: the collaboration.
        participant: whose turn is waited for.
        claim: the name of the loop's claim: requests to it are looked for.
        signs: the files of which one changes when it may be the participant's turn, with their
            stamps when the loop looked last.
        own: the files that the loop must look at itself once they change.
        deadline: when the loop must go on whatever happened.
    """

    folder: str
    participant: str
    claim: str
    signs: dict[str, object]
    own: dict[str, object]
    deadline: datetime | None = None


class Line(NamedTuple):
    """A connection to the supervisor, and the loop's number among those that wait."""

    connection: socket.socket
    rank: int


def folder() -> Path:
    """Where this account's supervisor has its socket and its lock."""
    return paths.state_folder() / "parked"


def numbers(path: str | os.PathLike[str]) -> Numbers:
    """A file's stamp."""
    found = stamp(path)
    return None if found is None else list(found)


def own_files(where: LoopDirectory, lock: Path) -> dict[str, object]:
    """What a loop looks at before every act: its locks, and whether a person left a message."""
    return {str(path): numbers(path) for path in (lock, where.lock, where.nudge)}


def ask(parked: Parked) -> Line | None:
    """Ask the supervisor to look instead of us, and start one where there is none.

    Returns:
        The connection to it; None where it does not answer: then the loop looks itself.
    """
    if shell() is None:
        return None
    connection = _connected()
    if connection is None:
        return None
    with contextlib.suppress(OSError, ValueError):
        connection.settimeout(_PATIENCE)
        connection.sendall(codec.encode(parked))
        answer = connection.recv(64)
        if answer.startswith(READY):
            connection.settimeout(None)
            return Line(connection, int(answer[len(READY) :]))
    connection.close()
    return None


def _connected() -> socket.socket | None:
    started = False
    for _ in range(_TRIES):
        with contextlib.suppress(OSError):
            return connect(folder())
        if not started:
            started = True
            with contextlib.suppress(NotStarted):  # another loop starts it just now
                background.start(SUPERVISOR.module)
        else:
            time.sleep(_STEP)
    return None


def connect(where: Path) -> socket.socket:
    """Connect to the supervisor. Names of sockets are short, so it is named from its folder.

    Raises:
        OSError: there is none.
    """
    connection = socket.socket(socket.AF_UNIX)
    before = os.getcwd()
    try:
        os.chdir(where)
        connection.connect("socket")
    except OSError:
        connection.close()
        raise
    finally:
        os.chdir(before)
    return connection


def become_shell(line: Line, where: LoopDirectory, locks: Locks) -> NoReturn:
    """Be nothing but a shell that reads the connection. All that was open is closed by it."""
    import fcntl  # late: missing elsewhere

    program = shell()
    assert program is not None
    high = [
        fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
        for fd in (line.connection.fileno(), locks.claim, locks.own)
    ]
    for fd, to in zip(high, (0, _CLAIM, _OWN), strict=True):
        os.dup2(fd, to)
    script = _WAIT % (LOST, line.rank // _AT_A_TIME)
    resume = [sys.executable, "-P", "-m", LOOP.module, RESUME, str(where.folder)]
    os.execv(program, ["sh", "-c", script, PARKED_NAME, *resume])


def inherited() -> Locks:
    """The locks that the shell has handed on; no program that is started inherits them.

    Raises:
        OSError: there are none.
    """
    import fcntl  # late: missing elsewhere

    fds = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in (_CLAIM, _OWN)]
    for fd in (_CLAIM, _OWN):
        os.close(fd)
    return Locks(*fds)


def shell() -> str | None:
    """The smallest shell that there is here."""
    return next(filter(None, (shutil.which(name, path=os.defpath) for name in _SHELLS)), None)


_BEAT = 10.0  # seconds between two lines
_MISSED = 3  # looks of the watchdog, a beat apart, at which the line was the same
_SILENT = 6  # beats after which whoever looks says so: the watchdog had its time
_LARGEST = 1 << 10  # bytes of a sign
_ENDING = 2.0  # seconds for one that was killed to be gone
_ENDING_STEP = 0.02
_NAME = "alive"
_WATCH = """\
last= missed=0
while sleep "$2"; do
  read -r line < "$3" || exit 0
  [ "$line" = "$last" ] && missed=$((missed + 1)) || missed=0
  last=$line
  kill -0 "$1" 2>/dev/null || exit 0
  [ "$missed" -lt "$4" ] && continue
  read -r _ _ _ parent _ 2>/dev/null < "/proc/$$/stat" || parent=$(ps -o ppid= -p $$)
  [ "$((parent))" -eq "$1" ] && kill -KILL "$1"
  exit 0
done
"""


@dataclass(frozen=True, slots=True)
class _Sign:
    """A sign of life: whose, and when by the clock that no person sets and no sleep moves."""

    process: Process
    at: float


class Silent(NamedTuple):
    """A supervisor that lives and gives no sign of it.

    Attributes:
        process: which.
        seconds: since its last sign of life.
    """

    process: Process
    seconds: float

    @property
    def cure(self) -> str:
        """The command that ends it, after which every parked loop goes on by itself."""
        return f"kill -KILL {self.process.pid}"

    @property
    def sentence(self) -> str:
        """What is the matter, for people, without a full stop."""
        return f"the supervisor of idle loops (process {self.process.pid}) has not responded for {self.seconds:.0f} s: idle loops do not notice their turn"


class Heartbeat:
    """The supervisor's side: writes the line, and has a watchdog."""

    def __init__(self) -> None:
        self._path = folder() / _NAME
        self._me = claims.this_process(os.getpid())
        self._watchdog: subprocess.Popen[bytes] | None = None
        self._due = 0.0
        self._pace = pace()

    def seconds_left(self) -> float:
        """Until the next line."""
        return self._due - time.monotonic()

    def beat(self) -> None:
        """Write the line where it is time to, and see to it that the watchdog lives."""
        if self.seconds_left() > 0:
            return
        self._due = time.monotonic() + self._pace
        with contextlib.suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.ftruncate(fd, os.pwrite(fd, codec.encode(_Sign(self._me, time.monotonic())), 0))
            finally:
                os.close(fd)
        if self._watchdog is None or self._watchdog.poll() is not None:
            self._watchdog = self._start()

    def _start(self) -> subprocess.Popen[bytes] | None:
        program = shell()
        if program is None:
            return None
        words = [str(self._me.pid), f"{self._pace:g}", str(self._path), str(_MISSED)]
        with contextlib.suppress(OSError):
            return subprocess.Popen(
                [program, "-c", _WATCH, "acp-watchdog", *words],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                cwd="/", start_new_session=True,
            )  # fmt: skip
        return None

    def end(self) -> None:
        """No more signs of life are to be expected."""
        self._path.unlink(missing_ok=True)
        if self._watchdog is not None:
            with contextlib.suppress(OSError):
                os.killpg(self._watchdog.pid, signal.SIGKILL)
            self._watchdog.wait()


def pace() -> float:
    """Seconds between two signs of life; fewer at a demo's speed."""
    return Patience.of_environment().scaled(_BEAT)


def silent() -> Silent | None:
    """This account's supervisor, where it lives and has given no sign of it for long."""
    try:
        sign = codec.decode(_Sign, read_bounded(folder() / _NAME, _LARGEST))
    except (OSError, Unreadable, codec.CodecError):
        return None
    seconds = time.monotonic() - sign.at
    return Silent(sign.process, seconds) if seconds > _SILENT * pace() and _lives(sign) else None


def _lives(sign: _Sign) -> bool:
    return sign.process.pid > 0 and bool(sign.process.alive())


def end_silent() -> bool:
    """Kill a supervisor that gives no sign of life: its loops go on, and start another one.

    Returns:
        Whether there was one, and it has ended.
    """
    found = silent()
    if found is None:
        return False
    until = time.monotonic() + _ENDING
    with contextlib.suppress(OSError):
        os.kill(found.process.pid, signal.SIGKILL)
    while found.process.alive() and time.monotonic() < until:
        time.sleep(_ENDING_STEP)
    return not found.process.alive()
