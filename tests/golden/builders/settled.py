"""Times and ids that programs chose, made the same in every run, with what follows from them."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

START = datetime(2026, 1, 22, 9, tzinfo=UTC)
PACE = timedelta(minutes=10)
"""Time between two commands, as the files tell it afterwards."""
_NEAR = timedelta(days=1)
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d(?P<between>[T ])\d\d:\d\d(?P<seconds>:\d\d)?(?P<rest>\.\d+)?(?=Z|\+00:00| |\b)"
)
_DURATION = re.compile(r'("duration_ms": ?)\d+')
_ID = re.compile(r"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])")


class Settled:
    """The files below some folders, settled after each command that wrote there.

    Args:
        folders: where the commands write; what git keeps is left alone.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._ids: dict[str, str] = {}
        self._commands = 0

    def settle(self) -> None:
        """Give what the last command wrote its fixed time and its numbered ids."""
        self._commands += 1
        digests: dict[str, str] = {}
        for path, content in self._texts():
            self._rewrite(path, content, self._plain(content), digests)
        while digests:  # a file that names a digest gets another one itself
            later: dict[str, str] = {}
            for path, content in self._texts():
                self._rewrite(path, content, _replaced(content, digests), later)
            digests = later
        for path in reversed(self._paths()):
            if (name := self._numbered(path.name)) != path.name:
                path.rename(path.with_name(name))

    @property
    def now(self) -> datetime:
        """The time of the last command."""
        return START + self._commands * PACE

    def _rewrite(self, path: Path, old: str, new: str, digests: dict[str, str]) -> None:
        if new != old:
            digests[_digest(old)] = _digest(new)
            path.write_text(new, encoding="utf-8", newline="")

    def _plain(self, content: str) -> str:
        return _DURATION.sub(r"\g<1>100", _TIME.sub(self._time, self._numbered(content)))

    def _numbered(self, text: str) -> str:
        return _ID.sub(lambda match: self._id(match[0]), text)

    def _id(self, given: str) -> str:
        if given in self._ids.values():
            return given
        return self._ids.setdefault(given, f"{len(self._ids) + 1:016x}")

    def _time(self, match: re.Match[str]) -> str:
        try:
            at = datetime.fromisoformat(match[0]).replace(tzinfo=UTC)
        except ValueError:
            return match[0]
        ahead = at - datetime.now(UTC)
        if abs(ahead) > _NEAR:
            return match[0]
        then = self.now + timedelta(minutes=round(ahead / timedelta(minutes=1)))
        told = then.strftime(f"%Y-%m-%d{match['between']}%H:%M")
        told += ":00" if match["seconds"] else ""
        return told + re.sub(r"\d", "0", match["rest"] or "")

    def _texts(self) -> Iterator[tuple[Path, str]]:
        for path in self._paths():
            if path.is_file() and not path.is_symlink():
                try:
                    yield path, path.read_bytes().decode()
                except UnicodeDecodeError:
                    continue

    def _paths(self) -> list[Path]:
        """Everything, folder by folder: in the first one no unnumbered id orders the others."""
        return [path for folder in self._folders for path in sorted(_below(folder))]


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (Path(place, name) for name in (*folders, *files))


def _replaced(text: str, digests: dict[str, str]) -> str:
    for old, new in digests.items():
        text = text.replace(old, new)
    return text


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
