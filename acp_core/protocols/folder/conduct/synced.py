"""``acp sync`` in the background: one process for all folders of a store that are wanted here.

It goes on for as long as loops run in one of them, or somebody looks at it (`following`). One look at
the store serves all folders; a folder is only read and compared where the store, or a file in it,
has news.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from acp_core.agents import background
from acp_core.files import atomic, claims
from acp_core.files.locked import LogError, locked
from acp_core.files.watch import Report, Watcher
from acp_core.model.errors import AcpError, Refused
from acp_core.protocols.folder.conduct import syncing
from acp_core.protocols.folder.conduct.syncing import process_for
from acp_core.protocols.folder.read import following
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.write import handover, shared
from acp_core.stores import address as stores_address
from acp_core.stores import base as manifests
from acp_core.stores import hosts
from acp_core.stores.address import Address
from acp_core.stores.engine import Engine
from acp_core.stores.hosts import BEAT, open_engine, open_news

_ALONE = 30.0  # seconds without a want after which a folder is let go
_EMPTY = 5.0  # seconds without a folder after which the process ends
_WANTS = 10.0  # seconds between two looks at what is wanted, where nothing new is
_GLANCE = 10.0  # seconds between two looks at the files of a folder of which no change was told
_TELL = 10.0  # seconds between two looks at who acts here
_SOON = 0.2  # seconds after a change in what is mirrored: several files change at once
_QUIET = 2.1  # seconds after a change in a folder in which another one may follow
_NEWS = 5.0  # seconds for which news are waited for at once
_STARTED = 20.0  # seconds for which another process may need to take a folder up


class Folder:
    """A folder that this process keeps as its store has it.

    Args:
        path: the folder.
        address: of the collaboration.
        engine: its store.
    """

    def __init__(self, path: str, address: Address, engine: Engine) -> None:
        self.path, self.id, self.engine = path, address.id, engine
        self.process = process_for(path, address, engine, as_json=False, quiet=True)
        self._places = (Path(path), Path(path, handover.OUT))
        self.wanted_at = time.monotonic()
        self.tip = ""
        self._due: float | None = 0.0
        self._touched = True
        self._files: tuple[tuple[str, int, int], ...] = ()
        self._names: tuple[str, ...] = ()

    def changed(self) -> None:
        """Something in the folder may have changed, or somebody hands something over."""
        self._touched = True

    def _look_for_changes(self) -> None:
        """Publish what changed, once it is quiet."""
        if self.process.is_mirror:
            soon = time.monotonic() + _SOON
            self._due = soon if self._due is None else min(self._due, soon)
            return
        found = self._stamps()
        if found != self._files:
            self._files = found
            self.process.is_quiet()
            now = time.monotonic()
            if self._due is None or self._due > now:  # else news of the store come first
                self._due = now + _QUIET

    def news(self) -> None:
        """The store may have news."""
        self.process.look_soon()
        self._due = 0.0

    def step(self, glance: bool) -> float:
        """Do what is due; when there is something to do again.

        Args:
            glance: look at the files even where no change was told.
        """
        if self._touched or glance:
            self._touched = False
            if self.process.serve():
                self.tip = self.process.tip
            self._look_for_changes()
        now = time.monotonic()
        if self._due is not None and now >= self._due:
            self.process.look_soon()
            self.process.step()
            self._due = self.process.next_look if self.process.failed else None
            self.tip = self.process.tip
            base = manifests.read_base(self.path)
            self._names = (
                records.LOG_FILE,
                *records.DOCUMENTS,
                shared.README,
                *(base.files if base else ()),
            )
            before, self._files = self._files, self._stamps()
            is_quiet = self.process.is_quiet()
            if self._due is None and (before != self._files or not is_quiet):
                self._due = time.monotonic() + _QUIET  # what came, or what somebody writes just now
        return self._due if self._due is not None else math.inf

    def _stamps(self) -> tuple[tuple[str, int, int], ...]:
        found = []
        for name in dict.fromkeys(self._names):
            with contextlib.suppress(OSError, ValueError):
                seen = os.stat(os.path.join(self.path, name))
                found.append((name, seen.st_mtime_ns, seen.st_size))
        return tuple(found)

    def watched(self) -> Iterable[Path]:
        """The folders in which a change matters."""
        return self.process.watched() if self.process.is_mirror else self._places


class Store:
    """All wanted folders of one store.

    Args:
        address: of the store.
    """

    def __init__(self, address: Address) -> None:
        self.address = address._replace(id="")
        self._place = syncing.place_of(address)
        self._folders: dict[str, Folder] = {}
        self._held: dict[str, contextlib.ExitStack] = {}
        self._retry: dict[
            str, float
        ] = {}  # when a folder that could not be taken up is tried again
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._heard: set[str] = set()  # ids of which the store has news
        self._touched: set[Path] = set()
        self._guard = threading.Lock()
        self._tips: dict[str, str] = {}
        self._watched: frozenset[Path] = frozenset()
        self._wants_at = self._told_at = self._glance_at = float("-inf")
        self._beat_at = time.monotonic()
        self._seen: int | None = None
        self._over: set[str] = set()  # mirrored collaborations that have ended

    def run(self, ready: Callable[[], object]) -> None:
        """Go on until nothing is wanted any more.

        Args:
            ready: called once the folders that are wanted now are taken up.
        """
        watcher = Watcher(self._report)
        news = threading.Thread(target=self._listen, name="acp-news", daemon=True)
        last = time.monotonic()
        try:
            self._take_up()
            ready()
            news.start()
            while True:
                self._watch(watcher)
                self._take_in()
                now = time.monotonic()
                glance = now >= self._glance_at
                if glance:
                    self._glance_at = now + _GLANCE
                again = [each.step(glance) for each in list(self._folders.values())]
                self._tips = {each.id: each.tip for each in self._folders.values()}
                if self._folders:
                    last = now
                elif now >= last + _EMPTY:
                    return
                self._say()
                soonest = min([*again, self._glance_at, self._wants_at + _WANTS])
                self._wake.wait(max(0.0, soonest - time.monotonic()))
                self._take_up()
        finally:
            self._ended.set()
            watcher.close(patience=0)
            for each in list(self._folders):
                self._let_go(each)

    # in other threads

    def _report(self, report: Report) -> None:
        with self._guard:
            self._touched |= report.changed
        self._wake.set()

    def _listen(self) -> None:
        """Wait for news of the store, for ever."""
        pause = 1.0
        with contextlib.closing(open_news(self.address, hosts.this_host())) as news:
            while not self._ended.is_set():
                try:
                    if time.monotonic() >= self._beat_at + BEAT:
                        self._beat_at = time.monotonic()
                        here = [(e.id, e.process) for e in list(self._folders.values())]
                        playing = [id for id, each in here if each.plays or each.conducts]
                        news.beat(hosts.this_host(), frozenset(playing))
                    found = news.wait(lambda: self._tips, _NEWS)
                    pause = 1.0
                except (AcpError, OSError):  # who looks for a folder says what is wrong
                    found = frozenset(each.id for each in list(self._folders.values()))
                    self._ended.wait(pause)
                    pause = min(2 * pause, 60.0)
                if found:
                    with self._guard:
                        self._heard |= found
                    self._wake.set()

    # in its own

    def _take_in(self) -> None:
        """Give every folder what was heard of it."""
        self._wake.clear()
        with self._guard:
            heard, self._heard = self._heard, set()
            touched, self._touched = self._touched, set()
        for each in self._folders.values():
            if each.id in heard:
                each.news()
            if not touched.isdisjoint(each.watched()):
                each.changed()

    def _watch(self, watcher: Watcher) -> None:
        wanted = frozenset(
            {self._place, *(p for each in self._folders.values() for p in each.watched())}
        )
        if wanted != self._watched:
            self._watched = wanted
            watcher.replace(wanted)

    def _take_up(self) -> None:
        """Look at what is wanted: take up what is new, let go of what nobody wants any more."""
        now = time.monotonic()
        with contextlib.suppress(OSError):
            seen = os.stat(self._place).st_mtime_ns
            if seen == self._seen and now < self._wants_at + _WANTS:
                return
            self._seen = seen
        self._wants_at = now
        for file in sorted(self._place.glob("*.want")):
            path, held = syncing.wanted(file)
            known = self._folders.get(path)
            if known is None and not path:
                continue
            looped = not held and (
                any(each.held for each in claims.listed(path, "loops"))
                or self._conducts(path, known)
            )
            if known is not None and (held or looped):
                known.wanted_at = now
            elif known is None and (held or looped or self._is_new(file)):
                self._begin(path, now)
        for path, each in list(self._folders.items()):
            if now >= each.wanted_at + _ALONE or not stores_address.is_shared(path):
                self._let_go(path)

    def _conducts(self, path: str, known: Folder | None) -> bool:
        """Whether this host conducts what a mirror shows, and that goes on, as far as is known."""
        if not stores_address.pinned_mark(path):
            return False
        if known is not None and not known.process.conducts:
            self._over.add(path)
        return path not in self._over

    def _is_new(self, file: Path) -> bool:
        """Whether it was noted just now, by somebody who has yet to begin."""
        with contextlib.suppress(OSError):
            return abs(time.time() - file.stat().st_mtime) < _ALONE
        return False

    def _begin(self, path: str, now: float) -> None:
        if now < self._retry.get(path, 0.0) or not stores_address.is_shared(path):
            return
        stack = contextlib.ExitStack()
        try:
            address = stores_address.pinned_address(path)
            if address._replace(id="") != self.address:
                return
            stack.enter_context(syncing.alone(path))
            engine = stack.enter_context(open_engine(address))
        except (Refused, OSError):
            stack.close()
            self._retry[path] = now + _GLANCE  # `acp sync` in a terminal does it, for one
            return
        self._folders[path], self._held[path] = Folder(path, address, engine), stack

    def _let_go(self, path: str) -> None:
        self._folders.pop(path)
        self._held.pop(path).close()

    def _say(self) -> None:
        """Tell the other hosts who acts here, where that changed."""
        now = time.monotonic()
        if now < self._told_at + _TELL:
            return
        self._told_at = now
        for each in self._folders.values():
            with contextlib.suppress(Refused, OSError):
                each.process.tell()


def main(folder: str) -> int:
    """Keep a folder and its store the same while that is wanted; the exit code."""

    def work(ready: background.Ready) -> int:
        if not stores_address.is_shared(folder):
            raise Refused(f"{folder} is not shared")
        address = stores_address.pinned_address(folder)
        syncing.note(folder, address, hold=False)
        lock = syncing.place_of(address) / "process.lock"
        with contextlib.suppress(FileExistsError):
            atomic.create(lock, b"")
        until = time.monotonic() + _STARTED
        while True:
            with contextlib.suppress(LogError), locked(str(lock), timeout=0.1):
                Store(address).run(lambda: _taken_up(folder, ready))
                return 0
            if following.is_synced(folder):  # by the process that has the lock
                ready()
                return 0
            if time.monotonic() >= until:
                raise Refused(f"no process synchronizes {folder}")

    return background.run(work, Refused, OSError)


def _taken_up(folder: str, ready: background.Ready) -> None:
    if not following.is_synced(folder):
        raise Refused(f"another process uses {folder}: it cannot be synchronized")
    ready()


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
