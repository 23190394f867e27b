"""A loop that waits becomes a program of a tenth of a megabyte, and the same process.

It asks this account's supervisor (`acp_core.loops.supervisor`) to look in its stead, over a
connection, and then runs a shell in its own place, which does nothing but read that connection.
It is the same process: its id, its locks and its environment stay, so that its claim, its state
and whoever stops it need not know. When there is something to do the supervisor writes a word,
and the shell becomes the loop again; when the supervisor dies the connection ends, and it does
so, too. When the process dies the connection ends as well, which is how the supervisor hears of it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple, NoReturn

from acp_core.agents import background, codec
from acp_core.agents.hold import Locks
from acp_core.agents.parked import NAME
from acp_core.agents.place import Place
from acp_core.files.reading import stamp
from acp_core.model.errors import NotStarted
from acp_core.person import paths
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


def own_files(where: Place, lock: Path) -> dict[str, object]:
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


def become_shell(line: Line, where: Place, locks: Locks) -> NoReturn:
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
    os.execv(program, ["sh", "-c", script, NAME, *resume])


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
