"""Which folders are watched, and whom a change in one of them concerns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path

from acp_core.files.watch import Watcher
from acp_core.fleet.mailbox import Mail
from acp_core.fleet.member import Member

PACE = 0.25  # s between two replacements of the list


class WatchList:
    """The folders of all members, and others. For the event loop's thread.

    Args:
        mail: of the fleet.
        others: further folders to watch, given the members.
    """

    def __init__(self, mail: Mail, others: Callable[[Collection[Member]], Iterable[Path]]) -> None:
        self._mail = mail
        self._others = others
        self._watcher: Watcher | None = None
        self._watched: frozenset[Path] = frozenset()
        self._by_folder: dict[Path, list[Member]] = {}
        self._stale = False

    @property
    def note(self) -> str:
        """What the watcher has to say; "" while all is well."""
        return self._watcher.note if self._watcher else ""

    def begin(self, watcher: Watcher | None) -> None:
        """Watch with this from now on, or no longer."""
        self._watcher = watcher
        self._watched, self._stale = frozenset(), True

    def change(self) -> None:
        """It may have to be another list."""
        self._stale = True

    def settle(self, members: Collection[Member]) -> None:
        """Watch what is to be watched now, where that is something else than before."""
        if not self._stale or self._watcher is None or self._mail.waits("rewatch"):
            return
        self._stale = False
        by_folder: dict[Path, list[Member]] = defaultdict(list)
        for member in members:
            member.listed = member.watched
            for folder in member.listed:
                by_folder[folder].append(member)
        self._by_folder = dict(by_folder)
        wanted = frozenset(by_folder).union(self._others(members))
        if wanted != self._watched:
            self._watched = wanted
            self._watcher.replace(wanted)
            self._mail.later("rewatch", PACE, lambda: None)

    def concerned(self, changed: Iterable[Path]) -> Iterator[Member]:
        """The members that have one of these folders, once for each."""
        for folder in changed:
            yield from self._by_folder.get(folder, ())
