"""Where recordings lie, which there are, and how they are kept within bounds.

Each collaboration has one database below ``recordings`` in the user's state folder, named by the
collaboration's real path.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from acp_core.history.schema import Bounds
from acp_core.history.store import BadRecording, NoRecording, Store, trim
from acp_core.person import paths
from acp_core.person.paths import key_of

SUFFIX = ".recording"
_DAY = 86_400.0
_IN_USE = 3_600.0  # seconds since the last write within which a recording is never thrown away
_WORD = re.compile(r"[^\w.\-]+")


@dataclass(frozen=True, slots=True)
class StoredRecording:
    """A recording that is there: of which collaboration, how large, and when written last.

    ``key`` is "" and ``problem`` says why where it cannot be read.
    """

    path: Path
    key: str
    name: str
    size: int
    written: float
    problem: str = ""


def folder() -> Path:
    """Where all recordings lie; it need not exist."""
    return paths.state_folder() / "recordings"


def path(key: str) -> Path:
    """Where the recording of one collaboration (a path or URL) lies; it need not exist."""
    name = key_of(key)
    digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()[:16]
    word = _WORD.sub("_", name.rstrip("/").rpartition("/")[2])[:40].strip(".")
    return folder() / f"{word}-{digest}{SUFFIX}"


def find(key: str) -> Store | None:
    """The recording of a collaboration, opened for reading; None where there is none.

    Raises:
        BadRecording: there is one, and it cannot be read.
    """
    try:
        return Store(path(key), read_only=True)
    except NoRecording:
        return None


def recordings() -> list[StoredRecording]:
    """All recordings, the one written last first."""
    recordings = []
    for place in places():
        with contextlib.suppress(FileNotFoundError):  # thrown away meanwhile
            recordings.append(_describe_recording(place))
    return sorted(recordings, key=lambda each: -each.written)


def places() -> list[Path]:
    """The files of all recordings, in any order."""
    try:
        return [place for place in folder().iterdir() if place.suffix == SUFFIX]
    except OSError:
        return []


def _describe_recording(place: Path) -> StoredRecording:
    files = [each.stat() for each in _files(place) if each.exists()]
    size = sum(each.st_size for each in files)
    written = max((each.st_mtime for each in files), default=0.0)
    try:
        store = Store(place, read_only=True)
    except BadRecording as error:
        return StoredRecording(place, "", "", size, written, str(error))
    try:
        meta = store.meta()
    except BadRecording as error:
        return StoredRecording(place, "", "", size, written, str(error))
    finally:
        store.close()
    return StoredRecording(place, meta.get("key", ""), meta.get("name", ""), size, written)


def forget(place: Path) -> None:
    """Throw a recording away.

    Raises:
        OSError: it could not be removed.
    """
    for file in reversed(_files(place)):  # the database last: without it the others are nothing
        file.unlink(missing_ok=True)


def prune(bounds: Bounds, now: float | None = None) -> list[Path]:
    """Throw away what is too old, then the oldest until the rest is small enough.

    What was written within the last hour is kept in any case; of what is kept, old contents
    go where they are too old, or too many.

    Args:
        bounds: how old and how large they may be.
        now: the time in seconds since 1970; None for that of the clock.

    Returns:
        The recordings that were thrown away.
    """
    moment = time.time() if now is None else now
    files: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for place in folder().iterdir():
            if place.suffix == SUFFIX:
                with contextlib.suppress(OSError):
                    found = [each.stat() for each in _files(place) if each.exists()]
                    written = max(each.st_mtime for each in found)
                    files.append((written, sum(each.st_size for each in found), place))
    total = sum(size for _, size, _ in files)
    gone = []
    for written, size, place in sorted(files):
        too_old = moment - written > bounds.days * _DAY
        too_much = total > bounds.megabytes * 1e6
        if moment - written > _IN_USE and (too_old or too_much):
            with contextlib.suppress(OSError):
                forget(place)
                gone.append(place)
                total -= size
        else:
            with contextlib.suppress(BadRecording, OSError):
                trim(place, int(bounds.megabytes * 1e6), moment - bounds.days * _DAY)
    return gone


def _files(place: Path) -> tuple[Path, ...]:
    return place, Path(f"{os.fspath(place)}-wal"), Path(f"{os.fspath(place)}-shm")
