"""The files of a shared folder, read and written without ever following a link out of it.

Agents may write in the folder, and whoever writes for others must not be led elsewhere by them: each
folder on the way is opened by itself, and no link is followed. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.stores.engine import MAX_DEPTH, MAX_FILE, MAX_FILES

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
KEPT = ".acp/kept"
SETTLED = ".settled"
"""The ending of what was kept and is settled."""
_BEFORE = ".acp/before"


class NotShared(Refused):
    """A file cannot be shared as it is; the message says why."""


class Tree:
    """A shared folder."""

    def __init__(self, folder: str) -> None:
        self.folder = os.path.realpath(folder)

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None where there is none, or no regular one.

        Raises:
            NotShared: it is too large.
            OSError: it cannot be read.
        """
        try:
            with self._above(path) as (above, name):
                fd = os.open(name, _READ, dir_fd=above)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if error.errno in _LINK:
                return None
            raise
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise NotShared(f"{clean_line(path, 200)} is larger than {MAX_FILE >> 20} MiB")
        return data

    def replace(
        self, path: str, data: bytes, *, sync: bool = True, written: int | None = None
    ) -> None:
        """Put bytes in place of a file, in one step; folders on the way are made.

        With ``sync``, a loss of power does not undo it. With ``written``, nanoseconds since 1970, the
        file is a copy that was written then: it is made read-only, for this account alone.

        Raises:
            OSError: the old file, if any, still stands; a link stands on the way.
        """
        with self._above(path, make=True) as (above, name):
            temporary = f".{name[:150]}.{os.urandom(8).hex()}.acp-tmp"
            fd = os.open(temporary, _WRITE, 0o666, dir_fd=above)
            try:
                try:
                    modes.settle(fd, os.path.join(self.folder, path))
                    atomic.write_all(fd, data)
                    if written is not None:
                        os.fchmod(fd, 0o400)
                        os.utime(fd, ns=(written, written))
                    if sync:
                        atomic.sync_fd(fd)
                finally:
                    os.close(fd)
                os.rename(temporary, name, src_dir_fd=above, dst_dir_fd=above)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=above)
                raise
            if sync:
                with contextlib.suppress(OSError):
                    os.fsync(above)

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""
        with (
            contextlib.suppress(FileNotFoundError, NotADirectoryError),
            self._above(path) as (above, name),
        ):
            os.unlink(name, dir_fd=above)

    def keep(self, path: str, data: bytes, host: str) -> str:
        """Keep a text that gives way to another one; where, below the folder.

        Raises:
            OSError: it cannot be kept.
        """
        when = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        plain = _plain_name(path)
        at = f"{KEPT}/{plain}.{when}.{host}"
        number = 1
        while (there := self.read(at)) is not None and there != data:
            number += 1
            at = f"{KEPT}/{plain}.{when}.{host}.{number}"
        self.replace(at, data)
        return at

    def before(self, kept: str) -> str:
        """Where the text is that both sides had changed, for a text that is kept."""
        return f"{_BEFORE}/{kept.rpartition('/')[2]}"

    def kept_copies(self, path: str) -> list[str]:
        """What was kept of a document and not settled since, the latest last."""
        plain = _plain_name(path)
        try:
            names = os.listdir(os.path.join(self.folder, KEPT))
        except OSError:
            return []
        ours = re.compile(re.escape(plain) + r"\.\d{8}T\d{6}Z\.[a-z0-9-]+(\.\d+)?")
        return sorted(f"{KEPT}/{name}" for name in names if ours.fullmatch(name))

    def files(self) -> list[str]:
        """The regular files of the folder, as many as could be shared, for people to see.

        Those in folders whose name begins with a dot are left out.
        """
        found: list[str] = []
        for at, folders, names in os.walk(self.folder):
            below = os.path.relpath(at, self.folder)
            deep = below.count(os.sep) + 2 > MAX_DEPTH
            folders[:] = (
                [] if deep else sorted(each for each in folders if not each.startswith("."))
            )
            for name in sorted(names):
                path = name if below == "." else f"{below}/{name}".replace(os.sep, "/")
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(os.lstat(os.path.join(at, name)).st_mode):
                        found.append(path)
            if len(found) > MAX_FILES:
                break
        return found

    @contextlib.contextmanager
    def _above(self, path: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """The folder of a file, open, and the file's name in it."""
        *folders, name = path.split("/")
        fd = os.open(self.folder, _FOLDER)
        at = Path(self.folder)
        try:
            for each in folders:
                at = at / each
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(each, 0o777, dir_fd=fd)
                        _open_to_group(at)
                below = os.open(each, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd, name
        finally:
            os.close(fd)


def _open_to_group(folder: Path) -> None:
    """A new folder in a shared one is shared, too."""
    with contextlib.suppress(OSError):
        if modes.is_shared(os.lstat(folder.parent)):
            os.chmod(folder, stat.S_IMODE(os.lstat(folder).st_mode) | 0o2070)


_LINK = frozenset({errno.ELOOP, errno.ENOTDIR, getattr(errno, "EMLINK", errno.ELOOP)})
"""What opening a link without following it says, by system."""


def _plain_name(path: str) -> str:
    """A file's name for a document of any path."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", path.replace("/", "__"))[:120].lstrip(".") or "file"
