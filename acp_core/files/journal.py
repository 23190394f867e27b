"""Append-only files of lines that others write to: read what is new, notice what is not.

Source: folder protocol specification, "Events" (the log is append-only; nobody rewrites
earlier events). Standard library only.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

from acp_core.files.reading import Stamp, Unreadable, open_regular, stamp, stamp_of
from acp_core.model.light import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from hashlib import _Hash

SAME = "same"
GROWN = "grown"
RESTARTED = "restarted"
UNSETTLED = "unsettled"
UNREADABLE = "unreadable"

_CHUNK = 1 << 17  # what fits into the processor's cache with all that is made of it
_SAMPLE = 4096  # bytes at the start and before the end that are compared at every look


class Lines:
    """Complete lines that were read at one go.

    Args:
        data: the lines, each with its newline.
        first: the number of the first one.

    Attributes:
        count: how many there are.
    """

    __slots__ = ("_lines", "count", "data", "first")

    def __init__(self, data: bytes, first: int) -> None:
        self.data = data
        self.first = first
        self.count = data.count(b"\n")
        self._lines: list[bytes] | None = None

    @property
    def lines(self) -> list[bytes]:
        """Each line, without its newline; taken apart when first asked for."""
        lines = self._lines
        if lines is None:
            lines = self.data.split(b"\n")
            lines.pop()
            self._lines = lines
        return lines

    def head(self, count: int) -> Lines:
        """The first ``count`` lines; all, where there are no more."""
        if count >= self.count:
            return self
        return Lines(b"".join(line + b"\n" for line in self.lines[:count]), self.first)


def blocks(data: bytes, first: int = 1) -> Iterator[Lines]:
    """The complete lines of ``data`` in blocks of about 128 KiB; the rest is left out.

    Args:
        data: whole lines, and perhaps the beginning of one more.
        first: the number of the first line, from 1.
    """
    start, end = 0, data.rfind(b"\n") + 1
    while start < end:
        cut = end if end - start <= _CHUNK else data.find(b"\n", start + _CHUNK) + 1
        block = Lines(data[start:cut], first)
        yield block
        first += block.count
        start = cut


class Poll(NamedTuple):
    """What one look at the file gave.

    Attributes:
        change: ``SAME`` (no new line), ``GROWN`` (``blocks`` are new), ``RESTARTED`` (what was
            read before is no longer what stands there: ``blocks`` are all lines from the
            first), ``UNSETTLED`` (missing, unreadable or shorter, for less than the grace)
            or ``UNREADABLE``. After the last two, what was read before is not forgotten.
        blocks: the new lines.
        reason: in plain words, why it is not ``SAME`` or ``GROWN``: "truncated", "rewritten",
            "replaced by another file", "missing", or why it cannot be read.
    """

    change: str
    blocks: list[Lines]
    reason: str = ""


class Reader:
    """Reads an append-only file of lines, each look costing only what is new.

    Bytes after the last newline are the `tail`: perhaps half a line that somebody is still
    writing. Lines longer than ``max_line`` are handed over cut (one byte longer than that),
    so that a hostile file costs bounded memory.

    Before new lines are trusted, the identity of the file, its first 4 KiB and the last
    4 KiB that were read are compared with what they were; where that leaves a doubt, or
    where the file changed without growing, all that was read before is hashed once more.

    Args:
        path: The file.
        max_line: Bytes of a line that are handed over at most, but one.
        max_lines: Lines that are read at most; then `full` is true.
        max_size: Bytes that are read at most; then `full` is true.
        grace: Seconds for which a file that is missing, unreadable or shorter than before is
            taken for one that somebody is about to write.
        verify: Whether a later look must notice that the beginning changed. False saves the
            hashing where there is no later look.

    Attributes:
        lines: complete lines read so far, empty ones included.
        offset: bytes of those.
        tail: the bytes after the last newline (cut like a line).
        since: when the file was last seen to change, in seconds of the clock given to `poll`.
        full: whether a bound was reached; what follows is not read.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        max_line: int = 1 << 20,
        max_lines: int = 1 << 20,
        max_size: int = 1 << 28,
        grace: float = 0.0,
        verify: bool = True,
    ) -> None:
        self.path = os.fspath(path)
        self._max_line = max_line
        self._max_lines = max_lines
        self._max_size = max_size
        self._grace = grace
        self._verify = verify
        self._stamp: Stamp | None = None  # as of the last good look
        self._seen: Stamp | None = None  # as of the last look
        self._looked = False
        self._trouble_since: float | None = None
        self.since = 0.0
        self._forget()

    def _forget(self) -> None:
        self.lines = 0
        self.offset = 0
        self.tail = b""
        self.full = False
        self._scanned = 0  # bytes looked at: those of the lines and of the tail
        self._head = b""
        self._end = b""  # what stands before `offset`
        self._digest = _sha256() if self._verify else None  # of the lines
        self._ahead = _sha256() if self._verify else None  # of the lines and the tail

    def head(self, length: int) -> tuple[bytes, Stamp]:
        """How the file begins, and its stamp from just before: at most so many bytes.

        Raises:
            Unreadable: it cannot be read.
        """
        descriptor, status = open_regular(self.path)
        try:
            data = os.pread(descriptor, length, 0)
            while len(data) < length and (
                more := os.pread(descriptor, length - len(data), len(data))
            ):
                data += more
        except OSError as error:
            raise Unreadable((error.strerror or str(error)).lower(), error.errno) from None
        finally:
            os.close(descriptor)
        return data, stamp_of(status)

    def resume(self, data: bytes, lines: int, found: Stamp, digest: _Hash) -> None:
        """Go on after lines that were taken elsewhere, before the first look.

        Args:
            data: those lines, with which the file began.
            lines: how many they are.
            found: the file's stamp from before they were read.
            digest: SHA-256 of them.
        """
        self.lines, self.offset, self._scanned = lines, len(data), len(data)
        self._head, self._end = data[:_SAMPLE], data[-_SAMPLE:]
        self._digest, self._ahead = digest.copy(), digest.copy()
        self._stamp = found._replace(size=len(data))  # as if it had held no more

    @property
    def settles(self) -> float | None:
        """When an `UNSETTLED` file is given up at the latest, on the clock given to `poll`."""
        return None if self._trouble_since is None else self._trouble_since + self._grace

    def poll(self, now: float) -> Poll:
        """Look once. ``now`` is the time in seconds since 1970, for `since` and the grace."""
        found = stamp(self.path)
        if found is not None and found == self._stamp and self._trouble_since is None:
            return Poll(SAME, [])
        self._note_change(found, now)
        try:
            descriptor, status = open_regular(self.path)
        except Unreadable as error:
            return self._trouble("missing" if error.missing else error.reason, now)
        try:
            return self._read(descriptor, stamp_of(status), now)
        except OSError as error:
            return self._trouble((error.strerror or str(error)).lower(), now)
        finally:
            os.close(descriptor)

    def _note_change(self, found: Stamp | None, now: float) -> None:
        if not self._looked:
            self.since = min(now, found.modified / 1e9) if found else now
        elif found != self._seen:
            self.since = now
        self._looked = True
        self._seen = found

    def _trouble(self, reason: str, now: float) -> Poll:
        if self._trouble_since is None:
            self._trouble_since = now
        known = self._stamp is not None
        if known and now - self._trouble_since < self._grace:
            return Poll(UNSETTLED, [], reason)
        return Poll(UNREADABLE, [], reason)

    def _read(self, descriptor: int, found: Stamp, now: float) -> Poll:
        doubt = self._doubt(descriptor, found)
        if doubt == "truncated" and self._grace:
            unsettled = self._trouble(doubt, now)
            if unsettled.change == UNSETTLED:
                return unsettled
        if doubt:
            self._forget()
        self._trouble_since = None
        if found.size - self._scanned > _CHUNK:
            with without_collector():
                blocks = self._new_lines(descriptor, found.size)
        else:
            blocks = self._new_lines(descriptor, found.size)
        self._stamp = found
        if doubt:
            return Poll(RESTARTED, blocks, doubt)
        return Poll(GROWN if blocks else SAME, blocks)

    def _doubt(self, descriptor: int, found: Stamp) -> str:
        """Why what was read before no longer stands in the file; "" where it does."""
        before = self._stamp
        if before is None:
            return ""
        grown = found.size > before.size
        tail = os.pread(descriptor, len(self.tail), self.offset) if grown else b""
        if not grown or tail != self.tail:
            self._drop_tail()
        if found.size < self.offset:
            return "truncated"
        same_file = (found.inode, found.device) == (before.inode, before.device)
        if same_file and grown and self._ends_match(descriptor):
            return ""
        if self._digest is None or self._hash(descriptor, self.offset) == self._digest.digest():
            self._drop_tail()
            return ""
        return "rewritten" if same_file else "replaced by another file"

    def _drop_tail(self) -> None:
        """The tail may be another one now: read it again."""
        self.tail, self._scanned = b"", self.offset
        self._ahead = self._digest.copy() if self._digest else None

    def _ends_match(self, descriptor: int) -> bool:
        start = self.offset - len(self._end)
        return (
            os.pread(descriptor, len(self._head), 0) == self._head
            and os.pread(descriptor, len(self._end), start) == self._end
        )

    def _hash(self, descriptor: int, length: int) -> bytes:
        digest, position = _sha256(), 0
        while position < length:
            part = os.pread(descriptor, min(_CHUNK, length - position), position)
            if not part:
                break
            digest.update(part)
            position += len(part)
        return digest.digest()

    def _new_lines(self, descriptor: int, size: int) -> list[Lines]:
        blocks: list[Lines] = []
        end = min(size, self._max_size)
        while self._scanned < end and not self.full:
            part = os.pread(descriptor, min(_CHUNK, end - self._scanned), self._scanned)
            if not part:
                break  # it became shorter while we read: the next look tells
            cut = part.rfind(b"\n") + 1
            if cut:
                self._take(part[:cut], blocks)
                self.tail = part[cut:]
            else:
                self.tail = (self.tail + part)[: self._max_line + 1]
            if self._ahead:
                self._ahead.update(part[cut:])
            self._scanned += len(part)
        self.full = self.full or size > self._max_size
        if len(self._head) < _SAMPLE:
            self._head = os.pread(descriptor, min(_SAMPLE, self.offset), 0)
        return blocks

    def _take(self, data: bytes, blocks: list[Lines]) -> None:
        """Read complete lines; the tail so far is the beginning of the first one."""
        length = self._scanned - self.offset + len(data)
        if self._ahead:
            self._ahead.update(data)
            self._digest = self._ahead.copy()
        whole = self.tail + data
        before, new = (self._end, whole) if len(whole) == length else (b"", data)
        self._end = (before + new[-_SAMPLE:])[-_SAMPLE:]
        self.offset += length
        block = Lines(whole, self.lines + 1)
        if block.count > self._max_lines - self.lines:
            self.full = True
            block = self._cut(block)
        elif len(whole) > self._max_line:
            block = self._cut(block)
        if block.count:
            blocks.append(block)
        self.lines += block.count

    def _cut(self, block: Lines) -> Lines:
        """No more lines than may be read, and none longer than is handed over."""
        most = self._max_line + 1
        lines = [line[:most] for line in block.lines[: self._max_lines - self.lines]]
        return Lines(b"\n".join([*lines, b""]), block.first)


def read_line(path: str | os.PathLike[str], number: int, max_line: int = 1 << 20) -> bytes:
    """Line ``number`` (from 1) of a file, without its newline, cut after ``max_line`` bytes.

    Bytes after the last newline count as a line here. b"" where there is no such line.

    Raises:
        Unreadable: the file cannot be read.
    """
    descriptor, _ = open_regular(path)
    try:
        current, found = 1, b""
        while current <= number and (part := os.read(descriptor, _CHUNK)):
            newlines = part.count(b"\n")
            if current + newlines >= number:
                pieces = part.split(b"\n", number - current + 1)
                found = (found + pieces[number - current])[:max_line]
            current += newlines
        return found
    except OSError as error:
        raise Unreadable((error.strerror or str(error)).lower(), error.errno) from None
    finally:
        os.close(descriptor)


@contextmanager
def without_collector() -> Iterator[None]:
    """No garbage collection meanwhile: many small lasting objects only make it search in vain."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _sha256() -> _Hash:
    from hashlib import sha256  # late: costs commands that read once

    return sha256()
