"""What causes are found by: everything that was seen of a collaboration, and a clock.

A cause is a small function of a `DiagnosisContext`. It asks the clock whether something has lasted long
enough; the clock remembers when a "not yet" becomes a "yes", so that somebody looks again then.
Standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from acp_core.model import Matter, Participant, Snapshot, Turn
from acp_core.model.text import clean_name

if TYPE_CHECKING:
    from acp_core.agents.live.answers import OpenRequest
    from acp_core.agents.state import RunnerState

SPEED_VARIABLE = "ACP_SPEED"
_LINE = re.compile(r":\d+\b")  # where in a document it stands
_ID = 200  # characters of a participant's id, as Snapshots show it
_SOONEST = 3.0  # seconds: whatever the speed, processes and files take their time


@dataclass(frozen=True, slots=True)
class Patience:
    """How long things may last before they count as a stall.

    Attributes:
        speed: how many times as fast everything goes (a demo); 1 in earnest.
        settle: seconds that a loop may take to notice what changed.
        first_output: seconds in which a program that tells of its work says something first.
        quiet: seconds without progress, at least,
        factor: and this many times what the participant's turns usually take.
        unmanaged: the same where nothing is known of the participant's process.
        cap: how many times as long a busy tool, or mere chatter, counts as progress.
        abandoned: seconds without any event after which nobody seems to be at it any more.
    """

    speed: float = 1.0
    settle: float = 5.0
    first_output: float = 90.0
    quiet: float = 300.0
    factor: float = 3.0
    unmanaged: float = 1_800.0
    cap: float = 4.0
    abandoned: float = 3 * 86_400.0

    @classmethod
    def of_environment(cls) -> Patience:
        """In earnest, or at the speed that a demo set for itself and its children."""
        try:
            speed = float(os.environ.get(SPEED_VARIABLE, "1"))
        except ValueError:
            speed = 1.0
        return cls(speed=speed if 0.01 <= speed <= 10_000 else 1.0)

    def scaled(self, seconds: float) -> float:
        """So many seconds at this speed."""
        return max(seconds / self.speed, min(seconds, _SOONEST))

    def without_progress(self, took: Sequence[float], least: float | None = None) -> float:
        """Seconds after which a turn without progress is a stall.

        Args:
            took: how many seconds the participant's earlier turns took.
            least: seconds at least; `quiet` by default.
        """
        usual = self.factor * _median(took) if took else 0.0
        return max(self.scaled(self.quiet if least is None else least), usual)


class Clock:
    """The moment at which a case is looked at, and the next at which it may look otherwise.

    Attributes:
        now: the moment.
        recheck: when to look again although nothing changes; None where no need.
    """

    def __init__(self, now: datetime) -> None:
        self.now = now
        self.recheck: datetime | None = None

    def over(self, since: datetime | None, seconds: float) -> bool:
        """Whether ``seconds`` have passed since ``since``; False where that is not known."""
        if since is None:
            return False
        try:
            until = since + timedelta(seconds=seconds)
        except OverflowError:
            return False
        if self.now >= until:
            return True
        self.recheck = until if self.recheck is None else min(self.recheck, until)
        return False


@dataclass(frozen=True, slots=True)
class UnmanagedProcess:
    """A process that acts for a participant and was not started by acp.

    Attributes:
        participant: for whom, as the process was told.
        pid, created: which process (its birth in seconds since 1970).
        command: how it was started, safe to show.
        waits: it only waits for the participant's turn.
    """

    participant: str
    pid: int
    created: float
    command: str
    waits: bool = False


def unknown(participant: str) -> Sequence[float]:
    """Where nothing is known of earlier turns."""
    return ()


def idle(loop: RunnerState) -> str:
    """Where nobody looks at processes, no program has a busy child."""
    return ""


@dataclass(frozen=True, slots=True)
class DiagnosisContext:
    """A collaboration as seen at one moment.

    Attributes:
        snapshot: what stands in it.
        loops: this machine's loops for it.
        strangers: processes of others that act in it.
        clock: the moment.
        patience: how long things may last.
        has_turns: loops can take its participants' turns.
        durations: says how many seconds a participant's earlier turns took, oldest first.
        busy: says what a loop's program has running, "" where nothing.
        permissions: requests for permission that wait for a person.
        found: causes found so far: those of loops, when a protocol is asked for its own.
    """

    snapshot: Snapshot
    clock: Clock
    loops: tuple[RunnerState, ...] = ()
    strangers: tuple[UnmanagedProcess, ...] = ()
    patience: Patience = Patience()
    has_turns: bool = True
    durations: Callable[[str], Sequence[float]] = unknown
    busy: Callable[[RunnerState], str] = idle
    permissions: tuple[OpenRequest, ...] = ()
    found: tuple[Matter, ...] = ()

    def loop(self, participant: str) -> RunnerState | None:
        """The loop of a participant (an id as the Snapshot shows it), None where there is none."""
        return next((each for each in self.loops if safe_id(each.participant) == participant), None)

    def strangers_of(self, participant: str) -> tuple[UnmanagedProcess, ...]:
        """The processes of others that act for a participant."""
        return tuple(each for each in self.strangers if safe_id(each.participant) == participant)

    def participant(self, id: str) -> Participant | None:
        """The participant of this id."""
        return next((each for each in self.snapshot.participants if each.id == id), None)

    def agents_waited_for(self) -> Iterator[Turn]:
        """The turns of participants who are not known to be people."""
        for turn in self.snapshot.turns:
            known = self.participant(turn.participant)
            if known is None or known.kind != "human":
                yield turn

    def quiet(self, participant: str, least: float | None = None) -> float:
        """Seconds after which this participant's turn without progress is a stall."""
        return self.patience.without_progress(self.durations(participant), least)

    def stalled(
        self,
        participant: str,
        since: datetime | None,
        least: float | None = None,
        times: float = 1.0,
    ) -> bool:
        """Whether a participant's turn has been without progress since then for too long.

        Args:
            participant: whose turn it is.
            since: the last progress.
            least: seconds that are always granted; `Patience.quiet` by default.
            times: how many times as long it may be.
        """
        granted = self.patience.scaled(self.patience.quiet if least is None else least)
        if not self.clock.over(since, times * granted):
            return False  # however long its turns take: no need to work that out
        return self.clock.over(since, times * self.quiet(participant, least))

    def caused(self, participant: str) -> bool:
        """Whether a cause about this participant's loop was found."""
        return any(each.about.participant == participant for each in self.found)

    def is_kept_outside(self, participant: str) -> bool:
        """Whether this participant's agent cannot work at all: its login, limit, service or budget.

        What else is open in its turn is then no need of its own: it is ordinary work for later.
        """
        from acp_core.agents.failures import FailureClass  # late: most collaborations are well

        loop = self.loop(participant)
        if loop is None:
            return False
        return loop.shown.capped or loop.shown.failure not in ("", FailureClass.AGENT.value)


def mark(texts: Iterable[str]) -> str:
    """What a key is about, in few characters: another one for other texts.

    The same in whatever order they stand, and on whichever lines of a document.
    """
    import hashlib  # late: most collaborations are well

    plain = sorted(_LINE.sub("", text) for text in texts)
    return hashlib.sha256("\0".join(plain).encode(errors="surrogatepass")).hexdigest()[:12]


def _median(numbers: Sequence[float]) -> float:
    """The middle one; of two the lower."""
    return sorted(numbers)[(len(numbers) - 1) // 2]


def safe_id(participant: str) -> str:
    """An id as Snapshots show it."""
    return clean_name(participant, _ID) or "?"


def latest(*moments: datetime | None) -> datetime | None:
    """The latest of the moments that are known."""
    return max((each for each in moments if each is not None), default=None)
