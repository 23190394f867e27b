"""The file in which what an agent elsewhere said is kept: JSON Lines, only ever appended to.

It stands in the user's state folder. One process writes it; others that follow the same agent
only read what stood there when they began. A line that was cut short by a kill is left out.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from acp_core.files import atomic, modes
from acp_core.files.decode import text
from acp_core.files.newer import NEWER, is_newer
from acp_core.files.reading import Unreadable, open_regular
from acp_core.person.paths import state_folder
from acp_core.protocols.wire.read.remote.known import Known
from acp_core.protocols.wire.schema import Json, Refusal
from acp_core.protocols.wire.schema.decode import decode, encode
from acp_core.protocols.wire.schema.lenient import fields_of

FILE = "wire-log.jsonl"
SCHEMA = "acp.wire-log/1"
LARGEST = 128 << 20  # bytes after which the file begins anew with what is known
_HEAD = 4_096
_CHUNK = 1 << 20
_WORD = re.compile(r"[^\w.\-]+")


def folder_of(key: str) -> Path:
    """Where what is known of the agent of this key is kept; it need not exist."""
    digest = hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:16]
    word = _WORD.sub("_", key.partition("://")[2])[:40].strip("._")
    return state_folder() / "wire-seen" / f"{word}-{digest}"


def is_log(folder: Path) -> bool:
    """Whether a folder holds such a file."""
    try:
        descriptor, _ = open_regular(folder / FILE)
    except Unreadable:
        return False
    try:
        line = os.read(descriptor, _HEAD).partition(b"\n")[0]
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return _head(line) is not None


class Reader:
    """The records of a file, read on as it grows."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self.known = Known()
        self.key = ""
        self.own = False  # made of an agent's own log, not heard of it
        self.newer = False  # a later acp keeps it
        self._seen = (0, 0)  # inode and bytes that were read
        self._rest = b""

    def read(self) -> bool:
        """Read what is new; whether there was anything.

        Raises:
            Unreadable: the file cannot be read.
        """
        descriptor, found = open_regular(self.path)
        try:
            inode, place = self._seen
            if found.st_ino != inode or found.st_size < place:
                self.known, self.key, self._rest, place = Known(), "", b"", 0
                self.own = False
            elif found.st_size == place:
                return False
            os.lseek(descriptor, place, os.SEEK_SET)
            while data := os.read(descriptor, _CHUNK):
                place += len(data)
                *lines, self._rest = (self._rest + data).split(b"\n")
                for line in lines:
                    self._take(line)
            self._seen = (found.st_ino, place)
        finally:
            os.close(descriptor)
        return True

    def _take(self, line: bytes) -> None:
        head = None if self.key else _head(line)
        if not self.key and head is None:
            self.newer = self.newer or is_newer(_schema(line), SCHEMA)
        if head is not None:
            self.key, self.own = head["key"], head.get("own") is True
            self.known.skip()
            return
        try:
            told = decode(line)
        except Refusal:
            told = None
        if isinstance(told, dict):
            self.known.take(told)
        else:
            self.known.skip()


class Writer:
    """Keeps what is observed, where no other process does so already.

    ``problem`` says why nothing is kept; "" while it is.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self.folder = folder_of(key)
        self.problem = ""
        self._lock = -1
        self._file = -1
        self._size = 0

    def open(self) -> Known:
        """Begin; what is known from before."""
        reader = Reader(self.folder)
        try:
            modes.private_folder(self.folder)
            import fcntl

            self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.problem = "another process uses it"
        except (ImportError, OSError) as error:
            self.problem = getattr(error, "strerror", None) or str(error)
        try:
            reader.read()
        except Unreadable as error:
            if not error.missing:
                self.problem = self.problem or error.reason
        if reader.newer:
            self.problem = self.problem or NEWER
        known = reader.known if reader.key == self._key else Known()
        if not self.problem:
            self._begin(known, fresh=reader.key != self._key)
        return known

    def add(self, records: Iterable[Json], known: Known) -> None:
        """Append records, which ``known`` has taken already."""
        if self._file < 0:
            return
        data = b"".join(encode(each) + b"\n" for each in records)
        try:
            written = os.write(self._file, data)
            if written < len(data):
                raise OSError(None, "the disk is full")
            self._size += written
            if self._size > LARGEST:
                self._begin(known, fresh=True)
        except OSError as error:
            self.problem = error.strerror or str(error)
            self._let_go()

    def close(self) -> None:
        """Let go of the file."""
        self._let_go()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _begin(self, known: Known, *, fresh: bool) -> None:
        path = self.folder / FILE
        try:
            if fresh or not _ends_well(path):
                before = os.umask(0o077)
                try:
                    atomic.replace(path, b"".join(_lines(self._key, known)), sync=False)
                finally:
                    os.umask(before)
                known.restart(1)
            self._let_go()
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
            self._size = os.fstat(self._file).st_size
        except OSError as error:
            self.problem = error.strerror or str(error)
            self._let_go()

    def _let_go(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _lines(key: str, known: Known) -> Iterator[bytes]:
    yield json.dumps({"schema": SCHEMA, "key": key}).encode() + b"\n"
    for each in known.records():
        yield encode(each) + b"\n"


def _schema(line: bytes) -> object:
    try:
        return fields_of(decode(line)).get("schema")
    except Refusal:
        return None


def _head(line: bytes) -> Json | None:
    try:
        head = fields_of(decode(line))
    except Refusal:
        return None
    fits = head.get("schema") == SCHEMA and text(head.get("key")) is not None
    return head if fits else None


def _ends_well(path: Path) -> bool:
    """Whether a file ends with a whole line."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        if not 0 < size <= LARGEST:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"
