"""Claims: that this process, of this account, conducts a run or plays a participant.

A claim lies with the collaboration, in ``.acp/run``, where every account that shares the folder
sees it: ``NAME.lock``, which its holder has locked for as long as it lives, and beside it
``NAME.json``, which says who that is. The lock alone decides; the record informs people, and
authorises nothing. A lock is never unlinked: whoever takes one that is free takes over. Because
somebody else may remove it all the same, takers look whether the path still names what they have
locked, and holders look again before each act. ``.acp/.gitignore`` is written before anything
else, so that nothing of this shows in git. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

from acp_core.files import atomic, mirrored, modes, mounts, owners
from acp_core.files.owners import Owner as Owner
from acp_core.files.owners import Process, read_record
from acp_core.files.owners import write_record as write_record
from acp_core.files.run_folder import HOME, prepare, run_folder, settle
from acp_core.files.run_folder import ClaimError as ClaimError
from acp_core.model.text import clean_line

try:
    import fcntl
except ImportError:  # Windows: everything can be read there, nothing run
    fcntl = None  # type: ignore[assignment]

SUPPORTED = fcntl is not None
CONDUCT = "conduct"
"""The name of the claim to conduct a run: there is one for each folder."""
_PATIENCE = 1.0  # seconds for which a lock is asked for: whoever only looks lets go at once
_STEP = 0.02
_TRIES = 50
_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)


class Held(ClaimError):
    """Another process holds the claim, or what it started still runs.

    Attributes:
        seen: who that is, as far as the record says.
    """

    def __init__(self, message: str, seen: Seen) -> None:
        super().__init__(message)
        self.seen = seen


class Lost(ClaimError):
    """The lock of a claim that was held is not there any more, or is another file."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What can be seen of a claim without taking it.

    Attributes:
        name: the claim's.
        path: its lock.
        held: a process holds it now.
        owner: who does, or did last; None where no record can be read.
    """

    name: str
    path: Path
    held: bool
    owner: Owner | None = None

    @property
    def child(self) -> Process | None:
        """The program that the last holder started, where it still runs."""
        child = self.owner.child if self.owner else None
        return child if child and child.may_live() else None

    @property
    def mine(self) -> bool:
        """Whether the holder belongs to this account."""
        return self.owner is not None and self.owner.uid == owners.uid()

    @property
    def sentence(self) -> str:
        """Who it is, for people, without a full stop: ``anna controls this run (...)``."""
        if self.owner is None:
            return f"another process has locked {self.path}"
        who = clean_line(self.owner.account, 80) or str(self.owner.uid)
        return f"{who} {activity(self.name)} ({_whereabouts(self.owner)})"


def activity(name: str) -> str:
    """What the holder of a claim does: ``controls this run``."""
    kind, _, rest = name.rpartition("/")
    return f"plays {clean_line(rest, 80)}" if kind == "loops" else "controls this run"


class Claim:
    """A claim that is held. Made by `take`; a context manager that lets go of it."""

    def __init__(self, path: Path, fd: int, owner: Owner) -> None:
        self.path = path
        self.owner = owner
        self._fd = fd

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def check(self) -> None:
        """Look whether the claim still holds; to be called before every act and every start.

        Raises:
            Lost: it does not.
        """
        if self._fd < 0 or not is_same(self.path, self._fd):
            raise Lost(
                f"the lock of this run was removed or replaced ({self.path}): "
                "stopped, nothing written"
            )

    def fileno(self) -> int:
        """The lock, open: whoever inherits it holds the claim on (see `inherit`)."""
        return self._fd

    def note_child(self, pid: int | None) -> None:
        """Write down which program this process has started; None once it has ended.

        Raises:
            Lost: the claim does not hold any more.
            OSError: it cannot be written.
        """
        self.check()
        self.owner = replace(self.owner, child=None if pid is None else owners.process(pid))
        write_record(self.path, self.owner)

    def release(self) -> None:
        """Let go of it. The record then says that this was on purpose."""
        if self._fd < 0:
            return
        with contextlib.suppress(OSError, ClaimError):
            self.check()
            self.owner = replace(self.owner, ended=_now())
            write_record(self.path, self.owner)
        os.close(self._fd)
        self._fd = -1


def take(
    project: str | os.PathLike[str],
    name: str,
    program: str = "",
    about: str = "",
    *,
    adopts: int | None = None,
) -> Claim:
    """Take a claim, over the record of whoever held it before.

    Args:
        project: the folder of the collaboration.
        name: the claim's: `CONDUCT`, or as `of_participant` makes it.
        program: what takes it, for people.
        about: the id of the run or cycle.
        adopts: the id of a process of the last holder's that the taker takes over.

    Raises:
        Held: another process holds it, or a program that the last holder started still runs.
        ClaimError: locks mean nothing there, or something stands in the place of the files.
        OSError: the files cannot be made.
    """
    if not SUPPORTED:
        raise ClaimError("acp is read-only here: this system does not support flock")
    if told := mirrored.holder(project):
        raise ClaimError(told)
    path = lock_of(project, name)
    prepare(project, *name.split("/")[:-1])
    fd = _lock(path, name)
    try:
        before = read_record(path)
        seen = Seen(name, path, False, before)
        if seen.child is not None and seen.child.pid != adopts:
            who = f"{seen.owner.account if seen.owner else '?'}"
            raise Held(
                f"a program that {who} started for this (process {seen.child.pid}) is still running: stop it, or wait until it ends",
                seen,
            )
        _refuse_unknown(path, before)
        me, epoch = owners.uid(), before.epoch + 1 if before else 1
        process = owners.process(os.getpid())
        owner = Owner(
            owners.account(me), me, process, program, _now(), epoch, about, child=seen.child
        )
        atomic.sweep(path.with_suffix(".json"))
        write_record(path, owner)
        return Claim(path, fd, owner)
    except BaseException:
        os.close(fd)
        raise


def inherit(project: str | os.PathLike[str], name: str, fd: int) -> Claim:
    """The claim that this very process took before it became the program that it is now.

    Args:
        project: the folder of the collaboration.
        name: the claim's.
        fd: its lock, open and held.

    Raises:
        Lost: the lock is not there any more, or the record is another process's.
    """
    path = lock_of(project, name)
    owner = read_record(path)
    if owner is None or owner.process.pid != os.getpid():
        raise Lost(f"{path} no longer names this process as the holder")
    claim = Claim(path, fd, owner)
    claim.check()
    return claim


def close_record(project: str | os.PathLike[str], name: str, pid: int) -> None:
    """Say in the record of a claim that its holder has ended, where it could not do so itself.

    Args:
        project: the folder of the collaboration.
        name: the claim's.
        pid: the process id of the holder, which has ended.
    """
    path = lock_of(project, name)
    if not SUPPORTED or not path.exists():
        return
    with contextlib.suppress(ClaimError, OSError):
        fd = _lock(path, name)
        owner = read_record(path)
        if owner is None or owner.ended or owner.process.pid != pid:
            os.close(fd)
        else:
            Claim(path, fd, owner).release()


def note(project: str | os.PathLike[str], name: str, child: int | None, about: str = "") -> None:
    """Write down which program was started, for what no process holds a claim of.

    The caller holds another lock under which all who start one look first (`Seen.child`).

    Args:
        project: the folder.
        name: the claim's.
        child: the program's process id; None once it has ended.
        about: the id of what it is for.

    Raises:
        ClaimError: something stands in the place of the files.
        OSError: they cannot be made.
    """
    path = lock_of(project, name)
    if child is None and read_record(path) is None:
        return
    prepare(project, *name.split("/")[:-1])
    me, process = owners.uid(), owners.process(os.getpid())
    started = None if child is None else owners.process(child)
    atomic.sweep(path.with_suffix(".json"))
    write_record(path, Owner(owners.account(me), me, process, "", _now(), 1, about, started))


def seen(project: str | os.PathLike[str], name: str) -> Seen:
    """Who holds a claim, or held it last (`take` explains the arguments); never raises.

    Takes nothing, and makes no file.
    """
    path = lock_of(project, name)
    return Seen(name, path, _is_held(path), read_record(path))


def listed(project: str | os.PathLike[str], kind: str) -> list[Seen]:
    """The claims of a kind (``loops`` or ``turns``) that anybody ever took here; never raises."""
    try:
        names = sorted(os.listdir(os.path.join(project, HOME, "run", kind)))
    except OSError:
        return []
    locks = [name.removesuffix(".lock") for name in names if name.endswith(".lock")]
    return [seen(project, f"{kind}/{name}") for name in locks]


def of_participant(participant: str) -> str:
    """The name of the claim to play a participant."""
    return f"loops/{_file_name(participant)}"


def of_turn(turn: str) -> str:
    """The name under which the program that takes a turn is noted."""
    return f"turns/{_file_name(turn)}"


def lock_of(project: str | os.PathLike[str], name: str) -> Path:
    """The lock of a claim; it need not exist."""
    return run_folder(project) / f"{name}.lock"


def is_same(path: Path, fd: int) -> bool:
    """Whether a path still names the file that is open, and nothing else does."""
    try:
        mine, there = os.fstat(fd), os.lstat(path)
    except OSError:
        return False
    same = (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)
    return same and mine.st_nlink == 1


def _lock(path: Path, name: str) -> int:
    """Open and lock the file, which is then still what the path names."""
    deadline = time.monotonic() + _PATIENCE
    for _ in range(_TRIES):
        fd = _open(path)
        try:
            while not _try(fd, path):
                if time.monotonic() > deadline:
                    found = Seen(name, path, True, read_record(path))
                    raise Held(found.sentence, found)
                time.sleep(_STEP)
            if is_same(path, fd):
                return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
    raise ClaimError(f"{path} is repeatedly replaced by another program")


def _open(path: Path) -> int:
    """The lock's file: the one that is there, else a new one (some systems let nobody open

    another account's file with O_CREAT).
    """
    while True:
        with contextlib.suppress(FileNotFoundError):
            try:
                fd = os.open(path, _FLAGS)
            except IsADirectoryError:
                raise ClaimError(f"{path} is not a regular file") from None
            break
        with contextlib.suppress(FileExistsError):
            fd = os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            settle(path, 0o660 if modes.is_shared(path.parent.stat()) else 0o600)
            break
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise ClaimError(f"{path} is not a regular file")


def _try(fd: int, path: Path) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise ClaimError(f"{path} cannot be locked: {error.strerror or error}") from None
    return True


def _is_held(path: Path) -> bool:
    if not SUPPORTED:
        return False
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _refuse_unknown(path: Path, before: Owner | None) -> None:
    """Where locks may not reach other hosts, a holder on one of them is not known to be gone."""
    if before is None or before.ended or before.process.host == owners.host():
        return
    kind = mounts.kind(path, mounts.here())
    if kind in mounts.DOUBTFUL_LOCKS:
        found = Seen(path.stem, path, False, before)
        raise Held(f"{found.sentence}, as far as acp can tell over {kind}", found)


def _whereabouts(owner: Owner) -> str:
    process = owner.process
    return f"pid {process.pid} on {clean_line(process.host, 80)} since {_time(owner.since)}"


def _time(since: str) -> str:
    try:
        began = datetime.fromisoformat(since).astimezone()
    except ValueError:
        return "?"
    today = datetime.now(UTC).astimezone().date()
    return began.strftime("%H:%M" if began.date() == today else "%Y-%m-%d %H:%M")


def _file_name(participant: str) -> str:
    """A participant's id as a name that every file system takes, and that is only this one's."""
    name = quote(participant, safe=" +,=@", errors="surrogatepass").replace(".", "%2E")
    if len(name) <= 120 and name.strip(" "):
        return name
    import hashlib

    digest = hashlib.sha256(participant.encode(errors="surrogatepass")).hexdigest()
    return f"{name[:80]}-{digest[:24]}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
