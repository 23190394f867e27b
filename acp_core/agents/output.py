"""What a program prints, read from its files: as they grow, what it said at its end, and a live turn as it is seen.

A turn of a live session is read from its journal, the running one's or a finished one's: its text,
calls and notes in their order. Reading may be slow; it belongs into a worker.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.agents import streams
from acp_core.agents.live.updates import SessionState, Step, ToolCall, apply
from acp_core.agents.progress import MAX_LINE, Progress, string, table, text_in
from acp_core.agents.state import ToolUse
from acp_core.agents.streams import use_of
from acp_core.files.reading import Unreadable, open_regular
from acp_core.files.secrets import mask
from acp_core.model.text import clean, clean_line

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


TEXT, CALL, NOTE, PERSON = "text", "call", "note", "person"

MOST = 400

"""Entries that are remembered, the newest."""

_USES = 40  # of tools that are noted for good

_SHORT = 160  # characters of one of them

_LONGEST = 20_000  # characters of one entry

_LINES = 12  # last lines of what a call printed

_LINE = 1_000  # characters of a line


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened in a turn; all texts of those that `Feed` gives are safe to show.

    Attributes:
        number: counts the entries of the turn.
        at: when it began, in seconds since 1970.
        kind: `TEXT` of the agent, a `CALL` of a tool, a `NOTE` of acp, or the words of a `PERSON`.
        text: what was said; of a call the tool and what it is used on.
        status: of a call: pending, in_progress, completed or failed.
        output: of a call: the last lines that it printed.
    """

    number: int
    at: float
    kind: str
    text: str
    status: str = ""
    output: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Picture:
    """How a turn stands.

    Attributes:
        state: of its session; its texts are as they came.
        entries: what changed since the last picture, each whole, in order.
        plan: the plan, safe to show.
    """

    state: SessionState
    entries: tuple[Entry, ...] = ()
    plan: tuple[Step, ...] = ()


class Feed:
    """Follows the journal of one turn.

    Args:
        journal: the file.
    """

    def __init__(self, journal: Path) -> None:
        self._tail = Tail(journal)
        self._state = SessionState()
        self._entries: dict[int, Entry] = {}
        self._of_call: dict[str, int] = {}
        self._count = 0

    def read(self) -> Picture | None:
        """What is new since the last call; None where nothing is."""
        changed: dict[int, None] = {}
        before = self._state
        for line in self._tail.lines():
            for number in self._take(line):
                changed[number] = None
        state = self._state
        if not changed and state is before:
            return None
        found = (self._entries[each] for each in sorted(changed) if each in self._entries)
        entries = tuple(replace(each, text=_safe(each.text)) for each in found)
        return Picture(state, entries, _plan(state.plan))

    def _take(self, line: bytes) -> Iterable[int]:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(record, dict):
            return
        message, at = table(record.get("message")), record.get("at")
        before, state = self._state, apply(self._state, string(record.get("direction")), message)
        self._state = state
        now = float(at) if isinstance(at, int | float) else 0.0
        if text := _chunk(message):
            yield self._text(text, state.last == before.last, now)
        for name, call in state.calls.items():
            if before.calls.get(name) is not call:
                yield self._call(name, call, now)
        for kind, name in ((NOTE, "note"), (NOTE, "failed"), (PERSON, "message")):
            if text := string(message.get(name)):
                yield self._add(Entry(0, now, kind, text))
        if refused := string(message.get("refused")):
            yield self._add(Entry(0, now, NOTE, f"not allowed: {refused}"))

    def _text(self, text: str, goes_on: bool, now: float) -> int:
        """What the agent says: more of the same message, or another one."""
        newest = self._entries.get(self._count)
        if not goes_on or newest is None or newest.kind != TEXT:
            return self._add(Entry(0, now, TEXT, text))
        more = replace(newest, text=(newest.text + text)[-_LONGEST:])
        self._entries[newest.number] = more
        return newest.number

    def _call(self, name: str, call: ToolCall, now: float) -> int:
        lines = tuple(_safe_line(each) for each in call.output.splitlines()[-_LINES:])
        entry = Entry(0, now, CALL, use_of(call), _safe_line(call.status), lines)
        number = self._of_call.get(name)
        if number is None or number not in self._entries:
            number = self._of_call[name] = self._add(entry)
        else:
            self._entries[number] = replace(entry, number=number, at=self._entries[number].at)
        return number

    def _add(self, entry: Entry) -> int:
        self._count += 1
        self._entries[self._count] = replace(entry, number=self._count)
        self._entries.pop(self._count - MOST, None)
        return self._count


def entries(journal: Path) -> tuple[Entry, ...]:
    """What happened in a turn that has ended, the newest of it; nothing where its file is gone."""
    feed = Feed(journal)
    found: dict[int, Entry] = {}
    while picture := feed.read():
        found |= {each.number: each for each in picture.entries}
    return tuple(found[number] for number in sorted(found)[-MOST:])


def tool_uses(journal: Path) -> tuple[ToolUse, ...]:
    """The tools that were used in a turn that has ended, the newest, safe to show."""
    calls = [each for each in entries(journal) if each.kind == CALL][-_USES:]
    return tuple(
        ToolUse(each.at, clean_line(each.text, _SHORT), clean_line(each.status, _SHORT))
        for each in calls
    )


def _chunk(message: Mapping[str, Any]) -> str:
    """What the agent says in a message; "" where it says nothing."""
    update = table(table(message.get("params")).get("update"))
    says = update.get("sessionUpdate") == "agent_message_chunk"
    return text_in([table(update.get("content"))]) if says else ""


def _plan(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(
        Step(_safe_line(each.content), _safe_line(each.status), _safe_line(each.priority))
        for each in steps
    )


def _safe(text: str) -> str:
    return clean(mask(text[-_LONGEST:]))


def _safe_line(text: str) -> str:
    return clean_line(mask(text[: 4 * _LINE]), _LINE)
