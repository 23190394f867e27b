"""Learns from a fleet's collaborations how long things take, in the workers and at leisure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from acp_core.fleet.member import Member
from acp_core.fleet.workers import Lane, Mail, Urgency
from acp_core.history.forecast import Forecast, cases_of
from acp_core.model import Snapshot

if TYPE_CHECKING:
    from acp_core.history.durations import Durations

_log = logging.getLogger(__name__)

EACH = 0.0002  # s for each collaboration: what was read is put in order and drawn before
REST = 2.0  # s after a change until it is learned from: by then most floods are over


def late_durations(keep: bool) -> Durations:
    """A memory of how long things took, imported when it is wanted: what was read is shown before."""
    from acp_core.history.durations import Durations

    return Durations(keep=keep)


class Forecasting:
    """Keeps `forecast` up to date while a fleet is followed.

    Each collaboration is learned from in its own lane, once after each change. The methods are
    for the event loop's thread; `forecast` may be read from anywhere.

    Args:
        mail: of the fleet.
        lane: in which what was learned is put together and kept.
        members: by key.
        make: makes the memory; called in the lane, for it may read a file.
    """

    def __init__(
        self,
        mail: Mail,
        lane: Lane,
        members: Mapping[str, Member],
        make: Callable[[], Durations],
    ) -> None:
        self.forecast = Forecast()
        self._mail = mail
        self._lane = lane
        self._members = members
        self._make = make
        self._durations: Durations | None = None
        self._changed: set[str] = set()
        self._begun = self._ready = False
        self._learning = 0  # collaborations that are being learned from
        self._concluding = False

    @property
    def is_up_to_date(self) -> bool:
        """Whether `forecast` knows all that can be learned from what was read."""
        return self._ready and not (self._changed or self._learning or self._concluding)

    def begin(self) -> None:
        """Everything was read: begin to learn from it."""
        if not self._begun:
            self._begun = True
            self._changed.update(self._members)
            pause = EACH * len(self._members)
            self._mail.later(
                "forecast", pause, partial(self._lane.submit, self._open, Urgency.IDLE)
            )

    def changed(self, key: str) -> None:
        """There is a new Snapshot of a collaboration."""
        self._changed.add(key)
        self._learn_soon()

    def _learn_soon(self) -> None:
        if self._ready and not self._learning and not self._mail.waits("forecast"):
            self._mail.later("forecast", REST, self._learn)

    def _learn(self) -> None:
        keys, self._changed = self._changed, set()
        for key in keys:
            if key in self._members:
                self._learning += 1
                member = self._members[key]
                learning = member.lane.submit(partial(self._learn_from, member), Urgency.IDLE)
                learning.add_done_callback(lambda _: self._mail.post(self._learned))

    def _learned(self) -> None:
        self._learning -= 1
        if not self._learning:
            self._concluding = True
            concluding = self._lane.submit(self._conclude, Urgency.IDLE)
            concluding.add_done_callback(lambda _: self._mail.post(self._concluded))
            if self._changed:
                self._learn_soon()

    def _concluded(self) -> None:
        self._concluding = False

    def _opened(self) -> None:
        self._ready = True
        self._learn_soon()

    # in the workers

    def _open(self) -> None:
        self._durations = self._make()
        self.forecast = self._durations.forecast()
        self._durations.read_recordings()
        self._mail.post(self._opened)

    def _learn_from(self, member: Member) -> None:
        if self._durations is not None and member.snapshot is not None:
            learn_from(self._durations, member, member.snapshot)

    def _conclude(self) -> None:
        if self._durations is not None and self._durations.save():
            self.forecast = self._durations.forecast()


def learn_from(durations: Durations, member: Member, snapshot: Snapshot) -> None:
    """Learn from one collaboration where something in it is new; in its lane."""
    try:
        if durations.wants(snapshot):
            known = member.cases  # where it was read by another process, or let go
            durations.learn(snapshot, cases_of(*member.past()) if known is None else known)
            member.cases = None
    except Exception:  # a fault in a protocol's code must not end the fleet
        _log.info("nothing was learned of %s", member.key, exc_info=True)


def learn_once(members: Iterable[Member], make: Callable[[], Durations]) -> Forecast:
    """What is known after some collaborations were read once; slow."""
    durations = make()
    durations.read_recordings()
    for member in members:
        if member.snapshot is not None and durations.wants(member.snapshot):
            member.lane.submit(
                partial(learn_from, durations, member, member.snapshot), Urgency.CHANGE
            ).result()
    durations.save()
    return durations.forecast()
