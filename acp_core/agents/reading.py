"""A loop's log, or what its program printed, as lines that are safe to show, as they come.

Secrets are masked here: this is for screens. Reading may be slow; it belongs into a worker.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.agents import logs
from acp_core.agents.state import RunnerState
from acp_core.files.secrets import mask
from acp_core.model.text import clean_line

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
        self._followers: list[tuple[str, logs.Follower]] = []
        self._older: list[Path] = []
        if not raw:
            self._older = logs.files(Path(loop.log))
            self._older = [file for file in self._older if str(file) != loop.log]
            self._followers = [("", logs.Follower(Path(loop.log)))]
        elif loop.run is not None:
            for who, path in (("err", loop.run.err), ("out", loop.run.out)):
                if path:
                    follower = logs.Follower(Path(path))
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
