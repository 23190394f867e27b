"""Collaborations that run here and that no given path leads to, such as a person's agents."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from acp_core.fleet.mailbox import Mail
from acp_core.fleet.workers import Lane, Urgency
from acp_core.protocols import registry
from acp_core.protocols.discovery import DiscoveredCollaboration

PACE = 0.5  # seconds between two looks

_log = logging.getLogger(__name__)

Appear = Callable[[Iterable[tuple[str, DiscoveredCollaboration | None]]], None]


class RunningDiscoverer:
    """Discovers what runs here, in a worker, and tells of those that appear; one that ends stays to be seen.

    Args:
        lane: In which it looks.
        mail: Through which it tells the event loop's thread.
        appear: Told of all that run.
        listen: Told when other folders are to be listened to than before.
    """

    def __init__(self, lane: Lane, mail: Mail, appear: Appear, listen: Callable[[], None]) -> None:
        self.folders: frozenset[Path] = frozenset()
        self._lane = lane
        self._mail = mail
        self._appear = appear
        self._listen = listen

    def discover(self) -> None:
        """Discover now."""
        self._lane.submit(self._discover, Urgency.CHANGE)

    def discover_soon(self) -> None:
        """Discover, but not more often than anybody can see."""
        if not self._mail.waits("standing"):
            self._mail.later("standing", PACE, self.discover)

    def _discover(self) -> None:
        keys, folders = find_running()
        self._mail.post(partial(self._publish, keys, folders))

    def _publish(self, keys: tuple[str, ...], folders: frozenset[Path]) -> None:
        self._appear((key, None) for key in keys)
        if folders != self.folders:
            self.folders = folders
            self._listen()


def find_running() -> tuple[tuple[str, ...], frozenset[Path]]:
    """Those that run here, and the folders in which a change may make it others."""
    keys: list[str] = []
    folders: set[Path] = set()
    for protocol in registry.installed():
        if protocol.running is None:
            continue
        try:
            found, watched = registry.load(protocol.running)()
        except Exception:  # a fault of one protocol must not hide the others
            _log.info("looking for what runs under %s failed", protocol.name, exc_info=True)
            continue
        keys += found
        folders |= watched
    return tuple(dict.fromkeys(keys)), frozenset(folders)
