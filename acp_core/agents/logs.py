"""A log for people: one safe line per thing that happened, in files of bounded size; and how it is shown.

Secrets are masked where lines are read for screens. Reading may be slow; it belongs into a worker.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.agents.state import RunnerState
from acp_core.files.secrets import mask
from acp_core.model.text import clean_line

LIMIT = 1 << 20  # bytes of one file

KEPT = 3  # older files: log.1 is the newest of them

_LINE = 400


class Log:
    """Appends lines of the form ``TIME WHO TEXT``; ``WHO`` is ``loop``, ``out`` or ``err``.

    A log that cannot be written (a full disk) never stops what it tells about: the line is lost.

    Args:
        path: The newest file.
        limit: Bytes after which a new file is begun.
    """

    def __init__(self, path: Path, *, limit: int = LIMIT) -> None:
        self._path = path
        self._limit = limit

    def write(self, who: str, text: str, now: datetime) -> None:
        """Append a line."""
        at = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        line = f"{at} {who:<4} {clean_line(text, _LINE)}\n".encode(errors="replace")
        with contextlib.suppress(OSError):
            fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(fd, line)
                full = os.fstat(fd).st_size > self._limit
            finally:
                os.close(fd)
            if full:
                rotate(self._path)


def rotate(path: Path) -> None:
    """Begin a new file: ``log`` becomes ``log.1``, that one ``log.2``, and the last goes.

    Raises:
        OSError: a file cannot be renamed.
    """
    for number in range(KEPT, 0, -1):
        older = f"{path}.{number - 1}" if number > 1 else str(path)
        with contextlib.suppress(FileNotFoundError):
            os.replace(older, f"{path}.{number}")


def files(path: Path) -> list[Path]:
    """The files of a log that exist, oldest first."""
    numbered = [Path(f"{path}.{number}") for number in range(KEPT, 0, -1)]
    return [file for file in (*numbered, path) if file.is_file()]


def last_lines(path: Path, count: int) -> list[str]:
    """The last lines of a log, across its files; at most a file's worth."""
    lines: list[str] = []
    for file in reversed(files(path)):
        if len(lines) >= count:
            break
        with contextlib.suppress(OSError):
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines() + lines
    return lines[-count:] if count else []


class Follower:
    """Reads what a log gains, over the change to a new file.

    Args:
        path: The newest file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._inode = -1
        self._offset = 0
        self._rest = b""

    def start_at_end(self) -> None:
        """Leave out what stands in the log now."""
        with contextlib.suppress(OSError):
            found = os.stat(self._path)
            self._inode, self._offset = found.st_ino, found.st_size

    def start_near_end(self, octets: int) -> None:
        """Leave out all but about the last ``octets`` bytes of what stands in the log now."""
        with contextlib.suppress(OSError), self._path.open("rb") as file:
            found = os.fstat(file.fileno())
            if found.st_size <= octets:
                return
            file.seek(found.st_size - octets)
            file.readline(octets)
            self._inode, self._offset = found.st_ino, file.tell()

    def lines(self) -> Iterator[str]:
        """The complete lines that came since the last call."""
        with contextlib.suppress(OSError):
            found = os.stat(self._path)
            if self._inode not in (-1, found.st_ino):
                yield from self._read(Path(f"{self._path}.1"), self._inode)
                self._offset, self._rest = 0, b""
            elif found.st_size < self._offset:  # emptied and begun anew
                self._offset, self._rest = 0, b""
            self._inode = found.st_ino
            yield from self._read(self._path, found.st_ino)

    def _read(self, path: Path, inode: int) -> Iterator[str]:
        try:
            with path.open("rb") as file:
                if os.fstat(file.fileno()).st_ino != inode:
                    return
                file.seek(self._offset)
                data = self._rest + file.read(8 << 20)
                self._offset = file.tell()
        except OSError:
            return
        *lines, self._rest = data.split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)


FIRST = 2 << 20  # bytes of what a program printed that are read at first

LONGEST = 4_000  # characters of a line

_WHO = frozenset({"loop", "out", "err"})


class Line(NamedTuple):
    """A line of a log: when (None: not known), who (``loop``, ``out`` or ``err``), what."""

    at: datetime | None
    who: str
    text: str


class LoopLog:
    """What happened in a loop, the oldest first.

    Args:
        loop: The loop.
        raw: What the program printed in its last run, as it was, instead of the log for people.
    """

    def __init__(self, loop: RunnerState, *, raw: bool = False) -> None:
        self.raw = raw
        self._followers: list[tuple[str, Follower]] = []
        self._older: list[Path] = []
        if not raw:
            self._older = files(Path(loop.log))
            self._older = [file for file in self._older if str(file) != loop.log]
            self._followers = [("", Follower(Path(loop.log)))]
        elif loop.run is not None:
            for who, path in (("err", loop.run.err), ("out", loop.run.out)):
                if path:
                    follower = Follower(Path(path))
                    follower.start_near_end(FIRST)
                    self._followers.append((who, follower))

    def read(self) -> list[Line]:
        """The lines that came since the last call; at first what is there already."""
        found: list[Line] = []
        older, self._older = self._older, []
        for file in older:
            try:
                text = file.read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            found += (parsed(line) for line in text.splitlines())
        for who, follower in self._followers:
            for line in follower.lines():
                found.append(Line(None, who, _safe(line)) if who else parsed(line))
        return found


def parsed(line: str) -> Line:
    """A line of a log for people, which begins with its time and who said it."""
    words = line.split(" ", 1)
    try:
        at = datetime.fromisoformat(words[0])
    except ValueError:
        return Line(None, "loop", _safe(line))
    who, text = words[1][:4].strip(), words[1][5:]
    if who not in _WHO or at.tzinfo is None:
        return Line(None, "loop", _safe(line))
    return Line(at, who, _safe(text))


def _safe(text: str) -> str:
    return clean_line(mask(text[: 4 * LONGEST]), LONGEST)
