"""What is worth telling a person, once per transition. Pure: the time is given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, time, timedelta

from acp_core.model import Need, Snapshot, Status
from acp_core.model.sentence import names_in, need_case, sentence_case

KINDS = ("stuck", "blocked", "need", "completed")
"""Stuck: a cause keeps it from going on; blocked: somebody said so; need: anything else that
wants a human; completed: it is over."""
AGAIN = timedelta(minutes=1)
"""A need that comes back sooner than that after it went is the same one."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something to tell; every text is one line that is safe to show.

    Attributes:
        kind: one of `KINDS`.
        collaboration: its name; ``location`` where it is.
        participant: whom it is about, "" where nobody.
        reason: why a human is wanted, or what happened.
        action: what mends it, "" where nothing does by itself.
        sentence: the reason as it stands by itself; "" where that is the same.
    """

    kind: str
    collaboration: str
    location: str
    participant: str
    reason: str
    action: str = ""
    sentence: str = ""

    @property
    def title(self) -> str:
        """A few words."""
        word = {"completed": "completed", "blocked": "is blocked"}.get(self.kind, "needs you")
        return f"acp: {self.collaboration} {word}"

    def text(self, key: str = "") -> str:
        """Who and why, and the key of the dashboard that mends it."""
        about = self.participant and self.participant not in self.reason
        words = f"{self.participant}: {self.reason}" if about else self.sentence or self.reason
        if self.action and key:
            words += f" (press {key}: {self.action.replace('_', ' ')})"
        return words


class News:
    """Notices what was not there before. What is found at the start is no news."""

    def __init__(self) -> None:
        self._needs: set[tuple[str, str]] = set()
        self._left: dict[tuple[str, str], datetime] = {}  # when a need went away
        self._over: set[str] = set()
        self._known: set[str] = set()  # collaborations
        self._begun = False

    def update(
        self, now: datetime, fleet: Iterable[tuple[Snapshot, Iterable[Need]]], *, complete: bool
    ) -> list[Message]:
        """Take in how all stands, and return the notices of what is new.

        Args:
            now: The time.
            fleet: Every collaboration that is not put away, with the needs that count there.
            complete: The first look at everything is over.
        """
        needs: dict[tuple[str, str], tuple[Snapshot, Need]] = {}
        over: dict[str, Snapshot] = {}
        known: set[str] = set()
        for snapshot, wanted in fleet:
            known.add(snapshot.key)
            if snapshot.status is Status.COMPLETED:
                over[snapshot.key] = snapshot
            for need in wanted:
                needs[snapshot.key, need.key] = snapshot, need
        told: list[Message] = []
        if self._begun:
            told = [message(*needs[each]) for each in needs if self._is_new(each, now)]
            ended = over.keys() & self._known - self._over
            told += [_ended(over[key]) for key in over if key in ended]
        for gone in self._needs - needs.keys():
            self._left[gone] = now
        self._left = {each: at for each, at in self._left.items() if now - at < AGAIN}
        if complete:
            self._begun = True
        self._needs, self._over, self._known = set(needs), set(over), known
        return told

    def _is_new(self, each: tuple[str, str], now: datetime) -> bool:
        left = self._left.get(each)
        return each not in self._needs and (left is None or now - left >= AGAIN)


def message(snapshot: Snapshot, need: Need) -> Message:
    """What to tell of a need."""
    if snapshot.status is Status.BLOCKED:
        kind = "blocked"
    else:
        kind = "stuck" if any(need.key == cause.key for cause in snapshot.causes) else "need"
    return Message(
        kind,
        snapshot.name,
        snapshot.location,
        need.participant or "",
        need.text,
        need.action or "",
        need_case(need, snapshot),
    )


def _ended(snapshot: Snapshot) -> Message:
    said = snapshot.headline
    sentence = sentence_case(said, names_in(snapshot))
    return Message("completed", snapshot.name, snapshot.location, "", said, sentence=sentence)


def is_quiet(hours: str, at: time) -> bool:
    """Whether a time of day lies in ``hours`` (``22:00-07:00``; "" for never).

    Raises:
        ValueError: that are no hours.
    """
    if not hours:
        return False
    begin, dash, end = hours.partition("-")
    if not dash:
        raise ValueError("expected two times with a dash between them, such as 22:00-07:00")
    first, last = time.fromisoformat(begin.strip()), time.fromisoformat(end.strip())
    return first <= at < last if first <= last else at >= first or at < last
