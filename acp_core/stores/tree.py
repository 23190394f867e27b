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
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from acp_core.files import atomic
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.stores.engine import MAX_DEPTH, MAX_FILE, MAX_FILES, StoreRefused

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
                    atomic.settle(fd, os.path.join(self.folder, path))
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
        if atomic.is_shared(os.lstat(folder.parent)):
            os.chmod(folder, stat.S_IMODE(os.lstat(folder).st_mode) | 0o2070)


_LINK = frozenset({errno.ELOOP, errno.ENOTDIR, getattr(errno, "EMLINK", errno.ELOOP)})
"""What opening a link without following it says, by system."""


def _plain_name(path: str) -> str:
    """A file's name for a document of any path."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", path.replace("/", "__"))[:120].lstrip(".") or "file"


_LONGEST_PART = 255  # bytes

_LONGEST_PATH = 1_000

_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)

_SHORT_GIT = re.compile(r"git~[0-9]+", re.IGNORECASE)

_FORBIDDEN = frozenset('\\:*?"<>|')

INSTRUCTIONS = frozenset(
    {
        "agent.md", "agents.md", "agents.override.md", "claude.md", "claude.local.md", "codex.md", "copilot-instructions.md", "crush.md",
        "gemini.md", "opencode.json", "opencode.jsonc", "qwen.md", "skill.md", "warp.md", "mcp.json", "iflow.md",
    }
)  # fmt: skip
"""What agents' programs read as orders or settings, in lower case."""

_ENVIRONMENT = re.compile(r"(.*\.)?env(rc)?", re.IGNORECASE)


def against(path: str, dotted: frozenset[str] = frozenset()) -> str:
    """What speaks against a file of this name; "" for nothing.

    Args:
        path: below the folder, "/" between its parts.
        dotted: names of folders that may begin with a dot.
    """
    parts = path.split("/")
    if len(path) > _LONGEST_PATH or len(parts) > MAX_DEPTH:
        return "it is too deep or too long"
    for part in parts:
        try:
            size = len(part.encode())
        except UnicodeEncodeError:
            return "it is not UTF-8 text"
        if part in ("", ".", "..") or size > _LONGEST_PART:
            return "it leads elsewhere"
        if any(unicodedata.category(each)[0] == "C" or each in _FORBIDDEN for each in part):
            return "it has characters that names of shared files do not have"
        if part in dotted and part is not parts[-1]:
            continue
        if part.startswith(".") or unicodedata.normalize("NFKC", part).startswith("."):
            return "names that begin with a dot are not shared"
        if part.endswith((".", " ")) or _DEVICES.fullmatch(part) or _SHORT_GIT.fullmatch(part):
            return "other systems take it for something else"
        if part.casefold() in INSTRUCTIONS or _ENVIRONMENT.fullmatch(part):
            return "programs take orders or settings from it"
    return ""


def check(paths: Iterable[str], dotted: frozenset[str] = frozenset()) -> None:
    """Refuse what a store holds where a folder cannot hold it, or must not.

    Args:
        paths: all that there are.
        dotted: see `against`.

    Raises:
        StoreRefused: a name is refused, two of them are one on some machine, or there are too many.
    """
    seen: dict[str, str] = {}
    folders: dict[str, str] = {}
    for count, path in enumerate(sorted(paths), 1):
        if count > MAX_FILES:
            raise StoreRefused(f"the store holds more than {MAX_FILES} files: refused")
        if reason := against(path, dotted):
            raise StoreRefused(f"the store holds {clean_line(path, 200)}: refused ({reason})")
        key = _one_name(path)
        if key in seen:
            both = f"{clean_line(seen[key], 150)} and {clean_line(path, 150)}"
            raise StoreRefused(f"the store holds {both}: refused (one name on some machines)")
        seen[key] = path
        parts = key.split("/")
        for end in range(1, len(parts)):
            folders["/".join(parts[:end])] = path
    for key, path in folders.items():
        if key in seen:
            raise StoreRefused(
                f"the store holds {clean_line(seen[key], 150)} and {clean_line(path, 150)}: refused "
                "(a file that is also a folder)"
            )


def _one_name(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


PROTECTED = ("events.jsonl", "protocol.json")

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_MAY_WRITE, _ALL_WRITE, _OTHERS = 0o200, 0o222, 0o007


@contextlib.contextmanager
def writable(folder: str) -> Iterator[None]:
    """Let this process write them; afterwards they are read-only again."""
    _each(folder, lambda mode: mode | _MAY_WRITE)
    try:
        yield
    finally:
        protect(folder)


def protect(folder: str) -> None:
    """Make them read-only, for nobody but the owner and the group."""
    _each(folder, lambda mode: mode & ~(_ALL_WRITE | _OTHERS))


def release(folder: str) -> None:
    """Let their owner write them again."""
    _each(folder, lambda mode: mode | _MAY_WRITE)


def _each(folder: str, wanted: Callable[[int], int]) -> None:
    """Change modes; never those of what a link leads to, or of what is another account's."""
    for name in PROTECTED:
        try:
            fd = os.open(os.path.join(folder, name), _OPEN)
        except OSError:
            continue
        try:
            found = os.fstat(fd)
            mode = stat.S_IMODE(found.st_mode)
            if stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and wanted(mode) != mode:
                with contextlib.suppress(OSError):
                    os.fchmod(fd, wanted(mode))
        finally:
            os.close(fd)
