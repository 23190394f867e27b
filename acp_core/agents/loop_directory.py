"""Where a loop keeps what is its own, and the lock that makes it the only one.

Each participant of each collaboration has one folder below ``loops`` in the user's state
folder. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from acp_core.files import atomic
from acp_core.model.errors import NotStarted
from acp_core.person import paths
from acp_core.person.paths import key_of

try:
    import fcntl
except ImportError:  # Windows: everything can be read there, nothing run
    fcntl = None  # type: ignore[assignment]

SUPPORTED = fcntl is not None

_WORD = re.compile(r"[^\w.\-]+")

_PATIENCE = 1.0  # seconds for which a lock is asked for: whoever only looks lets go at once


class LoopRunning(NotStarted):
    """The participant is played already; the message says by whom, where that is known."""


class CannotClaim(NotStarted):
    """Nobody can be the only one who plays a participant there; the message says why."""


@dataclass(frozen=True, slots=True)
class LoopDirectory:
    """The files of one participant's loop, all in ``folder``.

    Attributes:
        folder: everything stands in here.
    """

    folder: Path

    @property
    def lock(self) -> Path:
        """Held for as long as a loop runs."""
        return self.folder / "lock"

    @property
    def state(self) -> Path:
        """What the loop is doing, replaced whole."""
        return self.folder / "loop.json"

    @property
    def spec(self) -> Path:
        """What the loop was asked to do; a loop that is started again reads it."""
        return self.folder / "spec.json"

    @property
    def log(self) -> Path:
        """What happened, line by line, for people."""
        return self.folder / "log"

    @property
    def turns(self) -> Path:
        """A line of JSON per run of the program: who took which turn, and how it ended."""
        return self.folder / "turns.jsonl"

    @property
    def nudge(self) -> Path:
        """A message from a person that the loop has not yet taken."""
        return self.folder / "nudge.json"

    @property
    def cancelled(self) -> Path:
        """Which attempt a person cancelled last, and who."""
        return self.folder / "cancelled.json"

    @property
    def runs(self) -> Path:
        """The prompts of the runs and what the program printed, as they were."""
        return self.folder / "runs"

    @property
    def drafts(self) -> Path:
        """Where the program may write what is not yet meant for the others."""
        return self.folder / "drafts"

    def file(self, number: int, kind: str) -> Path:
        """A file of a run: its ``prompt``, ``out`` or ``err``."""
        return self.runs / f"{number:05}.{kind}"

    def make(self) -> None:
        """Make the folders, readable by their owner only.

        Raises:
            OSError: that is not possible.
        """
        for folder in (self.folder, self.runs, self.drafts):
            atomic.private_folder(folder)

    @contextlib.contextmanager
    def locked(self) -> Iterator[int]:
        """Be the only loop of this participant. The kernel lets go when the process ends.

        Yields:
            The lock, open.

        Raises:
            LoopRunning: there is another one.
            OSError: the lock cannot be had at all.
        """
        if not SUPPORTED:
            raise OSError("loops need flock, which this system does not support")
        self.make()
        fd = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + _PATIENCE
            while not _try(fd):
                if time.monotonic() > deadline:
                    raise LoopRunning
                time.sleep(0.02)
            yield fd
        finally:
            os.close(fd)

    def is_locked(self) -> bool:
        """Whether a loop holds the lock now."""
        if not SUPPORTED:
            return False
        try:
            fd = os.open(self.lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            return not _try(fd)
        finally:
            os.close(fd)


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def root() -> Path:
    """The folder that holds the places of all loops; it need not exist."""
    return paths.state_folder() / "loops"


def are_any() -> bool:
    """Whether there is a place of any loop; who has none needs nothing that reads them."""
    try:
        with os.scandir(root()) as entries:
            return any(entry.is_dir() for entry in entries)
    except OSError:
        return False


def permissions() -> Path:
    """The folder of requests for permission and their answers; it need not exist."""
    return paths.state_folder() / "permissions"


def place(folder: str, participant: str) -> LoopDirectory:
    """The place of the loop of ``participant`` in the collaboration ``folder`` (a path or URL)."""
    key = key_of(folder)
    digest = hashlib.sha256(f"{key}\0{participant}".encode(errors="surrogatepass")).hexdigest()
    words = [
        _WORD.sub("_", word)[:40] for word in (key.rstrip("/").rpartition("/")[2], participant)
    ]
    return LoopDirectory(root() / "-".join([*(word.strip(".") for word in words), digest[:16]]))
