"""The sign of life of the supervisor of parked loops, and who ends it where there is none.

A supervisor that was stopped (SIGSTOP) or hangs keeps its connections open, so that no parked loop
would ever hear of anything. It writes a line now and then, in the very loop in which it does its
work. A shell beside it, its watchdog, reads that line and kills it where the line stays the same:
then every connection ends, and every loop goes on by itself. Where the watchdog does not live
either, whoever looks sees how old the line is.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import NamedTuple

from acp_core.agents import codec
from acp_core.files import owners
from acp_core.files.owners import Process
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.loops.parking import folder, shell
from acp_core.protocols.kit.diagnosis import Patience

_BEAT = 10.0  # seconds between two lines
_MISSED = 3  # looks of the watchdog, a beat apart, at which the line was the same
_SILENT = 6  # beats after which whoever looks says so: the watchdog had its time
_LARGEST = 1 << 10  # bytes of a sign
_ENDING = 2.0  # seconds for one that was killed to be gone
_STEP = 0.02
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
        self._me = owners.process(os.getpid())
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
        time.sleep(_STEP)
    return not found.process.alive()
