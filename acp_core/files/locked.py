"""Appending to a log that others append to, without ever damaging it.

The lock is taken on the log itself, on the very descriptor that appends: there is no extra
file to leak, and the kernel lets go of it when a process dies. Guarantees hold among writers
that take the lock; one that does not is noticed, not prevented.

First, which kind of file system a path is on. The kernel tells of changes that pass through this
machine. On a file system that other machines write too (or the host of a virtual machine does) that is
not all of them, and a lock taken here may mean nothing there. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator

from acp_core.files.atomic import sync_data
from acp_core.model.errors import Unusable
from acp_core.model.light import NamedTuple

MOUNTS = "/proc/self/mountinfo"

# Written from elsewhere too: other machines, or the host of a virtual machine.
SHARED = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "9p", "virtiofs", "afs", "ceph", "coda",
        "glusterfs", "lustre", "beegfs", "gpfs", "ocfs2", "gfs2", "davfs",
        "drvfs", "vboxsf", "vmhgfs", "prl_fs",
    }
)  # fmt: skip

# Programs that show a file system: most of them reach over the network, these do not.
_LOCAL_FUSE = frozenset(
    {"fuse.fuse-overlayfs", "fuse.lxcfs", "fuse.bindfs", "fuse.gocryptfs", "fuse.encfs",
     "fuse.ntfs-3g", "fuse.mergerfs", "fuse.portal"}
)  # fmt: skip

# A lock taken on one of these is not seen by everybody who can write there.
NO_LOCKS = frozenset(
    {"9p", "afs", "cifs", "coda", "davfs", "drvfs", "ncpfs", "prl_fs", "smb3", "smbfs", "vboxsf",
     "vmhgfs", "fuse.davfs", "fuse.dropbox", "fuse.gcsfuse", "fuse.google-drive-ocamlfuse",
     "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "fuse.vmhgfs-fuse"}
)  # fmt: skip

# Locks hold between hosts only with the right mount options, or only on this host.
DOUBTFUL_LOCKS = frozenset(
    {"beegfs", "ceph", "fuse.ceph-fuse", "fuse.glusterfs", "fuse.grpcfuse", "fuse.juicefs",
     "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "orangefs", "virtiofs"}
)  # fmt: skip
_OCTAL = r"\\([0-7]{3})"  # compiled where it is needed: seldom


class Mount(NamedTuple):
    """Where a file system begins, and its kind."""

    point: str
    kind: str


def parse(text: str) -> tuple[Mount, ...]:
    """The mounts that the text of ``/proc/self/mountinfo`` lists; other lines are left out."""
    mounts: list[Mount] = []
    for line in text.splitlines():
        place, separator, system = line.partition(" - ")
        fields, kinds = place.split(), system.split()
        if separator and len(fields) >= 5 and kinds:
            point = fields[4]
            if "\\" in point:
                point = re.sub(_OCTAL, lambda found: chr(int(found[1], 8)), point)
            mounts.append(Mount(point, kinds[0]))
    return tuple(mounts)


def here() -> tuple[Mount, ...]:
    """The mounts of this process; none where the system does not tell."""
    try:
        with open(MOUNTS, "rb") as file:
            return parse(os.fsdecode(file.read()))
    except OSError:
        return ()


def kind(path: str | os.PathLike[str], mounts: Iterable[Mount]) -> str:
    """The kind of the file system that ``path`` is on, "" where unknown."""
    real = os.path.realpath(path)
    found = Mount("", "")
    for mount in mounts:
        root = mount.point.rstrip("/")
        inside = real == mount.point or real.startswith(root + "/")
        if inside and len(mount.point) >= len(found.point):  # a later mount covers an earlier
            found = mount
    return found.kind


class Kinds:
    """The kinds of file systems as they are mounted now, looked up once for every device."""

    def __init__(self) -> None:
        self._mounts = here()
        self._by_device: dict[int, str] = {}

    def of(self, path: str | os.PathLike[str], device: int) -> str:
        """The kind of the file system that ``path`` is on, "" where unknown.

        Args:
            path: a file or folder.
            device: its device, as a stat call gives it.
        """
        if device not in self._by_device:
            self._by_device[device] = kind(path, self._mounts)
        return self._by_device[device]


def is_shared(kind: str) -> bool:
    """Whether others can change this kind of file system without the kernel here seeing it."""
    return kind in SHARED or (kind.startswith("fuse.") and kind not in _LOCAL_FUSE)


try:
    import fcntl
except ImportError:  # Windows: everything can be read there, nothing written
    fcntl = None  # type: ignore[assignment]

TIMEOUT = 10.0  # seconds that a writer waits for the lock
QUIET = 0.2  # seconds without a change after which a line without its newline counts as torn
_STEP = 0.02
_OPEN = (
    os.O_RDWR
    | os.O_APPEND
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
)
_BUSY = frozenset({errno.EAGAIN, errno.EACCES})


class LogError(Unusable):
    """The log cannot be written; the message says why and what to do. Nothing was appended."""


class Moved(LogError):
    """The log grew although it is locked: what was derived from it no longer holds."""


class Landed(NamedTuple):
    """An event is in the log.

    ``raced``: a writer that takes no lock wrote at the same moment. ``warnings`` are sentences
    about what did not go as it should although the event is in.
    """

    raced: bool = False
    warnings: tuple[str, ...] = ()


class LockedLog:
    """A log that is open and locked. Made by `locked`."""

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    def size(self) -> int:
        """The log's size in bytes, now."""
        return os.fstat(self._fd).st_size

    def identity(self) -> tuple[int, int]:
        """What tells this file from every other one: its device and inode."""
        found = os.fstat(self._fd)
        return found.st_dev, found.st_ino

    def read(self, limit: int) -> bytes:
        """The whole log.

        Raises:
            LogError: it is larger than ``limit`` bytes.
        """
        size = self.size()
        if size > limit:
            raise LogError(f"{self.path} is larger than {limit} bytes")
        return self.head(size)

    def head(self, limit: int) -> bytes:
        """How the log begins: at most ``limit`` bytes."""
        data = os.pread(self._fd, limit, 0)
        while len(data) < limit and (more := os.pread(self._fd, limit - len(data), len(data))):
            data += more
        return data

    def is_torn(self) -> bool:
        """Whether the log ends within a line, once nobody is still writing that line.

        A writer that takes no lock may be in the middle of its line, so what is there counts
        only after `QUIET` seconds without a change. However long the line is, one byte is read.
        """
        size = self.size()
        quiet_since = time.monotonic()
        while self._ends_within_line(size):
            if time.monotonic() - quiet_since >= QUIET:
                return True
            time.sleep(_STEP)
            if self.size() != size:
                size = self.size()
                quiet_since = time.monotonic()
        return False

    def _ends_within_line(self, size: int) -> bool:
        return size > 0 and os.pread(self._fd, 1, size - 1) != b"\n"

    def append(self, line: bytes, start: int) -> Landed:
        """Write ``line`` (with its newline) in one call at the log's end, and to the disk.

        Args:
            line: the whole line.
            start: the size of the log from which the line was derived.

        Raises:
            Moved: the log's size is no longer ``start``. Nothing was written.
            LogError: the line is not in the log.
        """
        self._must_have(start)
        try:
            written = os.write(self._fd, line)
        except OSError as error:
            return self._half_written(line, start, error.strerror or str(error))
        if written < len(line):
            return self._half_written(line, start, "the disk wrote only part of the line")
        return self._written(line, start)

    def _written(self, line: bytes, start: int) -> Landed:
        """The line is in the log: whatever goes wrong from here on cannot change that."""
        raced = False
        warnings: list[str] = []
        with contextlib.suppress(OSError):
            raced = os.lseek(self._fd, 0, os.SEEK_CUR) != start + len(line)
        try:
            sync_data(self._fd)
        except OSError as error:
            reason = error.strerror or str(error)
            if not raced and self._take_back(start, start + len(line)):
                raise LogError(f"{self.path}: {reason}; the event was taken back") from None
            warnings.append(f"the event may not survive a power failure: {reason}")
        with contextlib.suppress(OSError):
            raced = raced or self.size() != start + len(line)
        return Landed(raced, tuple(warnings))

    def _half_written(self, line: bytes, start: int, reason: str) -> Landed:
        """Undo a write that failed or was cut short, unless the event is in the log after all."""
        try:
            there = os.pread(self._fd, len(line), start)
        except OSError:
            there = b""
        if there == line:
            return self._written(line, start)
        if not there:
            raise LogError(f"{self.path}: {reason}; nothing was appended")
        if line.startswith(there) and self._take_back(start, start + len(there)):
            raise LogError(f"{self.path}: {reason}; nothing was appended")
        if there == line[:-1]:
            return Landed(False, (f"{reason}: the newline is missing; run `acp repair`",))
        if line.startswith(there):
            raise LogError(f"{self.path}: {reason}; an incomplete line remains: run `acp repair`")
        raise LogError(f"{self.path}: {reason}; nothing was appended, but see `acp validate`")

    def _take_back(self, start: int, end: int) -> bool:
        """Cut the log back to ``start`` if nobody else has written behind ``end``."""
        try:
            if self.size() != end:
                return False
            os.ftruncate(self._fd, start)
        except OSError:
            return False
        return True

    def finish_line(self, size: int) -> None:
        """Write the newline that the last line lacks: for repairs only.

        Raises:
            Moved: the log's size is no longer ``size``. Nothing was changed.
            OSError: the disk reported an error.
        """
        self._must_have(size)
        os.write(self._fd, b"\n")
        sync_data(self._fd)

    def cut(self, start: int, size: int) -> None:
        """Drop everything from byte ``start`` on: for repairs only.

        Args:
            start: how many bytes stay.
            size: the size of the log that was looked at.

        Raises:
            Moved: the log's size is no longer ``size``. Nothing was changed.
            OSError: the disk reported an error.
        """
        self._must_have(size)
        os.ftruncate(self._fd, start)
        sync_data(self._fd)

    def _must_have(self, size: int) -> None:
        if self.size() != size:
            raise Moved(
                f"{self.path} grew while it was locked: another program writes without a lock"
            )


@contextlib.contextmanager
def locked(
    path: str, *, timeout: float = TIMEOUT, force: bool = False, reads: bool = False
) -> Iterator[LockedLog]:
    """Open a log for appending and hold its lock.

    Args:
        path: the log, a regular file that exists.
        timeout: seconds to wait for another writer.
        force: go on where the file system knows no locks.
        reads: where this account may only read it now, hold its lock all the same: nothing is appended.

    Raises:
        LogError: it is not a regular file, cannot be opened or cannot be locked.
    """
    deadline = time.monotonic() + timeout
    while True:
        fd = _open(path, reads)
        try:
            _lock(path, fd, deadline, force)
            if _is_still(path, fd):
                yield LockedLog(path, fd)
                return
        finally:
            with contextlib.suppress(OSError):  # the event is in the log, or it is not
                os.close(fd)
        if time.monotonic() > deadline:
            raise LogError(f"{path} is repeatedly replaced by another program")


@contextlib.contextmanager
def locked_folder(folder: str, *, timeout: float = TIMEOUT) -> Iterator[None]:
    """Hold a lock on a folder: for what happens before its log exists.

    Where folders cannot be locked (some network file systems) this is no protection.

    Raises:
        LogError: another process holds it for longer than ``timeout`` seconds.
    """
    _require_flock()
    fd = os.open(folder, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    try:
        _lock(folder, fd, time.monotonic() + timeout, force=True)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.close(fd)


def is_locked(path: str) -> bool:
    """Whether somebody holds the lock of a log now; False where that cannot be told."""
    try:
        fd = _open(path, reads=True)
    except LogError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno in _BUSY
    finally:
        os.close(fd)
    return False


def _require_flock() -> None:
    if fcntl is None:
        raise LogError("acp is read-only here: this system does not support flock")


def _open(path: str, reads: bool) -> int:
    _require_flock()
    try:
        try:
            fd = os.open(path, _OPEN)
        except PermissionError:
            if not reads:
                raise
            fd = os.open(path, _OPEN & ~(os.O_RDWR | os.O_APPEND))  # for reading
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LogError(f"{path} is a symbolic link; use the folder that it points to") from None
        raise LogError(f"{path}: {error.strerror or error}") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise LogError(f"{path} is not a regular file")
    return fd


def _lock(path: str, fd: int, deadline: float, force: bool) -> None:
    pause = 0.001
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if error.errno not in _BUSY:
                if force:
                    return
                raise LogError(f"{path} cannot be locked: {error.strerror or error}") from None
        if time.monotonic() > deadline:
            raise LogError(f"{path} is locked by another process; try again")
        time.sleep(pause * (0.5 + os.urandom(1)[0] / 510))  # not all at the same moment again
        pause = min(pause * 2, 0.05)


def _is_still(path: str, fd: int) -> bool:
    """Whether the descriptor still is what the path names: it may have been replaced."""
    mine = os.fstat(fd)
    try:
        there = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        raise LogError(f"{path} was removed while acp waited for its lock") from None
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)
