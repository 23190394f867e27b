"""Looking at folders again and again, where the kernel does not tell of changes.

Only names, sizes and times are compared: nothing is opened. Standard library only.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

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
