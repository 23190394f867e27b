"""What happened in a run: each attempt with its times, and what readers saw meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"


class Attempt(NamedTuple):
    """One command that was to append something.

    Attributes:
        token: what the event, and what it brings, is known by.
        host: which one; ``participant``: as whom; ``kind``: see `planning.Act`.
        began, ended: by one monotonic clock.
        outcome: OK: acknowledged; REFUSED: said not to be appended; UNKNOWN: killed, or in doubt.
        seq: that it was told.
        code, said: how the command ended.
        take: whether it moved the participant to its host.
    """

    token: str
    host: str
    participant: str
    kind: str
    began: float
    ended: float
    outcome: str
    seq: int = 0
    code: int = 0
    said: str = ""
    take: bool = False


@dataclass
class Seen:
    """What a reader saw of a host's folder, again and again.

    Attributes:
        prefix: the longest part of the log that the host knew to be the store's.
        lines: every whole line that ever stood in its log.
        looks: how often the reader looked.
    """

    prefix: bytes = b""
    lines: set[bytes] = field(default_factory=set)
    looks: int = 0


@dataclass
class History:
    """All of a run.

    Attributes:
        attempts: of events; of rogue lines, too, with no outcome but UNKNOWN.
        edits: tokens that were written into documents, with the host.
        seen: by host.
        wrong: what should not have been, as it was noticed.
        done: counts of what was done, for people.
    """

    attempts: list[Attempt] = field(default_factory=list)
    edits: list[tuple[str, str]] = field(default_factory=list)
    seen: dict[str, Seen] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)

    def count(self, what: str) -> None:
        """Something was done once more."""
        self.done[what] = self.done.get(what, 0) + 1
