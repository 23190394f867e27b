"""How far a run of a program is: the same few facts, whatever the program prints.

A stream is what a stranger prints: any line may be missing, doubled, cut, huge or hostile, and
none of them stops the reading. Texts are kept as they came; whoever shows them makes them safe.
"""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

MAX_LINE = 8 << 20  # bytes of a line that is read as JSON; a longer one counts as output only

_KEPT = 20  # refusals and refused tools that are remembered

_SHORT = 300  # characters of a readable line

_MAX_COUNT = 10**15

_SECONDS = 10**11  # a larger time is one in milliseconds

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")  # some programs colour whatever NO_COLOR says

_REFUSAL = re.compile(
    r"(?:^|[\s:])error: +\S|: command not found$|: permission denied$|: operation not permitted$",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Progress:
    """What is known of one run of a program.

    Attributes:
        session: the program's own name for the run, with which it can be resumed.
        opened: how a live session was opened for this run; "" where it stayed, or is none.
        model, version: as the program says them.
        tool: the tool in use now, with what it is used on; "" where none is.
        said: the last thing that the model or the program said.
        refused: the tools that were refused for want of a permission, newest last.
        refusals: lines of tools that begin with "error:" or say that a command could not be
            run, newest last: what a protocol's command said when it refused.
        retries: how often the program tried to reach its model service again.
        retrying: it waits to try again; ``retrying_until`` until when, in seconds since 1970,
            where it says so.
        retry_reason: why it tries again.
        silent: its model has said and done nothing since it was asked.
        tokens_in, tokens_out: tokens read (cached ones included) and written.
        tokens_estimated: the program has not given its final count.
        cost: US dollars as the program says; None where it names none.
        finished: the program's last record was seen: it has nothing more to do.
        is_error: the run failed, whatever its exit code says.
        error: why, or the last error that it named.
        error_name, error_status: the error's name and its status of HTTP, where it gives them.
        resets_at: when its usage limit is reset, in seconds since 1970, where it says so.
        told_at: when it said why it failed, in seconds since 1970, where its records bear their times.
        complaints: the last lines that it printed beside its records, newest last.
        error_lines: of a program that prints text for people, the lines that may say why it failed,
            newest last; None for any other.
        cut_off: the run ended in the middle of its work.
    """

    session: str = ""
    opened: str = ""
    model: str = ""
    version: str = ""
    tool: str = ""
    said: str = ""
    refused: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    retries: int = 0
    retrying: bool = False
    retrying_until: float | None = None
    retry_reason: str = ""
    silent: bool = False
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_estimated: bool = False
    cost: float | None = None
    finished: bool = False
    is_error: bool = False
    error: str = ""
    error_name: str = ""
    error_status: int = 0
    resets_at: float | None = None
    told_at: float | None = None
    complaints: list[str] = field(default_factory=list)
    error_lines: tuple[str, ...] | None = None
    cut_off: bool = False

    def refuse(self, tool: str) -> None:
        """A tool was refused for want of a permission."""
        if tool and tool not in self.refused:
            self.refused = [*self.refused, short(tool)][-_KEPT:]

    def quote(self, output: str) -> None:
        """Remember the refusals in what a tool printed."""
        for line in output.splitlines():
            found = short(line)
            if _REFUSAL.search(line[:2000].rstrip()) and found not in self.refusals:
                self.refusals = [*self.refusals, found][-_KEPT:]

    def complain(self, line: str) -> None:
        """Remember a line that is no record: there programs tell what went wrong."""
        self.complaints = [*self.complaints, short(line)][-_KEPT:]

    def retry(self, reason: str, until: float | None = None) -> None:
        """The program tries again to reach its model service.

        Args:
            reason: why it must, in the program's words.
            until: when it tries next, in seconds since 1970; None where it does not say.
        """
        self.retries += 1
        self.retrying = True
        self.retrying_until = until
        self.retry_reason = short(reason)

    def answered(self) -> None:
        """Its model service answered, or it gave up: it does not wait any longer."""
        self.retrying = False
        self.retrying_until = None


class Parser(ABC):
    """Reads the output of one run, line by line, into `progress`."""

    def __init__(self) -> None:
        self.progress = Progress()

    def feed(self, line: bytes, now: float) -> list[str]:
        """Take a line of the standard output.

        Args:
            line: the line, without its newline.
            now: seconds since 1970.

        Returns:
            What the line says, in lines for people; nothing where it says nothing to them.
        """
        if line.lstrip()[:1] == b"{" and len(line) <= MAX_LINE:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if isinstance(record, dict):
                return [short(said) for said in self._taken(record, now)]
        text = line[:MAX_LINE].decode(errors="replace").rstrip()
        return [short(said) for said in self.plain(text, now)] if text else []

    def _taken(self, record: dict[str, Any], now: float) -> list[str]:
        """Take a record, and note its time where it tells an error."""
        progress = self.progress
        before = (progress.is_error, progress.error, progress.resets_at)
        said = self.take(record, now)
        if (progress.is_error, progress.error, progress.resets_at) != before:
            progress.told_at = _time_of(record)
        return said

    @abstractmethod
    def take(self, record: dict[str, Any], now: float) -> list[str]:
        """Take a JSON record of the standard output."""

    def plain(self, text: str, now: float) -> list[str]:
        """Take a line that is no JSON object."""
        self.progress.complain(text)
        return [text]

    def complain(self, line: bytes, now: float) -> list[str]:
        """Take a line of the standard error."""
        text = line[:MAX_LINE].decode(errors="replace").rstrip()
        if not text:
            return []
        self.progress.complain(text)
        return [short(text)]

    def end(self) -> None:  # noqa: B027 - most know how it ended already
        """The program has ended, and all of its output was fed."""


def _time_of(record: dict[str, Any]) -> float | None:
    """The time that a record bears, in seconds since 1970; None where it bears none."""
    value = record.get("at", record.get("timestamp"))
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return None
        return at.timestamp() if at.tzinfo else None
    seconds = money(value)
    return seconds / 1000 if seconds and seconds > _SECONDS else seconds


def short(text: str, longest: int = _SHORT) -> str:
    """A text as one line of bounded length, without colours."""
    line = " ".join(_COLOUR.sub("", text[: 4 * longest]).split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def string(value: object) -> str:
    """The value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def table(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def count(value: object) -> int:
    """The value if it is a sensible number of things, else 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value) if math.isfinite(value) and 0 <= value <= _MAX_COUNT else 0


def money(value: object) -> float | None:
    """The value if it is a sensible sum, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= _MAX_COUNT else None


def text_in(value: object) -> str:
    """The text of a content field: a text, or a list of parts that hold some."""
    if isinstance(value, str):
        return value
    parts = (
        part if isinstance(part, str) else string(table(part).get("text")) for part in items(value)
    )
    return "\n".join(part for part in parts if part)


def use(tool: str, inputs: object) -> str:
    """A tool and what it is used on: ``Bash: acp append ...``."""
    given = table(inputs)
    named = ("command", "file_path", "path", "filePath", "pattern", "url", "query", "description")
    on = next((string(given[name]) for name in named if string(given.get(name))), "")
    return short(f"{tool}: {on}" if on else tool)
