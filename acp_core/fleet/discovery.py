"""Which collaborations a fleet has: found under its paths, listed behind a link, or running here.

Looking for them goes on in a worker; what is found is told through the mailbox. What runs here may be
somewhere that no given path leads to, such as a person's agents. A list, such as all of a store, is
followed in a thread of its own: it tells of many collaborations in rows, which cost nothing more; one of
them becomes a member of the fleet when somebody looks at it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from acp_core.fleet.member import Member
from acp_core.fleet.workers import FIRST, Lane, Mail, Urgency
from acp_core.model import Snapshot
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.person.paths import key_of
from acp_core.protocols import registry
from acp_core.protocols.contract import Rows
from acp_core.protocols.discovery import Changes, DiscoveredCollaboration, Explorer
from acp_core.protocols.locations import is_list, listing_of

SECONDS_BETWEEN_EXPLORING = 0.1  # s between two looks for new collaborations

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
            self._mail.later("explore", SECONDS_BETWEEN_EXPLORING, self._explore_entries)

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


SECONDS_BETWEEN_RUNNING = 0.5  # seconds between two looks

_log = logging.getLogger(__name__)


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
            self._mail.later("standing", SECONDS_BETWEEN_RUNNING, self.discover)

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


LOOK = 5.0  # seconds for which news are waited for at once

_AFTER = 1 << 40  # more than there are members

_PAUSE, _LONGEST = 1.0, 60.0  # seconds between two attempts at a list that cannot be read


class Unread(NamedTuple):
    """A list that could not be read: why, and the exit code of a command that needs it."""

    reason: str
    code: int = 2


class Calls(NamedTuple):
    """What a fleet does with what lists tell: see its methods of these names."""

    appear: Callable[[Iterable[tuple[str, DiscoveredCollaboration | None]]], None]
    vanish: Callable[[Iterable[str]], None]
    changed: Callable[[Member], None]
    show: Callable[[str, Snapshot], None]
    make: Callable[[str], Member]


def sorted_out(links: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Links to single collaborations, and links to lists, each once."""
    known = tuple(dict.fromkeys(links))
    lists = tuple(link for link in known if is_list(link))
    return tuple(link for link in known if link not in lists), lists


class Listings:
    """The lists of a fleet. For the event loop's thread, or the only one.

    Args:
        links: of the lists.
        mail: through which the event loop's thread is told.
        clock: the time of day.
        members: of the fleet, by key.
        calls: what the fleet does.
    """

    def __init__(
        self,
        links: Sequence[str],
        mail: Mail,
        clock: Callable[[], datetime],
        members: Mapping[str, Member],
        calls: Calls,
    ) -> None:
        self.links = tuple(links)
        self.problems: dict[str, Unread] = {}
        self._mail = mail
        self._clock = clock
        self._members = members
        self._calls = calls
        self._rows: dict[str, int] = {}  # what lists alone tell of: its place among the rows
        self._here: set[str] = set()  # folders of which a list told
        self._asked: dict[str, Member] = {}  # those of which something was asked all the same
        self._unread: set[str] = set()
        self._notes: dict[str, str] = {}
        self._closed = threading.Event()

    def __contains__(self, key: object) -> bool:
        """Whether a list alone tells of it."""
        return key in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    @property
    def complete(self) -> bool:
        """Whether each was read, or could not be."""
        return not self._unread

    @property
    def notes(self) -> Iterable[str]:
        """What is to be known of them."""
        yield from filter(None, self._notes.values())
        for link, problem in self.problems.items():
            yield f"{clean_line(link)}: {problem.reason}"

    @property
    def asked(self) -> Sequence[Member]:
        """The members of rows of which something was asked."""
        return tuple(self._asked.values())

    def begin(self) -> None:
        """Follow all of them, from now on."""
        self._rows.clear()
        self._unread = set(self.links)
        self._closed = threading.Event()
        for link in self.links:
            given = (link, self._closed)
            threading.Thread(target=self._follow, args=given, name="acp-list", daemon=True).start()

    def end(self) -> None:
        """Follow none of them any more."""
        self._closed.set()

    def read(self) -> None:
        """Read each of them once, in this thread."""
        for link in self.links:
            listing = listing_of(link)
            if listing is None:
                continue
            try:
                more = True
                while more:
                    rows = listing.refresh(self._clock())
                    self._took(link, rows)
                    more = rows.more
            except (Refused, OSError) as error:
                self._failed(link, _unread(error))
            finally:
                listing.close()

    def folders(self) -> Sequence[Member]:
        """The members of which a list told, because a folder here holds them."""
        return [self._members[key] for key in sorted(self._here) if key in self._members]

    def order(self, key: str) -> int:
        """The place of a collaboration; rows come after members."""
        known = self._members.get(key)
        return known.order if known is not None else _AFTER + self._rows[key]

    def member(self, key: str) -> Member:
        """The member of a key; that of a row is read by nobody yet.

        Raises:
            KeyError: there is none.
        """
        if key not in self._rows:
            return self._members[key]
        if key not in self._asked:
            self._asked[key] = self._calls.make(key)
        return self._asked[key]

    def give(self, key: str) -> Member:
        """The same, for the fleet: it is no row any more."""
        member = self.member(key)
        self.drop(key)
        return member

    def drop(self, key: str) -> bool:
        """Forget a row; whether there was one."""
        self._asked.pop(key, None)
        return self._rows.pop(key, None) is not None

    def _took(self, link: str, rows: Rows) -> None:
        if not rows.more:
            self._unread.discard(link)
        self.problems.pop(link, None)
        self._notes[link] = rows.note
        self._calls.vanish(rows.gone)
        known = {member.real for member in self._members.values()} if rows.folders else set()
        new = [each for each in rows.folders if key_of(each) not in known]
        self._here.update(new)
        self._calls.appear((each, None) for each in new)
        for snapshot in rows.snapshots:
            member = self._members.get(snapshot.key)
            if member is not None:
                self._calls.changed(member)
            else:
                self._rows.setdefault(snapshot.key, len(self._rows))
                self._calls.show(snapshot.key, snapshot)

    def _failed(self, link: str, problem: Unread) -> None:
        self._unread.discard(link)
        self.problems[link] = problem

    def _follow(self, link: str, closed: threading.Event) -> None:
        listing = listing_of(link)
        pause = _PAUSE
        while listing is not None and not closed.is_set():
            try:
                rows = listing.refresh(self._clock())
                self._mail.post(partial(self._took, link, rows))
                pause, began = _PAUSE, time.monotonic()
                if not rows.more:
                    listing.wait(LOOK)
                    closed.wait(
                        max(0.0, 0.05 - (time.monotonic() - began))
                    )  # a flood is one change
            except (Refused, OSError) as error:
                self._mail.post(partial(self._failed, link, _unread(error)))
                closed.wait(pause)
                pause = min(2 * pause, _LONGEST)
            except Exception as error:  # a fault in a protocol's code must not end the fleet
                _log.info("listing %s failed", link, exc_info=True)
                what = clean_line(f"{type(error).__name__}: {error}")
                problem = Unread(f"listing failed because of a bug in acp: {what}")
                self._mail.post(partial(self._failed, link, problem))
                closed.wait(_LONGEST)
        if listing is not None:
            listing.close()


def _unread(error: Refused | OSError) -> Unread:
    code = error.code if isinstance(error, Refused) else 2
    return Unread(clean_line(str(error)), code)
