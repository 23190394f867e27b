"""When collaborations are looked at although nobody said that something changed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from acp_core.fleet.mailbox import Mail
from acp_core.fleet.member import Member

NET = 60.0  # s between two looks at everything, in case that a change passed unseen
LEAST, EACH = 10.0, 0.2  # s between two looks at what is known: at least, and for each of them


class RecheckSchedule:
    """When everything is read again, so that a change that nobody signalled is seen too.

    Args:
        whole: seconds between two looks at everything, for new collaborations too. What is
            known already is looked at sooner where it is little.
    """

    def __init__(self, whole: float) -> None:
        self._whole = whole
        self._last_whole = time.monotonic()

    def begin(self) -> None:
        """Everything is looked at now."""
        self._last_whole = time.monotonic()

    def pause(self, members: int) -> float:
        """Seconds until the next look."""
        return min(self._whole, max(LEAST, EACH * members))

    def is_whole(self) -> bool:
        """Whether it is time to look at everything, and not only at what is known."""
        due = time.monotonic() >= self._last_whole + self._whole
        if due:
            self.begin()
        return due


class Rechecks:
    """Looks at everything now and then. For the event loop's thread.

    Args:
        schedule: when.
        mail: of the fleet.
        members: of the fleet, by key.
        look: has what changed of some members read.
        find: has what is new found, and looks at the participants' programs.
    """

    def __init__(
        self,
        schedule: RecheckSchedule,
        mail: Mail,
        members: Mapping[str, Member],
        look: Callable[[Iterable[Member]], None],
        find: Callable[[], None],
    ) -> None:
        self._schedule = schedule
        self._mail = mail
        self._members = members
        self._look = look
        self._find = find

    def begin(self) -> None:
        """Everything is looked at now."""
        self._schedule.begin()
        self._later()

    def everything(self) -> None:
        """Look at everything: changes may have passed unseen."""
        self._find()
        self._known()

    def _known(self) -> None:
        self._look(self._members.values())

    def _due(self) -> None:
        if self._schedule.is_whole():
            self.everything()
        else:
            self._known()
        self._later()

    def _later(self) -> None:
        self._mail.later("net", self._schedule.pause(len(self._members)), self._due)
