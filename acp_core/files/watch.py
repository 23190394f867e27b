"""The dumb watcher: it says in which folders something changed, and nothing else.

One watcher serves the whole program, over an explicit list of folders, none of them
recursively. It reads no file and writes none. The kernel tells of changes: by inotify on Linux,
elsewhere by watchfiles. Where it does not (a network file system, a limit that is reached), names, sizes
and times are looked at again and again, and nothing is opened.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from acp_core.files import locked
from acp_core.files.changes import MODIFIED, Heard
from acp_core.model.text import clean_line

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify


FileStamp = tuple[int, int, int]  # modified (ns), size, inode
Listing = dict[str, FileStamp]

ITSELF = ""  # the name under which a folder that cannot be listed stands for itself


def scan_folder(folder: Path) -> Listing | None:
    """What a folder holds, without following links; None where there is no such folder."""
    found: Listing = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                try:
                    found[entry.name] = _stamp(entry.stat(follow_symlinks=False))
                except OSError:  # gone in between
                    continue
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        return _scan_unreadable(folder)
    return found


def _scan_unreadable(folder: Path) -> Listing | None:
    try:
        return {ITSELF: _stamp(folder.stat())}
    except OSError:
        return None


def _stamp(stat: os.stat_result) -> FileStamp:
    return (stat.st_mtime_ns, stat.st_size, stat.st_ino)


class Poller:
    """The last look at some folders, and what is different in the next."""

    def __init__(self) -> None:
        self._looks: dict[Path, Listing | None] = {}

    def __bool__(self) -> bool:
        return bool(self._looks)

    def replace(self, folders: Iterable[Path]) -> None:
        """Look at these folders from now on."""
        self._looks = {folder: scan_folder(folder) for folder in folders}

    def changes(self) -> tuple[set[Path], set[Path]]:
        """Look again: the folders in which something changed; what appeared or vanished."""
        changed: set[Path] = set()
        entries: set[Path] = set()
        for folder, before in self._looks.items():
            now = scan_folder(folder)
            if now == before:
                continue
            self._looks[folder] = now
            changed.add(folder)
            if (now is None) != (before is None):
                entries.add(folder)
            names = (now or {}).keys() ^ (before or {}).keys()
            entries.update(folder / name for name in names if name != ITSELF)
        return changed, entries


POLL = 0.3  # s between two looks where the kernel does not tell
CHECK = 2.0  # s between two checks that the folders are still those that are watched
SPACING = 0.5  # s at least between two re-armings
LONGEST = 8.0  # s between them at most, after repeated failures
SHARE = 20  # looking takes at most one part in so many of the time

Identity = tuple[int, int]  # device, inode


@dataclass(frozen=True, slots=True)
class Report:
    """What the watcher noticed.

    ``changed`` are watched folders in which something changed, ``entries`` the paths that
    appeared or vanished. ``rearmed``: the list of folders was armed anew, and since changes
    may have passed unseen before, every watched folder counts as changed.
    """

    changed: frozenset[Path]
    entries: frozenset[Path] = frozenset()
    rearmed: bool = False


class Watcher:
    """Tells of changes in a list of folders, which can be replaced at any time.

    ``report`` is called in the watcher's own thread and must be quick. Folders that do not
    exist are waited for; those that cannot be watched are looked at now and then.

    Args:
        report: Takes every `Report`.
        poll: True: never ask the kernel; False: always; None: not on shared file systems.
    """

    def __init__(self, report: Callable[[Report], None], *, poll: bool | None = None) -> None:
        self._report = report
        self._poll = poll
        self._wake = Wake()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._wanted: frozenset[Path] = frozenset()
        self._polled = self._trouble = ""
        # Below: touched by the watcher's thread only.
        self._armed: frozenset[Path] = frozenset()
        self._stale = False  # armed, but no longer what it was
        self._kernel: Kernel | None = None
        self._names: dict[str, tuple[Path, ...]] = {}
        self._identities: dict[Path, Identity | None] = {}
        self._poller = Poller()
        self._armed_at = float("-inf")
        self._next_poll = self._next_check = 0.0
        self._poll_every = POLL
        self._failures = 0

    @property
    def note(self) -> str:
        """What a reader should know of how changes are noticed; "" where all is well."""
        if self._trouble:
            return f"watching failed, retrying: {self._trouble}"
        return f"polling {self._polled}, every {self._poll_every:.1f} s" if self._polled else ""

    def replace(self, folders: Iterable[Path]) -> None:
        """Watch these folders (absolute paths) from now on; reported as ``rearmed`` once done."""
        self._wanted = frozenset(folders)
        self._wake.set()
        if self._thread is None and not self._closing:
            self._thread = threading.Thread(target=self._run, name="acp-watch", daemon=True)
            self._thread.start()

    def close(self, patience: float = 2.0) -> None:
        """Stop, and wait up to ``patience`` seconds for that; no new report comes after this."""
        self._closing = True
        self._wake.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(patience)

    # the watcher's thread

    def _run(self) -> None:
        self._wake.open()
        while True:
            self._wake.clear()  # before looking: what is asked for from here on wakes again
            if self._closing:
                break
            try:
                self._turn()
            except Exception as error:  # without the watcher nothing would be live any more
                self._trouble = clean_line(str(error)) or type(error).__name__
                self._fail()
        self._drop()
        self._wake.close()

    def _turn(self) -> None:
        if self._is_behind() and time.monotonic() >= self._next_arm():
            self._arm()
        self._listen()
        now = time.monotonic()
        if self._poller and now >= self._next_poll:
            self._poll_folders(now)
        if now >= self._next_check:
            self._check(now)

    def _is_behind(self) -> bool:
        return self._stale or self._armed != self._wanted

    def _next_arm(self) -> float:
        return self._armed_at + min(SPACING * 2.0**self._failures, LONGEST)

    def _arm(self) -> None:
        """Watch what is wanted; after this, what happened before counts as unseen."""
        self._drop()
        wanted = self._wanted
        self._stale = False
        kinds = locked.Kinds() if self._poll is None else None
        by_identity: dict[Identity, list[Path]] = defaultdict(list)
        polled: list[Path] = []
        shared: set[str] = set()
        self._identities = {folder: _identity(folder) for folder in wanted}
        for folder, identity in self._identities.items():
            if identity is None:
                continue
            kind = kinds.of(folder, identity[0]) if kinds else ""
            if locked.is_shared(kind):
                shared.add(kind)
            if self._poll or locked.is_shared(kind) or not _is_watchable(folder):
                polled.append(folder)
            else:
                by_identity[identity].append(folder)  # the kernel knows a folder by one name only
        self._names = {str(names[0]): tuple(names) for names in by_identity.values()}
        refused = self._ask_kernel()
        if refused:
            polled.extend(folder for names in self._names.values() for folder in names)
            self._names = {}
        self._poller.replace(polled)
        self._poll_every = POLL
        self._armed, self._armed_at = wanted, time.monotonic()
        self._next_poll = self._armed_at + POLL
        self._next_check = self._armed_at + _check_every(len(wanted))
        self._explain(len(polled), shared, refused)
        self._say(Report(wanted, rearmed=True))

    def _ask_kernel(self) -> str:
        """Arm `self._names`; returns why it was refused, "" where it was not."""
        if not self._names:
            return ""
        try:
            self._kernel = ask(list(self._names), self._wake)
        except (FileNotFoundError, NotADirectoryError, PermissionError):
            self._stale = True  # otherwise than when it was looked at just now: soon again
            return "a folder disappeared before acp could watch it"
        except (OSError, RuntimeError) as error:
            return "the system's limit is reached" if _is_limit(error) else str(error)
        return ""

    def _explain(self, polled: int, shared: set[str], refused: str) -> None:
        """Say in the note what is not as usual."""
        if refused:
            reason = refused
        elif shared:
            reason = f"shared file system ({', '.join(sorted(shared))})"
        elif self._poll:
            reason = "asked for"
        else:
            reason = "they cannot be listed or named"
        folders = f"{polled} folder{'s' if polled != 1 else ''}"
        self._polled = f"{folders}: {reason}" if polled else ""
        self._trouble = ""

    def _drop(self) -> None:
        if self._kernel is not None:
            self._kernel.close()
            self._kernel = None

    def _listen(self) -> None:
        """Wait for changes, for the next thing to do, or for being woken."""
        due = [self._next_check]
        if self._poller:
            due.append(self._next_poll)
        if self._is_behind():
            due.append(self._next_arm())
        timeout = max(0.001, min(due) - time.monotonic())
        if self._kernel is None:
            self._wake.wait(timeout)
            return
        try:
            changes, lost = self._kernel.hear(timeout)
        except RuntimeError:  # a name that is no text, for example: nothing more comes from it
            self._fail()
            return
        if changes:
            self._hear(changes)
        if lost:  # nobody knows what else happened: armed anew, everything counts as changed
            self._stale = True

    def _fail(self) -> None:
        calm = time.monotonic() - self._armed_at > LONGEST * 2
        self._failures = 1 if calm else min(self._failures + 1, 10)
        self._drop()
        self._stale, self._armed_at = True, time.monotonic()

    def _hear(self, heard: set[tuple[int, str]]) -> None:
        changed: set[Path] = set()
        entries: set[Path] = set()
        for change, path in heard:
            parent, name = os.path.split(path)
            for folder in self._names.get(parent, ()):
                changed.add(folder)
                if change != MODIFIED:
                    entries.add(folder / name)
            for folder in self._names.get(path, ()):
                changed.add(folder)
                if change != MODIFIED:
                    entries.add(folder)
                    self._identities[folder] = None  # what stands there now is another one
        for entry in entries:
            if self._identities.get(entry, entry) is None and _identity(entry) is not None:
                changed.add(entry)
                self._stale = True
        self._say(Report(frozenset(changed), frozenset(entries)))

    def _poll_folders(self, now: float) -> None:
        changed, entries = self._poller.changes()
        took = time.monotonic() - now
        self._poll_every = max(POLL, took * SHARE)
        self._next_poll = now + took + self._poll_every
        if changed:
            self._say(Report(frozenset(changed), frozenset(entries)))

    def _check(self, now: float) -> None:
        """Notice folders that appeared, vanished or were exchanged without being told."""
        self._next_check = now + _check_every(len(self._identities))
        changed: set[Path] = set()
        for folder, before in self._identities.items():
            identity = _identity(folder)
            if identity == before:
                continue
            changed.add(folder)
            self._identities[folder] = identity
            if identity is not None:
                self._stale = True
        if changed:
            self._say(Report(frozenset(changed), frozenset(changed)))

    def _say(self, report: Report) -> None:
        if not self._closing:
            self._report(report)


def _identity(folder: Path) -> Identity | None:
    try:
        found = os.stat(folder)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino)


def _is_watchable(folder: Path) -> bool:
    try:
        str(folder).encode()  # watchfiles takes names that are text only
    except UnicodeEncodeError:
        return False
    return folder.is_dir() and os.access(folder, os.R_OK | os.X_OK)


def _is_limit(error: Exception) -> bool:
    text = str(error).casefold()
    return "limit" in text or "too many open files" in text or "no space" in text


def _check_every(folders: int) -> float:
    return max(CHECK, folders / 500)


STEP = 10  # ms of quiet that end a batch of changes of watchfiles
DEBOUNCE = 50  # ms after which such a batch ends although changes go on

LINUX = sys.platform == "linux"


class Kernel(Protocol):
    """Tells of changes in some folders."""

    def hear(self, timeout: float) -> Heard:
        """Wait up to so many seconds for changes, or until woken.

        Raises:
            RuntimeError: it cannot go on.
        """

    def close(self) -> None:
        """Watch nothing any more."""


class Wake(threading.Event):
    """An event that also wakes a thread which waits for the kernel.

    `open` and `close` belong to that thread; in between `fileno` can be read once it is set.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._pipe: tuple[int, int] | None = None

    def open(self) -> None:
        """Be of use to a thread from now on."""
        pipe = os.pipe()
        for each in pipe:
            os.set_blocking(each, False)
        self._pipe = pipe

    def fileno(self) -> int:
        """What can be read once it is set."""
        assert self._pipe is not None
        return self._pipe[0]

    def set(self) -> None:
        """Wake."""
        super().set()
        with self._lock, contextlib.suppress(BlockingIOError):  # full: it wakes anyway
            if self._pipe is not None:
                os.write(self._pipe[1], b".")

    def clear(self) -> None:
        """Wake no more until it is set again."""
        super().clear()
        if self._pipe is not None:
            with contextlib.suppress(BlockingIOError):
                while os.read(self._pipe[0], 4096):
                    pass

    def close(self) -> None:
        """Let go of what `open` made."""
        with self._lock:
            pipe, self._pipe = self._pipe, None
        for each in pipe or ():
            os.close(each)


class Watchfiles:
    """The library's way: asked in steps of `STEP`."""

    def __init__(self, folders: Sequence[str], wake: threading.Event) -> None:
        from watchfiles._rust_notify import RustNotify  # late: Linux needs none of it

        debug = polling = recursive = ignore_denied = False  # ignoring would hide the limit as well
        self._wake = wake
        self._rust: RustNotify = RustNotify(
            list(folders), debug, polling, 300, recursive, ignore_denied
        )

    def hear(self, timeout: float) -> Heard:
        """See `Kernel.hear`."""
        heard = self._rust.watch(DEBOUNCE, STEP, int(timeout * 1000) + 1, self._wake)
        return Heard(heard if isinstance(heard, set) else set())

    def close(self) -> None:
        """See `Kernel.close`."""
        self._rust.close()


def ask(folders: Sequence[str], wake: Wake) -> Kernel:
    """Have the kernel tell of changes in these folders, not below them.

    Raises:
        OSError, RuntimeError: it refuses.
    """
    if LINUX:
        from acp_core.files.inotify import Inotify  # late: there is none elsewhere

        return Inotify(folders, wake.fileno())
    return Watchfiles(folders, wake)
