"""A collaboration's folder as it was at a moment, built again in a private place.

What reads the real folder reads this one, too: so the past is judged by the very rules of the
present, whatever the protocol. Going forward writes only what differs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from acp_core.model import Snapshot
from acp_core.protocols import registry
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import identify

_DEEP = ("1", "2", "3", "4", "5", "6", "7", "8")  # folders above: names may begin with ".."


class Stage:
    """The rebuilt folder. Used from one thread at a time; `close` removes it.

    Args:
        key: The collaboration's path, whose last part names the folder.
    """

    def __init__(self, key: str) -> None:
        self._root = Path(tempfile.mkdtemp(prefix="acp-past-"))
        self.folder = self._root.joinpath(*_DEEP, os.path.basename(key) or "collaboration")
        self.folder.mkdir(parents=True, mode=0o700)
        self._shown: dict[str, tuple[str, int]] = {}  # name -> key and size of what stands there
        self._opened: Collaboration | None = None
        self._place = -1

    def close(self) -> None:
        """Remove everything."""
        self._leave()
        shutil.rmtree(self._root, ignore_errors=True)

    def set(
        self, place: int, files: Mapping[str, tuple[str, bytes, float]], logs: frozenset[str]
    ) -> None:
        """Let these files, and no others, stand there.

        Args:
            place: of the moment among all; going back, everything is read anew: who follows
                files must never see a log shrink, or a file vanish that was there.
            files: by name: a key that is the same for the same content, the content, and when it
                was written (seconds since 1970).
            logs: those of them that are only appended to.

        Raises:
            ValueError: a name leads out of the folder.
        """
        if place < self._place:
            self._leave()
        self._place = place
        for name in self._shown.keys() - files.keys():
            self._path(name).unlink(missing_ok=True)
            del self._shown[name]
        for name, (key, data, since) in files.items():
            before = self._shown.get(name)
            if before is not None and before[0] == key:
                continue
            nanoseconds = round(since * 1_000_000) * 1_000  # exactly what the time says
            path = self._path(name)
            if name in logs and before is not None:
                with path.open("r+b") as log:
                    log.seek(min(before[1], len(data)))
                    log.write(data[before[1] :])
                    log.truncate()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                written = path.with_name(f".{path.name}.new")
                written.write_bytes(data)
                os.utime(written, ns=(nanoseconds, nanoseconds))
                os.replace(written, path)
            os.utime(path, ns=(nanoseconds, nanoseconds))
            self._shown[name] = (key, len(data))

    def collaboration(self) -> Collaboration | None:
        """What reads the folder; None where nothing that acp knows stands there."""
        if self._opened is None:
            found = identify(self.folder, registry.installed())
            self._opened = found.open() if found else None
        return self._opened

    def refresh(self, moment: datetime) -> Snapshot | None:
        """The folder, read as of a moment."""
        opened = self.collaboration()
        return opened.refresh(moment) if opened is not None else None

    def _path(self, name: str) -> Path:
        """Where a file stands: never outside of the private place.

        Raises:
            ValueError: its name leads out.
        """
        path = Path(os.path.normpath(self.folder / name))
        if not path.is_relative_to(self._root) or path == self._root:
            raise ValueError(f"{name!r} leads out of the folder")
        return path

    def _leave(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None
