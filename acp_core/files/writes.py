"""One write of several that belong together: done again, or taken back, however far it got.

Each knows what stood there before, so that after a crash the file itself says whether it was done.
Standard library only.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic, modes
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Unusable

CREATE, REPLACE, APPEND, REMOVE, MOVE = "create", "replace", "append", "remove", "move"
VERBS = (CREATE, REPLACE, APPEND, REMOVE, MOVE)
LIMIT = 64 << 20  # bytes of a file that is written


class WriteError(Unusable):
    """A write cannot be done or taken back: which file, and why, in one line."""


class Write(NamedTuple):
    """What is to be done to one file.

    Attributes:
        path: the file; folders above it are made.
        verb: `REPLACE` puts ``data`` in its place (it need not exist), `CREATE` does so where
            nothing stands yet, `APPEND` adds ``data`` at its end, `REMOVE` removes it, and `MOVE`
            moves ``source`` there, where nothing stands yet.
        data: the bytes; none for a removal or a move.
        source: the file that is moved.
    """

    path: Path
    verb: str
    data: bytes = b""
    source: Path | None = None


class Step(NamedTuple):
    """A write with what stood there: ``before`` (None: no file), or the ``size`` of a log."""

    relative: str
    path: Path
    verb: str
    data: bytes = b""
    before: bytes | None = None
    size: int = 0
    source: Path | None = None

    def encode(self, root: Path) -> dict[str, Any]:
        """As a journal keeps it; paths are relative to ``root``."""
        value = {
            "path": self.relative,
            "verb": self.verb,
            "data": _text(self.data),
            "before": None if self.before is None else _text(self.before),
            "size": self.size,
        }
        if self.source is not None:
            value["source"] = os.path.relpath(self.source, root)
        return value


def decode(root: Path, value: object) -> Step:
    """A step as a journal keeps it.

    Raises:
        WriteError: it is none, or its path leads out of ``root``.
    """
    if not isinstance(value, dict):
        raise WriteError("the journal contains an invalid entry")
    relative, verb, data = value.get("path"), value.get("verb"), value.get("data")
    before, size = value.get("before"), value.get("size")
    path = writable(root, relative) if isinstance(relative, str) else None
    if not isinstance(relative, str) or path is None:
        raise WriteError("the journal names a path outside its folder")
    if verb not in VERBS or not isinstance(data, str):
        raise WriteError(f"the journal has an invalid entry for {relative}")
    if not (before is None or isinstance(before, str)) or not isinstance(size, int) or size < 0:
        raise WriteError(f"the journal does not have the previous content of {relative}")
    step = Step(
        relative, path, verb, _bytes(data), None if before is None else _bytes(before), size
    )
    return step if verb != MOVE else step._replace(source=_source(root, value.get("source")))


def prepare(root: Path, write: Write) -> Step:
    """The step that ``write`` is now.

    Raises:
        WriteError: the file cannot be read, lies outside of ``root``, or is in the way.
    """
    relative = os.path.relpath(write.path, root)
    path = writable(root, relative)
    if path is None:
        raise WriteError(f"{write.path} points outside {root}")
    if write.verb in (CREATE, MOVE):
        if os.path.lexists(path):
            raise WriteError(f"{write.path} already exists")
        source = None if write.source is None else os.path.relpath(write.source, root)
        from_where = _source(root, source) if write.verb == MOVE else None
        return Step(relative, path, write.verb, write.data, source=from_where)
    before = _content(path)
    if write.verb != APPEND:
        return Step(relative, path, write.verb, write.data, before)
    held = before or b""
    data = write.data if not held or held.endswith(b"\n") else b"\n" + write.data
    return Step(relative, path, APPEND, data, None, len(held))


def below(root: Path, relative: str) -> Path | None:
    """The path below ``root`` that ``relative`` names; None where it leads out of it.

    Symbolic links count for where they lead.
    """
    if not relative or "\0" in relative or len(relative) > 1000:
        return None
    try:
        base = os.path.realpath(root)
        real = os.path.realpath(os.path.join(base, relative))
    except (OSError, ValueError):
        return None
    if real != base and not real.startswith(base.rstrip(os.sep) + os.sep):
        return None
    return Path(os.path.normpath(root / relative))


def writable(root: Path, relative: str) -> Path | None:
    """As `below`, but a symbolic link as the last name is refused: it is written there.

    So is whatever is git's own: a journal that came with a clone must not write its settings.
    """
    if any(part.casefold() == ".git" for part in relative.replace("\\", "/").split("/")):
        return None
    path = below(root, relative)
    return None if path is None or path.is_symlink() else path


def is_done(step: Step) -> bool:
    """Whether the step stands in its file.

    Raises:
        WriteError: the file cannot be read.
    """
    if step.verb == MOVE:
        return os.path.lexists(step.path) and not os.path.lexists(_of(step))
    now = _content(step.path)
    if step.verb == REMOVE:
        return now is None
    if step.verb != APPEND:
        return now == step.data
    tail = (now or b"")[step.size :]
    return tail.startswith(step.data) or b"\n" + step.data.lstrip(b"\n") in tail


def check(step: Step) -> None:
    """See whether the step was done, or can be. Writes nothing.

    Raises:
        WriteError: somebody else changed the file in between.
    """
    if is_done(step):
        return
    if step.verb == MOVE:
        _check_move(_of(step), step.path)
    else:
        _check_content(step, _content(step.path))


def check_undo(step: Step) -> None:
    """See whether the step can be taken back. Writes nothing.

    Raises:
        WriteError: somebody else wrote behind its lines.
    """
    if step.verb == APPEND:
        _must_be_cut(step, _content(step.path) or b"")


def do(step: Step) -> None:
    """Do the step, unless it was done.

    Raises:
        WriteError: somebody else changed the file in between, or it cannot be written.
    """
    if is_done(step):
        return
    try:
        if step.verb == MOVE:
            _move(_of(step), step.path)
            return
        now = _content(step.path)
        _check_content(step, now)
        if step.verb == APPEND:
            _append(step, now)
        elif step.verb == REMOVE:
            _unlink(step.path)
        else:
            _put(step)
    except OSError as error:
        raise WriteError(f"{step.relative}: {error.strerror or error}") from None


def settle(step: Step) -> None:
    """Bring to the disk what a process that was killed may only just have written.

    Raises:
        WriteError: the disk reported an error.
    """
    try:
        if step.verb not in (REMOVE, MOVE):
            fd = os.open(step.path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
            try:
                atomic.sync_fd(fd)
            finally:
                os.close(fd)
        for path in (step.path, step.source):
            if path is not None and path.parent.is_dir():
                atomic.sync_folder(str(path.parent))
    except OSError as error:
        raise WriteError(f"{step.relative}: {error.strerror or error}") from None


def undo(step: Step) -> None:
    """Take the step back, unless it was not done or somebody else wrote another file since.

    Raises:
        WriteError: somebody else wrote behind its lines, or the file cannot be written.
    """
    try:
        if step.verb == MOVE:
            if is_done(step):
                _move(step.path, _of(step))
            return
        now = _content(step.path)
        if step.verb == APPEND:
            _cut(step, now or b"")
        elif now != (None if step.verb == REMOVE else step.data):
            return  # as it was, or what somebody else wrote meanwhile
        elif step.before is None:
            _unlink(step.path)
        else:
            atomic.replace(step.path, step.before)
    except OSError as error:
        raise WriteError(f"{step.relative}: {error.strerror or error}") from None


def _put(step: Step) -> None:
    modes.shared_folder(step.path.parent)
    atomic.sweep(step.path)
    if step.verb == CREATE:
        atomic.create(step.path, step.data)
    else:
        atomic.replace(step.path, step.data)


def _check_content(step: Step, now: bytes | None) -> None:
    """See whether a step that was not done can be done on what stands in its file."""
    if step.verb == APPEND:
        if len(now or b"") < step.size:
            raise WriteError(f"{step.relative} was shortened by another program in the meantime")
    elif now != step.before:
        raise WriteError(f"{step.relative} was changed by another program in the meantime")


def _append(step: Step, before: bytes | None) -> None:
    """Add the lines; a beginning of them that a crash left is written anew."""
    now = before or b""
    torn = step.data.startswith(now[step.size :])
    modes.shared_folder(step.path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(step.path, flags | getattr(os, "O_CLOEXEC", 0), 0o644)
    try:
        if torn and len(now) > step.size:
            os.ftruncate(fd, step.size)
        broken = not torn and not now.endswith(b"\n")
        if before is None:
            modes.open_to_group(fd, str(step.path.parent))
        atomic.write_all(fd, (b"\n" if broken else b"") + step.data)
        atomic.sync_fd(fd)
    finally:
        os.close(fd)
    if before is None:  # the log is new: its name must outlast a loss of power, too
        atomic.sync_folder(str(step.path.parent))


def _cut(step: Step, now: bytes) -> None:
    if _must_be_cut(step, now):
        os.truncate(step.path, step.size)


def _must_be_cut(step: Step, now: bytes) -> bool:
    """Whether its lines, or the beginning of them, stand at the end of the file."""
    tail = now[step.size :]
    if not tail or not (is_done(step) or step.data.startswith(tail)):
        return False
    if len(tail) > len(step.data):
        raise WriteError(f"{step.relative} was written to by another program in the meantime")
    return True


def _move(source: Path, target: Path) -> None:
    """Move a file to where nothing stands.

    Raises:
        WriteError: something stands there, or the file is gone.
    """
    _check_move(source, target)
    modes.shared_folder(target.parent)
    os.rename(source, target)
    atomic.sync_folder(str(target.parent))
    atomic.sync_folder(str(source.parent))


def _check_move(source: Path, target: Path) -> None:
    if os.path.lexists(target) or not os.path.lexists(source):
        what = f"{target.name} already exists"
        raise WriteError(what if os.path.lexists(target) else f"{source.name} no longer exists")


def _of(step: Step) -> Path:
    if step.source is None:
        raise WriteError(f"the journal has no new content for {step.relative}")
    return step.source


def _source(root: Path, relative: object) -> Path:
    """A file that is moved; it may be a symbolic link, but not lie outside of ``root``."""
    folder, name = os.path.split(relative) if isinstance(relative, str) else ("", "")
    place = writable(root, folder or ".")
    if place is None or name.casefold() in ("", ".", "..", ".git"):
        raise WriteError(f"{relative} points outside {root}")
    return place / name


def _content(path: Path) -> bytes | None:
    try:
        return read_bounded(path, LIMIT)
    except Unreadable as error:
        if error.missing:
            return None
        raise WriteError(f"{path.name} cannot be read: {error.clause}") from None


def _unlink(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
        atomic.sync_folder(str(path.parent))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
