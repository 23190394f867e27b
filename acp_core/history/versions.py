"""What is known of the past contents of a collaboration's files, and where it is known from.

From the recording; from the git repository in which the files lie; and for the rest what stands
there now, since the file's own time. Nothing is made up in between.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.history import git
from acp_core.history.observing import LARGEST, LARGEST_LOG
from acp_core.history.schema import MISSING
from acp_core.history.store import Store
from acp_core.model.text import clean_line
from acp_core.model.tracked import TrackedFile

RECORDED, COMMITTED, PRESENT = "recorded", "committed", "by its file time"
_SAME = 0.001  # seconds
_LONG = 60  # characters of a name


@dataclass(frozen=True, slots=True)
class Known:
    """A content that a file had since a moment.

    Attributes:
        file: the file's name (see `acp_core.model.tracked.TrackedFile`).
        since: seconds since 1970; for one that was committed, the time of the commit.
        source: `RECORDED`, `COMMITTED` or `PRESENT`.
        size: bytes, None where the file was not there.
        key: the same for the same content.
        read: gives the content; raises `acp_core.history.store.BadRecording` or OSError.
        note: for a commit, which.
        lost: why the content is not kept although the file was there; "" where it is.
    """

    file: str
    since: float
    source: str
    size: int | None
    key: str
    read: Callable[[], bytes]
    note: str = ""
    lost: str = ""


class Versions:
    """The known versions of all files of a collaboration.

    Args:
        tracked: The files as they are now.
        store: The recording, or None.
        commits: Versions that were committed, by the file's name.
    """

    def __init__(
        self,
        tracked: Sequence[TrackedFile],
        store: Store | None,
        commits: Callable[[Sequence[TrackedFile]], dict[str, list[git.Committed]]] = git.committed,
    ) -> None:
        self.files: dict[str, list[Known]] = {}
        self.documents: dict[str, str] = {file.name: file.document for file in tracked}
        self.logs = {file.name for file in tracked if file.log}
        if store is not None:
            self._take_recorded(store)
        for name, found in commits([file for file in tracked if not file.log]).items():
            self._take_committed(name, found)
        for file in tracked:
            self._take_present(file)

    def at(self, file: str, moment: float) -> Known | None:
        """The newest version that was there at a moment; None where none is known.

        Args:
            file: its name.
            moment: seconds since 1970.
        """
        versions = self.files.get(file, [])
        place = bisect_right(versions, moment, key=lambda each: each.since)
        return versions[place - 1] if place else None

    def _take_recorded(self, store: Store) -> None:
        for name, (log, document) in store.files().items():
            self.documents.setdefault(name, document)
            if log:
                self.logs.add(name)
        latest: dict[str, float] = {}
        for version in store.versions():
            since = max(version.since, latest.get(version.file, version.since))
            latest[version.file] = since
            there = version.present
            known = Known(
                version.file,
                since,
                RECORDED,
                version.size if there else None,
                version.whole.hex() if there else "",
                _reader(store, version.id) if there else _nothing,
                lost="" if there or version.state == MISSING else version.state,
            )
            self.files.setdefault(version.file, []).append(known)

    def _take_committed(self, name: str, found: Iterable[git.Committed]) -> None:
        """Those from before the recording, and those that the recording does not know."""
        versions = self.files.setdefault(name, [])
        known = {version.key for version in versions}
        for commit in found:
            if commit.digest not in known:
                versions.append(
                    Known(
                        name,
                        commit.at,
                        COMMITTED,
                        commit.size,
                        commit.digest,
                        commit.read,
                        commit.id,
                    )
                )
        versions.sort(key=lambda each: each.since)

    def _take_present(self, file: TrackedFile) -> None:
        """What stands there now, where that is not what is known last."""
        versions = self.files.setdefault(file.name, [])
        try:
            found = os.stat(file.path)
            data = read_bounded(file.path, LARGEST_LOG if file.log else LARGEST)
        except (Unreadable, OSError, ValueError):
            return
        key = git.digest(data)
        if versions and versions[-1].key == key:
            return
        since = found.st_mtime
        if versions and since <= versions[-1].since:
            since = versions[-1].since + _SAME
        versions.append(Known(file.name, since, PRESENT, len(data), key, lambda: data))


def _reader(store: Store, version: int) -> Callable[[], bytes]:
    return lambda: store.content(version)


def _nothing() -> bytes:
    raise FileNotFoundError("the file did not exist")


def short_name(file: str) -> str:
    """A file's name, safe to show; of a long one its end, which tells it apart from others."""
    if len(file) > _LONG and file.count("/") > 1:
        file = "/".join(file.split("/")[-2:])
    return clean_line(file, _LONG)
