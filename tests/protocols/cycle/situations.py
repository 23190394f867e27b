"""Cycles in which a rule has something to say, and near ones in which it has not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.protocols.cycle.making import HOME, PROGRESS, STATE, cycle, state, write

DAY = "2026-03-02T"


@dataclass(frozen=True)
class Situation:
    """One cycle: its status, what is changed in its state, and the files beside it.

    ``files`` stand in the progress folder, ``top`` beside the state; a value that is no text
    becomes JSON. ``raw`` takes the state's place, ``ago`` is how old it is in seconds.
    """

    word: str = "running"
    changed: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Any] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()
    raw: str | None = None
    ago: float = 60.0

    def make(self, root: Path) -> Path:
        """The project with this cycle."""
        if self.raw is not None:
            write(root, STATE, self.raw, self.ago)
        elif self.without:
            value = state(self.word, **self.changed)
            write(root, STATE, {k: v for k, v in value.items() if k not in self.without})
        else:
            cycle(root, self.word, **self.changed)
        for name, content in self.files.items():
            write(root, f"{PROGRESS}/{name}", content)
        for name, content in self.top.items():
            value = content(root) if callable(content) else content
            write(root, f"{HOME}/{name}", value)
        return root


def on(word: str = "running", /, **changed: Any) -> Situation:
    """A cycle whose state is otherwise in these keys."""
    return Situation(word, changed)


def rows(*values: dict[str, Any]) -> str:
    """The text of a log."""
    return "".join(json.dumps(value) + "\n" for value in values)


def clock(hour: int, minute: int = 0) -> str:
    """A time of the day on which the cycles run, in UTC+8."""
    return f"{DAY}{hour:02}:{minute:02}:00+08:00"
