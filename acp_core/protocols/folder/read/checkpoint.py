"""Where a long log stood when it was read before: kept between runs, so that only what is new is derived.

One small file for each log in the person's cache folder, which can be thrown away at any time. It is
believed only where the log begins with the very bytes that it was made of, and where file,
participants, dialect, account and program are the same; otherwise everything is derived from the log,
as it is from a log of which anything is to be said. What is not small (every stay, every review) is
not kept: it is derived from the log when it is asked for. Standard library only.
"""

from __future__ import annotations

import binascii
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache

import acp_core
from acp_core.files import atomic
from acp_core.files.journal import Lines, Reader, without_collector
from acp_core.files.reading import Stamp, Unreadable
from acp_core.model.light import TYPE_CHECKING, Any
from acp_core.person.paths import cache_place
from acp_core.protocols.folder.read.log import History
from acp_core.protocols.folder.schema.records import Entry
from acp_core.protocols.folder.state import Core, Wait

if TYPE_CHECKING:
    from collections.abc import Sequence
    from hashlib import _Hash

SCHEMA = "acp.checkpoint/1"
TAIL = 20  # new lines from which on it is written again: taking more than so many costs more
FILES = 32  # that are kept, the latest
LARGEST = 1 << 20  # bytes of a file
PIECE = 1 << 17  # bytes of a log that are taken apart at one go
_HERE = os.path.dirname(os.path.abspath(__file__))
DERIVED_BY = (
    "checkpoint.py", "log.py", "../state.py", "../schema/records.py", "../../../files/journal.py",
    "../../../model/light.py",
)  # fmt: skip
"""The modules that decide what a log leads to, from here."""


class Checkpoint:
    """What is kept of one log, and how far the log was read since.

    Args:
        device, inode: of the log.
        participants, dialect: of its collaboration.

    Attributes:
        path: the file.
        size, lines: bytes and lines that were read.
    """

    def __init__(self, device: int, inode: int, participants: Sequence[str], dialect: str) -> None:
        self._file, self._taken_as = (device, inode), (tuple(participants), dialect)
        self._context = b""  # all that must be the same
        self.path = ""
        self.size = self.lines = 0
        self._kept = 0  # lines that the file tells of
        self._digest: _Hash | None = None  # of what was read, but for the blocks
        self._blocks: list[Lines] = []
        self._pieces: list[list[int]] = []  # bytes and lines of each

    def recall(self, head: Callable[[int], bytes | memoryview]) -> History | None:
        """The history of the lines that the file tells of; None where it cannot be believed.

        Args:
            head: gives the first so many bytes of the log.
        """
        try:
            self._place()
            told = self._load()
            data = head(told["size"])
            digest = _sha256(data)
            if digest.hexdigest() != told["digest"]:
                return None
            history = _restored(told, data, *self._taken_as)
        except Exception:  # there is none, or it is damaged in any way
            return None
        self.size, self.lines, self._kept = told["size"], told["lines"], told["lines"]
        self._digest, self._pieces = digest, told["pieces"]
        return history

    def digest(self) -> _Hash:
        """SHA-256 of what was read."""
        if self._digest is None:
            self._digest = _sha256()
        for block in self._blocks:
            self._digest.update(block.data)
        self._blocks.clear()
        return self._digest

    def take(self, block: Lines) -> None:
        """Note that the next lines were read."""
        self._blocks.append(block)
        self.size += len(block.data)
        self.lines += block.count
        if self._pieces and self._pieces[-1][0] + len(block.data) <= PIECE:
            self._pieces[-1][0] += len(block.data)
            self._pieces[-1][1] += block.count
        else:
            self._pieces.append([len(block.data), block.count])

    def keep(self, history: History) -> None:
        """Keep where the log stands, where enough is new and nothing is to be said of it.

        Never raises: what cannot be kept is derived again.

        Args:
            history: of the lines that were read, and no others.
        """
        if not self.path or self.lines - self._kept < TAIL:
            return
        if history.findings or len(history.entries) != self.lines:
            return
        with contextlib.suppress(Exception):
            if not _may_write(os.path.dirname(self.path)):
                return
            told = {
                "size": self.size,
                "lines": self.lines,
                "pieces": self._pieces,
                "digest": self.digest().hexdigest(),
                **_told(history),
            }
            content = json.dumps(told, separators=(",", ":")).encode()
            self._write(self._head(content) + b"\n" + content)
            self._kept = self.lines

    def _place(self) -> None:
        account = os.geteuid() if hasattr(os, "geteuid") else 0
        code = (SCHEMA, acp_core.__version__, _code(), sys.version)
        told = repr((code, account, self._file, self._taken_as))
        self._context = told.encode(errors="surrogatepass")
        name = "{:x}-{:x}-{:08x}.json".format(*self._file, binascii.crc32(self._context))
        self.path = os.path.join(cache_place(), "logs", name)

    def _head(self, content: bytes) -> bytes:
        """The first line of the file."""
        return f"{_sha256(self._context).hexdigest()} {_sha256(content).hexdigest()}".encode()

    def _load(self) -> dict[str, Any]:
        descriptor = os.open(
            self.path,
            os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0),
        )
        try:
            if not _is_private(os.fstat(descriptor)):
                raise ValueError("another account could have written it")
            data = os.read(descriptor, LARGEST + 1)
        finally:
            os.close(descriptor)
        head, _, content = data.partition(b"\n")
        if head != self._head(content):
            raise ValueError("it is damaged, or of another log or program")
        told: dict[str, Any] = json.loads(content)
        return told

    def _write(self, data: bytes) -> None:
        folder = os.path.dirname(self.path)
        if len(data) > LARGEST:
            return
        atomic.private_folder(folder)
        atomic.replace(self.path, data, sync=False, private=True)
        _trim(folder)


def resume(
    reader: Reader, participants: Sequence[str], dialect: str
) -> tuple[Checkpoint, History | None] | None:
    """Let a reader go on where a long log stood when it was read before.

    Args:
        reader: of the log; it has not looked yet.
        participants, dialect: of the collaboration.

    Returns:
        What is kept, and the history of what the reader passes over; None where the log cannot be read.
    """
    seen: list[tuple[bytes, Stamp]] = []

    def head(length: int) -> bytes:
        seen.append(reader.head(length))
        return seen[0][0]

    try:
        _, found = reader.head(0)
    except Unreadable:
        return None
    checkpoint = Checkpoint(found.device, found.inode, participants, dialect)
    history = checkpoint.recall(head)
    if history is not None:
        data, found = seen[0]
        reader.resume(data, checkpoint.lines, found, checkpoint.digest())
    return checkpoint, history


def _told(history: History) -> dict[str, Any]:
    """What is kept of a history, as JSON."""
    machine, core = history.machine, history.machine.core()
    return {
        "core": [*core[:3], sorted(core.to_review), sorted(core.to_accept), *core[5:]],
        "waits": machine.waits,
        "began": machine.began,
        "round": machine.round,
        "last": machine.last,
        "last_at": history.check.last_at,
        "deliverables": [entry[:11] for entry in history.deliverables],
        "latest": history.latest,
        "said": history.said,
        "recent": [*history.recent],
    }


def _restored(
    told: dict[str, Any], data: bytes | memoryview, participants: tuple[str, ...], dialect: str
) -> History:
    """The history of a log's first lines, of which all was kept that is small."""
    history, lines = History(participants, dialect), told["lines"]
    pieces = tuple(_pieces(data, told["pieces"]))
    for text, count in pieces:
        history.entries.extend_with(text, count)
    if len(history.entries) != lines:
        raise ValueError("other lines")
    machine = history.machine
    phase, owner, waiting, to_review, to_accept, accepted, *rest = told["core"]
    sets = frozenset(to_review), frozenset(to_accept)
    machine.stand(Core(phase, owner, tuple(waiting), *sets, tuple(accepted), *rest))
    machine.waits = {name: Wait(*since) for name, since in told["waits"].items()}
    machine.began, machine.last = told["began"], told["last"]
    machine.round, machine.count = told["round"], lines
    history.check.stand(lines, told["last_at"], "completed" in machine.last)
    history.deliverables.extend(Entry(*fields) for fields in told["deliverables"])
    history.latest, history.said = told["latest"], told["said"]
    history.recent.clear()
    history.recent.extend((phase, owner, waiting) for phase, owner, waiting in told["recent"])

    @cache
    def earlier() -> History:
        whole, first = History(participants, dialect), 1
        with without_collector():
            for text, count in pieces:
                whole.read(Lines(bytes(text), first))
                first += count
        return whole

    history.follow(earlier)
    return history


def _pieces(data: bytes | memoryview, sizes: list[list[int]]) -> Iterator[tuple[memoryview, int]]:
    view, start = memoryview(data), 0
    for size, lines in sizes:
        yield view[start : start + size], lines
        start += size


@cache
def _code() -> tuple[object, ...]:
    """Which state of the program's code this is: it may have been changed without its version."""
    found = [os.stat(os.path.join(_HERE, name)) for name in DERIVED_BY]
    return tuple((each.st_size, each.st_mtime_ns) for each in found)


def _sha256(data: bytes | memoryview = b"") -> _Hash:
    from hashlib import sha256  # late: costs those of whose log nothing is kept

    return sha256(data)


def _is_own(found: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _may_write(folder: str) -> bool:
    """Whether a folder is this account's, or can be: root makes none in one of another account."""
    above = folder
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    own = _is_own(os.stat(above)) or (above != folder and os.geteuid() != 0)
    return own and os.access(above, os.W_OK)


def _is_private(found: os.stat_result) -> bool:
    """Whether a file can only have been written by this account."""
    return _is_own(found) and not found.st_mode & 0o022


def _trim(folder: str) -> None:
    """Throw away all but the files that were written last."""
    found = []
    for each in os.scandir(folder):
        with contextlib.suppress(OSError):
            found.append((each.stat(follow_symlinks=False).st_mtime, each.path))
    for _, path in sorted(found)[:-FILES]:
        with contextlib.suppress(OSError):
            os.unlink(path)
