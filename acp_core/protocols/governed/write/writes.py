"""One write of several that belong together: done again, or taken back, however far it got.

Each knows what stood there before, so that after a crash the file itself tells whether it was
done. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Unusable
from acp_core.protocols.governed import schema

REPLACE, APPEND, REMOVE = "replace", "append", "remove"
LIMIT = schema.LOG_LIMIT


class WriteError(Unusable):
    """A write cannot be done or taken back: which file, and why, in one line."""


class Write(NamedTuple):
    """What is to be done to one file.

    Attributes:
        path: the file; folders above it are made.
        verb: `REPLACE` puts ``data`` in its place (it need not exist), `APPEND` adds ``data`` at
            its end, `REMOVE` removes it.
        data: the bytes; none for a removal.
    """

    path: Path
    verb: str
    data: bytes = b""


class Step(NamedTuple):
    """A write with what stood there: ``before`` (None: no file), or the ``size`` of a log."""

    relative: str
    path: Path
    verb: str
    data: bytes
    before: bytes | None = None
    size: int = 0

    def encode(self) -> dict[str, Any]:
        """As the journal keeps it."""
        before = None if self.before is None else _text(self.before)
        return {
            "path": self.relative,
            "verb": self.verb,
            "data": _text(self.data),
            "before": before,
            "size": self.size,
        }


def decode(root: Path, value: object) -> Step:
    """A step as the journal keeps it.

    Raises:
        WriteError: it is none, or its path leads out of ``root``.
    """
    if not isinstance(value, dict):
        raise WriteError("the journal holds something that is no write")
    relative, verb, data = value.get("path"), value.get("verb"), value.get("data")
    before, size = value.get("before"), value.get("size")
    path = inside(root, relative) if isinstance(relative, str) else None
    if not isinstance(relative, str) or path is None:
        raise WriteError("the journal names a path outside of its folder")
    if verb not in (REPLACE, APPEND, REMOVE) or not isinstance(data, str):
        raise WriteError(f"the journal holds no proper write of {relative}")
    if not (before is None or isinstance(before, str)) or not isinstance(size, int) or size < 0:
        raise WriteError(f"the journal does not know what {relative} held")
    return Step(
        relative, path, verb, _bytes(data), None if before is None else _bytes(before), size
    )


def prepare(root: Path, write: Write) -> Step:
    """The step that ``write`` is now.

    Raises:
        WriteError: the file cannot be read, or lies outside of ``root``.
    """
    relative = os.path.relpath(write.path, root)
    path = inside(root, relative)
    if path is None:
        raise WriteError(f"{write.path} leads out of {root}")
    before = _content(path)
    if write.verb != APPEND:
        return Step(relative, path, write.verb, write.data, before)
    held = before or b""
    data = write.data if not held or held.endswith(b"\n") else b"\n" + write.data
    return Step(relative, path, APPEND, data, None, len(held))


def inside(root: Path, relative: str) -> Path | None:
    """As `schema.inside`, but a symbolic link as the last name is refused: it is written there.

    So is whatever is git's own: a journal that came with a clone must not write its settings.
    """
    if any(part.casefold() == ".git" for part in relative.replace("\\", "/").split("/")):
        return None
    path = schema.inside(root, relative)
    return None if path is None or path.is_symlink() else path


def is_done(step: Step) -> bool:
    """Whether the step stands in its file.

    Raises:
        WriteError: the file cannot be read.
    """
    now = _content(step.path)
    if step.verb == REMOVE:
        return now is None
    if step.verb == REPLACE:
        return now == step.data
    tail = (now or b"")[step.size :]
    return tail.startswith(step.data) or b"\n" + step.data.lstrip(b"\n") in tail


def do(step: Step) -> None:
    """Do the step, unless it was done.

    Raises:
        WriteError: somebody else changed the file in between, or it cannot be written.
    """
    if is_done(step):
        return
    now = _content(step.path)
    try:
        if step.verb == APPEND:
            _append(step, now or b"")
        elif now != step.before:
            raise WriteError(f"{step.relative} was changed by somebody else meanwhile")
        elif step.verb == REMOVE:
            _unlink(step.path)
        else:
            step.path.parent.mkdir(parents=True, exist_ok=True)
            atomic.sweep(step.path)
            atomic.replace(step.path, step.data)
    except OSError as error:
        raise WriteError(f"{step.relative}: {error.strerror or error}") from None


def undo(step: Step) -> None:
    """Take the step back, unless it was not done or somebody else wrote another file since.

    Raises:
        WriteError: somebody else wrote behind its lines, or the file cannot be written.
    """
    now = _content(step.path)
    try:
        if step.verb == APPEND:
            _cut(step, now or b"")
        elif now != (step.data if step.verb == REPLACE else None):
            return  # as it was, or what somebody else wrote meanwhile
        elif step.before is None:
            _unlink(step.path)
        else:
            atomic.replace(step.path, step.before)
    except OSError as error:
        raise WriteError(f"{step.relative}: {error.strerror or error}") from None


def _append(step: Step, now: bytes) -> None:
    """Add the lines; a beginning of them that a crash left is written anew."""
    if len(now) < step.size:
        raise WriteError(f"{step.relative} was shortened by somebody else meanwhile")
    torn = step.data.startswith(now[step.size :])
    step.path.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(step.path, flags | getattr(os, "O_CLOEXEC", 0), 0o644)
    try:
        if torn and len(now) > step.size:
            os.ftruncate(fd, step.size)
        broken = not torn and not now.endswith(b"\n")
        atomic.write_all(fd, (b"\n" if broken else b"") + step.data)
        atomic.sync_fd(fd)
    finally:
        os.close(fd)


def _cut(step: Step, now: bytes) -> None:
    tail = now[step.size :]
    if not tail or not (is_done(step) or step.data.startswith(tail)):
        return
    if len(tail) > len(step.data):
        raise WriteError(f"{step.relative} was written to by somebody else meanwhile")
    os.truncate(step.path, step.size)


def _content(path: Path) -> bytes | None:
    try:
        return read_bounded(path, LIMIT)
    except Unreadable as error:
        if error.missing:
            return None
        raise WriteError(f"{path.name} cannot be read: {schema.why(error.reason)}") from None


def _unlink(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        atomic.sync_folder(str(path.parent))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
