"""What a program prints, read from its files: as they grow, and what it said once it has ended."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import streams
from acp_core.agents.progress import MAX_LINE, Progress
from acp_core.files.reading import Unreadable, open_regular

_AT_ONCE = 4 << 20  # bytes that one look reads at most: the rest comes with the next

LIMIT = 256 << 20  # bytes of one file; then it is begun anew

LAST = 12  # lines that are kept to be shown


class Tail:
    """Reads a file that grows, line by line.

    Args:
        path: The file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._offset = 0
        self._rest = b""
        self._skipping = False  # in the middle of a line that is too long

    def lines(self) -> list[bytes]:
        """The complete lines that came since the last call, at most a few megabytes of them.

        Of a line longer than `MAX_LINE` only its beginning is given, cut.
        """
        try:
            with self.path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size < self._offset:  # begun anew
                    self._offset, self._rest, self._skipping = 0, b"", False
                file.seek(self._offset)
                data = file.read(_AT_ONCE)
                self._offset = file.tell()
        except OSError:
            return []
        *lines, rest = data.split(b"\n")
        if lines:
            first = self._rest + lines[0]
            lines[0:1] = [] if self._skipping else [first]
            self._rest, self._skipping = rest, False
        elif not self._skipping:
            self._rest += rest
        if len(self._rest) > MAX_LINE:
            lines.append(self._rest[: MAX_LINE + 1])
            self._rest, self._skipping = b"", True
        return lines

    def rest(self) -> list[bytes]:
        """What stands after the last newline, once nothing more comes."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []

    def begin_anew(self) -> bool:
        """Empty the file where it is larger than `LIMIT`; its program appends to it."""
        with contextlib.suppress(OSError):
            if os.stat(self.path).st_size > LIMIT:
                os.truncate(self.path, 0)
                self._offset, self._rest, self._skipping = 0, b"", False
                return True
        return False


class Output:
    """The two outputs of one run, read into one `Progress`.

    Args:
        out: The file of the standard output.
        err: The file of the standard error.
        stream: The form of the standard output, one of `streams.NAMES`.

    Attributes:
        first, last: when something was printed first and last, in seconds since 1970.
        lines: the last lines, for people.
    """

    def __init__(self, out: Path, err: Path, stream: str) -> None:
        self._out, self._err = Tail(out), Tail(err)
        self._parser = streams.parser(stream)
        self.first: float | None = None
        self.last: float | None = None
        self.lines: deque[str] = deque(maxlen=LAST)

    @property
    def progress(self) -> Progress:
        """How far the run is."""
        return self._parser.progress

    def read(self, now: float) -> list[tuple[str, str]]:
        """Read what is new.

        Args:
            now: seconds since 1970.

        Returns:
            Lines for people, each behind ``out``, ``err`` or (of the reading itself) ``loop``.
        """
        self._notice(now)
        said = [("err", line) for raw in self._err.lines() for line in self._complained(raw, now)]
        said += [("out", line) for raw in self._out.lines() for line in self._parser.feed(raw, now)]
        self._keep(said)
        for tail in (self._out, self._err):
            if tail.begin_anew():
                said.append(("loop", f"{tail.path.name} was too large and was started over"))
        return said

    def end(self, now: float) -> list[tuple[str, str]]:
        """Read everything that is left, once the program has ended."""
        said: list[tuple[str, str]] = []
        while more := self.read(now):
            said += more
        last = [("err", line) for raw in self._err.rest() for line in self._complained(raw, now)]
        last += [("out", line) for raw in self._out.rest() for line in self._parser.feed(raw, now)]
        self._keep(last)
        self._parser.end()
        return said + last

    def _complained(self, raw: bytes, now: float) -> list[str]:
        return self._parser.complain(raw, now)

    def _notice(self, now: float) -> None:
        """When something was printed, by the files' own times: also before we looked."""
        changed = []
        for tail in (self._out, self._err):
            with contextlib.suppress(OSError):
                found = os.stat(tail.path)
                if found.st_size:
                    changed.append(min(found.st_mtime, now))
        if changed:
            self.last = max(changed)
            self.first = min(changed) if self.first is None else self.first

    def _keep(self, said: list[tuple[str, str]]) -> None:
        self.lines.extend(line for _, line in said if line)


_READ = 16 << 20  # bytes that are read, the last ones


class Transcript(NamedTuple):
    """What a program said: every message but repeated ones, and how far it was at the end."""

    messages: tuple[str, ...]
    progress: Progress


def read_end(path: Path, limit: int = _READ) -> bytes:
    """The last ``limit`` bytes of a plain file; none where there is no such file."""
    try:
        descriptor, found = open_regular(path)
    except Unreadable:
        return b""
    try:
        return os.pread(descriptor, limit, max(0, found.st_size - limit))
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def parse(data: bytes, stream: str) -> Transcript:
    """Take apart what a program printed.

    Args:
        data: what it printed on its standard output.
        stream: the form of it, one of `streams.NAMES`.

    Raises:
        KeyError: there is no such form.
    """
    parser = streams.parser(stream)
    messages: list[str] = []
    for line in data.split(b"\n"):
        if line:
            parser.feed(line[: MAX_LINE + 1], time.time())
        text = parser.progress.said
        if text and (not messages or messages[-1] != text):
            messages.append(text)
    parser.end()
    return Transcript(tuple(messages), parser.progress)
