"""Recording, at leisure, collaborations whose rows came from an earlier run and were never recorded.

A recorder is told of what is read. What was only recalled would have no recording to tell a later
edit by, if the run that read it ended before its recorder came to it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.fleet.mailbox import Mail
from acp_core.fleet.member import Member
from acp_core.fleet.workers import Lane, Urgency

if TYPE_CHECKING:
    from acp_core.history.recorder import Recorder

PAUSE = 0.2  # s between two that are read for it
_AT_ONCE = 50  # members that are asked about in one job


class LateRecording:
    """Goes once through the members of a fleet. For the event loop's thread.

    Args:
        mail: of the fleet.
        lane: in which they are looked at.
        members: by key.
        clock: the time of day.
        recorder: None where nothing is recorded.
    """

    def __init__(
        self,
        mail: Mail,
        lane: Lane,
        members: Mapping[str, Member],
        clock: Callable[[], datetime],
        recorder: Recorder | None,
    ) -> None:
        self._mail = mail
        self._lane = lane
        self._members = members
        self._clock = clock
        self._recorder = recorder
        self._left: deque[Member] = deque()

    def begin(self) -> None:
        """Everything has its row: see whether all of it is recorded."""
        if self._recorder is not None:
            self._left = deque(self._members.values())
            self._mail.later("record", PAUSE, self._go_on)

    def _go_on(self) -> None:
        self._lane.submit(self._some, Urgency.IDLE)

    def _some(self) -> None:
        """In a worker: up to the next one that has to be read."""
        for _ in range(min(_AT_ONCE, len(self._left))):
            if self._left.popleft().record_apart(self._clock()):
                break
        if self._left:
            self._mail.post(lambda: self._mail.later("record", PAUSE, self._go_on))
