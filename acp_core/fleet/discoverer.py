"""Looking for collaborations, in a worker; what is found is told through the mailbox."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from acp_core.fleet.mailbox import Mail
from acp_core.fleet.outbox import FIRST
from acp_core.fleet.workers import Lane, Urgency
from acp_core.protocols.discovery import Changes, DiscoveredCollaboration, Explorer

PACE = 0.1  # s between two looks for new collaborations
LISTENING = 2_000  # folders at most that are watched only because a collaboration may appear

Appear = Callable[[Iterable[tuple[str, DiscoveredCollaboration | None]]], None]
Explored = Callable[[Explorer, Changes, Sequence[Path]], None]


class Discoverer:
    """Finds what is below ``paths``, and later what appeared there and vanished.

    Args:
        paths: Where to look.
        lane: In which it looks.
        mail: Through which it tells the event loop's thread.
        appear: Told of collaborations while the first look goes on.
        explored: Told after each look what it changed, and which folders to listen to.
    """

    def __init__(
        self, paths: Sequence[Path], lane: Lane, mail: Mail, appear: Appear, explored: Explored
    ) -> None:
        self._paths = paths
        self._lane = lane
        self._mail = mail
        self._appear = appear
        self._explored = explored
        self._explorer: Explorer | None = None
        self._entries: set[Path] = set()

    def begin(self, known: Callable[[], Iterable[str]]) -> None:
        """Look for the first time; ``known`` are collaborations that it found before."""
        self._send_out(partial(self._discover, known), Urgency.CHANGE)

    def again(self, entries: set[Path] | None, urgency: Urgency) -> None:
        """Look for what appeared and vanished with ``entries``; None: everywhere."""
        self._send_out(partial(self._explore, entries), urgency)

    def noticed(self, entries: Iterable[Path]) -> None:
        """Look for what appeared and vanished with ``entries``, after those noticed just before."""
        self._entries.update(entries)
        if not self._mail.waits("explore"):
            self._explore_entries()

    def _explore_entries(self) -> None:
        entries, self._entries = self._entries, set()
        if entries:
            self.again(entries, Urgency.CHANGE)
            self._mail.later("explore", PACE, self._explore_entries)

    def _send_out(self, looking: Callable[[], None], urgency: Urgency) -> None:
        """Look in a worker; a fault there is raised by `Fleet.changes`."""

        def ended(done: Future[None]) -> None:
            if not done.cancelled() and done.exception() is not None:
                self._mail.post(done.result)

        self._lane.submit(looking, urgency).add_done_callback(ended)

    def _discover(self, known: Callable[[], Iterable[str]]) -> None:
        self._explorer = explorer = Explorer(self._paths)
        some: list[tuple[str, DiscoveredCollaboration | None]] = []
        for found in explorer.explore():
            some.append((found.key, found))
            if len(some) == FIRST:
                self._mail.post(partial(self._appear, some))
                some = []
        self._mail.post(partial(self._appear, some))
        keys = {found.key for found in explorer.discovery.found}
        self._hand_over(explorer, Changes([], [key for key in known() if key not in keys]))

    def _explore(self, entries: set[Path] | None) -> None:
        explorer = self._explorer
        if explorer is not None:
            changes = (
                explorer.explore_again() if entries is None else explorer.explore_entries(entries)
            )
            self._hand_over(explorer, changes)

    def _hand_over(self, explorer: Explorer, changes: Changes) -> None:
        listening = (*explorer.roots, *explorer.explored_folders[:LISTENING])
        self._mail.post(partial(self._explored, explorer, changes, listening))
