"""Claims: that this process, of this account, conducts a run or plays a participant.

A claim lies with the collaboration, in ``.acp/run``, where every account that shares the folder
sees it: ``NAME.lock``, which its holder has locked for as long as it lives, and beside it
``NAME.json``, which says who that is. The lock alone decides; the record informs people, and
authorises nothing. A lock is never unlinked: whoever takes one that is free takes over. Because
somebody else may remove it all the same, takers look whether the path still names what they have
locked, and holders look again before each act. ``.acp/.gitignore`` is written before anything
else, so that nothing of this shows in git.

Who that is stands there in words that other accounts and hosts can check. A process id is used again;
together with the start of the machine and the moment of its birth it is not. Whether a process of
another account lives may be hidden: then it is not known, and what is not known is not dead. Standard
library only.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import platform
import stat
import time
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote

from acp_core.files import atomic, locked, read_only
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Unusable
from acp_core.model.text import clean_line

HOME = ".acp"
IGNORED = b"*\n"
_LIMIT = 64 << 10  # bytes of an ignore file


class ClaimError(Unusable):
    """A claim cannot be taken, or is not held any more; the message says why."""


def run_folder(project: str | os.PathLike[str]) -> Path:
    """Where the claims of a folder lie; it need not exist."""
    return Path(os.path.realpath(project), HOME, "run")


def exists(project: str | os.PathLike[str]) -> bool:
    """Whether acp, or a claim, has left anything in a folder; asked of every collaboration."""
    return os.path.isdir(os.path.join(project, HOME))


def prepare(project: str | os.PathLike[str], *below: str) -> Path:
    """Make the folder and what is to be ``below`` it, ignored by git first; its path.

    Raises:
        ClaimError: locks mean nothing there, or a symbolic link stands in the way.
        OSError: they cannot be made.
    """
    root = Path(os.path.realpath(project))
    kind = locked.kind(root, locked.here())
    if kind in locked.NO_LOCKS:
        raise ClaimError(
            f"{root} is on a file system without locks that all can see ({kind}): "
            "acp cannot coordinate who controls a run there"
        )
    path = run_folder(root).joinpath(*below)
    for folder in [*reversed([each for each in path.parents if root in each.parents]), path]:
        if folder.is_symlink():
            raise ClaimError(f"{folder} is a symbolic link: acp does not write through links")
        if not folder.is_dir():
            make_folder(folder)
        if folder.name == HOME and folder.parent == root:
            _ignore(folder)
    return path


def make_folder(folder: Path) -> None:
    """As shared as the folder that it is in: 2770, or for its owner alone.

    `HOME` itself can be read by whoever can read the folder: more than claims lies there.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        above = folder.parent.stat()
        mode = 0o2770 if atomic.is_shared(above) else 0o700
        settle(folder, stat.S_IMODE(above.st_mode) & 0o2775 if folder.name == HOME else mode)
        atomic.sync_folder(str(folder.parent))


def settle(path: Path, mode: int) -> None:
    """Set what the umask must not decide. What root makes is given to the owner of the folder."""
    with contextlib.suppress(OSError):
        above = path.parent.stat()
        as_root = hasattr(os, "geteuid") and os.geteuid() == 0
        os.chown(path, above.st_uid if as_root else -1, above.st_gid)
    with contextlib.suppress(OSError):
        path.chmod(mode)


def _ignore(home: Path) -> None:
    """See to it that git ignores all that is in the folder, this file too."""
    path = home / ".gitignore"
    with contextlib.suppress(Unreadable):
        if b"*" in read_bounded(path, _LIMIT).split():
            return
    if path.is_symlink():
        raise ClaimError(f"{path} is a symbolic link: acp does not write through links")
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    try:  # in place: a file beside it would show in git for a moment
        atomic.open_to_group(fd, str(home))
        atomic.write_all(fd, IGNORED)
        atomic.sync_fd(fd)
    finally:
        os.close(fd)
    atomic.sync_folder(str(home))


_BOOT = "/proc/sys/kernel/random/boot_id"
_ZOMBIE = b"Z"


@dataclass(frozen=True, slots=True)
class Process:
    """A process for good.

    Attributes:
        host: the machine's name.
        boot: names the machine's start; "" where the system does not tell.
        pid: its id.
        started: its birth in ticks since then; -1 where the system does not tell.
    """

    host: str
    boot: str
    pid: int
    started: int = -1

    @staticmethod
    def of(value: object) -> Process:
        """A process as it was written down.

        Raises:
            ValueError: it is no such thing.
        """
        if not isinstance(value, dict):
            raise ValueError("no process")
        host, boot = value.get("host"), value.get("boot")
        pid, started = value.get("pid"), value.get("started", -1)
        if not (isinstance(pid, int) and isinstance(started, int) and 0 < pid < 2**31):
            raise ValueError("no process")
        if not (isinstance(host, str) and isinstance(boot, str)):
            raise ValueError("no process")
        return Process(host, boot, pid, started)

    def alive(self) -> bool | None:
        """Whether it runs; None where that cannot be seen from here."""
        if self.host != host():
            return None
        if self.boot and boot() and self.boot != boot():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            pass  # another account's
        state, ticks = _stat(self.pid)
        if not state:
            return None
        if state == _ZOMBIE:
            return False
        return ticks == self.started if self.started >= 0 else None

    def may_live(self) -> bool:
        """Whether it runs on this machine, for all that can be seen."""
        return self.host == host() and self.alive() is not False


@dataclass(frozen=True, slots=True)
class Owner:
    """Who holds a claim, or held it last.

    Attributes:
        account, uid: whose process it is; the owner of the record's file, not its text.
        process: the process.
        program: what it is, for people.
        since: when it took the claim (ISO 8601).
        epoch: counts how often the claim was taken.
        about: the id of the run or cycle; "" where the folder has only one.
        child: the program that it has started, and that may outlive it.
        ended: when it let go of the claim; "" while it holds it, and where it was killed.
    """

    account: str
    uid: int
    process: Process
    program: str = ""
    since: str = ""
    epoch: int = 0
    about: str = ""
    child: Process | None = None
    ended: str = ""


def this_process(pid: int) -> Process:
    """The process that has this id now."""
    return Process(host(), boot(), pid, _stat(pid)[1])


def uid() -> int:
    """The number of this account; -1 where the system has none."""
    return os.getuid() if hasattr(os, "getuid") else -1


def account(number: int) -> str:
    """The name of an account; its number where it has none."""
    try:
        import pwd  # late: missing elsewhere

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)


def host() -> str:
    """This machine's name."""
    return platform.node() or "?"


@cache  # a process does not outlive the start of its machine
def boot() -> str:
    """What names this start of the machine; "" where the system does not tell."""
    try:
        with open(_BOOT, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError):
        return ""


def write_record(path: Path, owner: Owner) -> None:
    """Write down who holds a claim; ``path`` is its lock.

    Raises:
        OSError: it cannot be written.
    """
    data = json.dumps(asdict(owner), ensure_ascii=True).encode() + b"\n"
    record = path.with_suffix(".json")
    shared = atomic.is_shared(path.parent.stat())
    atomic.replace(record, data, private=not shared)


def read_record(path: Path) -> Owner | None:
    """Who holds a claim, or held it last; None where that cannot be read. Never raises."""
    record = path.with_suffix(".json")
    try:
        found = os.lstat(record)
        if not stat.S_ISREG(found.st_mode):
            return None
        value = json.loads(read_bounded(record, _LIMIT))
        known = {each.name: value[each.name] for each in fields(Owner) if each.name in value}
        known["process"] = Process.of(known.get("process"))
        known["child"] = Process.of(known["child"]) if known.get("child") else None
        owner = Owner(**known)
        if not _is_lawful(owner):
            return None
    except (OSError, Unreadable, ValueError, TypeError, RecursionError):
        return None
    return replace(owner, uid=found.st_uid, account=account(found.st_uid))


def _stat(pid: int) -> tuple[bytes, int]:
    """The state of a process, and its birth in ticks since the machine's start."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        return words[0], int(words[19])
    except (OSError, ValueError, IndexError):
        return b"", -1


def _is_lawful(owner: Owner) -> bool:
    texts = (owner.account, owner.program, owner.since, owner.about, owner.ended)
    return all(isinstance(each, str) for each in texts) and isinstance(owner.epoch, int)


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
        return self.owner is not None and self.owner.uid == uid()

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
        self.owner = replace(self.owner, child=None if pid is None else this_process(pid))
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
    if told := read_only.holder(project):
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
        me, epoch = uid(), before.epoch + 1 if before else 1
        process = this_process(os.getpid())
        owner = Owner(account(me), me, process, program, _now(), epoch, about, child=seen.child)
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
    me, process = uid(), this_process(os.getpid())
    started = None if child is None else this_process(child)
    atomic.sweep(path.with_suffix(".json"))
    write_record(path, Owner(account(me), me, process, "", _now(), 1, about, started))


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
            settle(path, 0o660 if atomic.is_shared(path.parent.stat()) else 0o600)
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
    if before is None or before.ended or before.process.host == host():
        return
    kind = locked.kind(path, locked.here())
    if kind in locked.DOUBTFUL_LOCKS:
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
