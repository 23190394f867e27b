"""Which folders are watched, and whom a change in one of them concerns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from acp_core.files.watch import Watcher
from acp_core.fleet.mailbox import Mail
from acp_core.fleet.member import Member

PACE = 0.25  # s between two replacements of the watcher's list: at least,
EACH = 0.0004  # and for each folder in it: all are watched, and all collaborations checked, anew


class WatchList:
    """The folders of all members, and others. For the event loop's thread.

    Args:
        mail: of the fleet.
        others: tells further folders to watch.
    """

    def __init__(self, mail: Mail, others: Callable[[], Iterable[Path]]) -> None:
        self._mail = mail
        self._others = others
        self._watcher: Watcher | None = None
        self._watched: frozenset[Path] = frozenset()
        self._members: dict[Path, list[Member]] = {}
        self._unclaimed: set[Path] = set()  # a change was heard there, and concerned nobody yet
        self._stale = False

    @property
    def note(self) -> str:
        """What the watcher has to say; "" while all is well."""
        return self._watcher.note if self._watcher else ""

    def begin(self, watcher: Watcher | None) -> None:
        """Watch with this from now on, or no longer."""
        self._watcher = watcher
        self._watched, self._stale = frozenset(), True
        self._unclaimed.clear()

    def claim(self, member: Member) -> bool:
        """Let changes in the folders that a member watches now concern it.

        Returns:
            Whether something changed in one of them before it was known whose it is. Then the
            member must be read (again): nobody will say so another time.
        """
        before, member.listed = member.listed, member.watched
        for folder in before - member.listed:
            self._leave(folder, member)
        fresh = member.listed - before
        for folder in fresh:
            self._members.setdefault(folder, []).append(member)
        self._stale = self._stale or before != member.listed
        missed = not fresh.isdisjoint(self._unclaimed)
        self._unclaimed -= fresh
        return missed

    def release(self, member: Member) -> None:
        """Nothing concerns this member any more."""
        for folder in member.listed:
            self._leave(folder, member)
        member.listed, self._stale = frozenset(), True

    def change(self) -> None:
        """The others may be other ones."""
        self._stale = True

    def settle(self) -> None:
        """Watch what is to be watched now, where that is something else than before."""
        if not self._stale or self._watcher is None or self._mail.waits("rewatch"):
            return
        self._stale = False
        wanted = frozenset(self._members).union(self._others())
        if wanted != self._watched:
            self._watched = wanted
            self._watcher.replace(wanted)
            self._mail.later("rewatch", max(PACE, EACH * len(wanted)), lambda: None)

    def concerned(self, changed: Iterable[Path]) -> Iterator[Member]:
        """The members that watch one of these folders, once for each."""
        for folder in changed:
            members = self._members.get(folder)
            if members is None:
                self._unclaimed.add(folder)
            else:
                yield from members

    def _leave(self, folder: Path, member: Member) -> None:
        members = self._members[folder]
        members.remove(member)
        if not members:
            del self._members[folder]
