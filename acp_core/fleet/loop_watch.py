"""Notices that participants' loops changed, for a fleet: their files, and whether they live.

A program that prints much touches the files of its loop all the time: they are looked at a few
times a second at most, and read only where they say something else than before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path

from acp_core.diagnosis.observer import Observer
from acp_core.files.watch import Report
from acp_core.fleet.mailbox import Mail
from acp_core.fleet.workers import Lane, Urgency

PACE = 0.25  # seconds between two looks at the loops' state files
PULSE = 1.0  # seconds between two looks whether their processes live


class LoopWatch:
    """Says whose loops changed. All but the looks themselves happens in the event loop's thread.

    Args:
        observer: Looks at the loops.
        lane: In which it does so.
        mail: Has functions run in the event loop's thread, at once or later.
        changed: Is told the names of collaborations whose loops changed, in that thread; none
            where only other folders are to be watched than those that were listed.
    """

    def __init__(
        self,
        observer: Observer,
        lane: Lane,
        mail: Mail,
        changed: Callable[[frozenset[str]], None],
    ) -> None:
        self._observer, self._lane = observer, lane
        self._mail, self._changed = mail, changed
        self._waiting = self._looking = False
        self._names: frozenset[str] = frozenset()
        self.folders: frozenset[Path] = frozenset()

    def begin(self) -> None:
        """Look for the first time, and go on looking."""
        self._waiting = self._looking = False
        self.check_soon()
        self._mail.later("pulse", PULSE, self._feel_pulse)

    def listed(self, names: Iterable[str]) -> frozenset[Path]:
        """The folders to be watched for these collaborations."""
        self._names = frozenset(names)
        self.folders = self._observer.folders(self._names)
        return self.folders

    def heard(self, report: Report) -> None:
        """Something changed in some folders."""
        if not self.folders.isdisjoint(report.changed):
            self.check_soon()

    def check_soon(self) -> None:
        """Look at the loops, now or as soon as that makes sense."""
        if not self._waiting:
            self._waiting = True
            self._mail.later("loops", PACE, self._check)

    def _check(self) -> None:
        if self._looking:  # a look takes long: another one after it
            self._mail.later("loops", PACE, self._check)
            return
        self._waiting, self._looking = False, True
        self._lane.submit(self._observer.refresh, Urgency.CHANGE).add_done_callback(
            lambda done: self._mail.post(lambda: self._checked(done))
        )

    def _checked(self, done: Future[frozenset[str]]) -> None:
        self._looking = False
        if done.cancelled() or done.exception() is not None:
            return
        if done.result() or self._observer.folders(self._names) != self.folders:
            self._changed(done.result())

    def _feel_pulse(self) -> None:
        if self._observer.stopped():
            self.check_soon()
        self._mail.later("pulse", PULSE, self._feel_pulse)
