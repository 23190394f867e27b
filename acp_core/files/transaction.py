"""Several files written as one: all of them, or after the next command none or all.

What is to be written, and what stood there, goes into a journal first; it is removed when all is
written and verified. A process that dies in between leaves the journal: until the next command it
explains why the files do not agree, and then that command completes the writing, or takes it back
where it cannot be completed. Each write knows what stood there before, so that after a crash the file
itself says whether it was done. Writers hold a lock on the folder in which the journal lies, which
the kernel lets go of when a process dies.

    with begin(root, ".agentxchain") as transaction:
        state = read(root)
        transaction.commit("accept a turn", [Write(log, APPEND, line), Write(state, REPLACE, data)])

What is locked, checked and added besides is a protocol's own: its `Hooks`. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.locked import TIMEOUT, LogError, locked_folder
from acp_core.files.read_only import NEWER
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused, Unusable
from acp_core.model.text import clean_line

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
    atomic.shared_folder(step.path.parent)
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
    atomic.shared_folder(step.path.parent)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(step.path, flags | getattr(os, "O_CLOEXEC", 0), 0o644)
    try:
        if torn and len(now) > step.size:
            os.ftruncate(fd, step.size)
        broken = not torn and not now.endswith(b"\n")
        if before is None:
            atomic.open_to_group(fd, str(step.path.parent))
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
    atomic.shared_folder(target.parent)
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


JOURNAL = "acp-journal.json"
_UNNAMED = "an unknown write"
_TRIES = 20


class Interrupted(NamedTuple):
    """A writing that was begun and not finished: ``done`` of ``total`` files are written."""

    what: str
    at: datetime | None
    done: int
    total: int


class Recovered(NamedTuple):
    """What the next command made of it: completed, or taken back because of ``reason``."""

    what: str
    completed: bool
    reason: str = ""


class Failed(Refused):
    """The files could not be written; those that were are as before."""


def _nothing(root: Path, steps: Sequence[Step]) -> None:
    """What is checked, or done after, where a protocol asks for nothing."""


def _unlocked(folder: Path) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


def _no_steps(root: Path, steps: Sequence[Step]) -> list[Step]:
    return []


class Hooks(NamedTuple):
    """What a protocol adds to its transactions. ``root`` is what steps are relative to.

    Attributes:
        check: called under the lock with what is to be written, before anything is; it raises
            `Refused` where that must not be. What was interrupted is finished without it.
        follow: the steps that follow from others, such as a seal over what they write; it raises
            `WriteError` where these cannot be made.
        done: called when all is written and verified.
        lock: a further lock on a folder that is locked.
    """

    check: Callable[[Path, Sequence[Step]], None] = _nothing
    follow: Callable[[Path, Sequence[Step]], list[Step]] = _no_steps
    done: Callable[[Path, Sequence[Step]], None] = _nothing
    lock: Callable[[Path], AbstractContextManager[None]] = _unlocked


class Transaction:
    """The lock is held. Made by `begin`.

    Attributes:
        root: the folder that nothing is written outside of.
        recovered: what became of a writing that was interrupted before, None where none was.
    """

    def __init__(self, root: Path, homes: Sequence[str], hooks: Hooks) -> None:
        self.root = root
        self.recovered: Recovered | None = None
        self._homes = tuple(homes)
        self._hooks = hooks
        self._journal = root / homes[0] / JOURNAL

    def commit(self, what: str, wanted: Sequence[Write]) -> None:
        """Write all files, in this order, and verify them.

        Args:
            what: a sentence about it, for whoever finds it unfinished.
            wanted: the writes; at most one for each file.

        Raises:
            Failed: one could not be written; all are as before.
            Refused: they must not be written; or nor could they be taken back: the journal stays.
        """
        steps = self._plan(what, wanted)
        if not steps:
            return
        journalled = len(steps) > 1 or steps[0].verb == APPEND  # one whole file is one step anyway
        if journalled:
            self._note(what, steps)
        reason = _forward(steps)
        if reason:
            self._back(what, steps, reason)
            raise Failed(f"{what}: {reason}")
        self._hooks.done(self.root, steps)
        if journalled:
            _drop(self._journal)

    def recover(self) -> None:
        """Finish what was interrupted; `begin` calls it.

        Raises:
            Refused: it can be neither finished nor taken back.
        """
        journal, reason = _read(self._journal)
        if journal is None:
            return
        what = _text_of_record(journal, "what") or _UNNAMED
        try:
            steps = _steps(self.root, journal, reason)
        except WriteError as error:
            advice = "" if reason == NEWER else "; check the file, then remove it"
            raise Refused(f"{self._journal} cannot be applied: {error}{advice}") from None
        reason = _first_problem(check, steps) or _forward(steps, again=True)
        if reason:
            self._back(what, steps, reason)
        else:
            self._hooks.done(self.root, steps)
            _drop(self._journal)
        self.recovered = Recovered(what, not reason, reason)

    def _plan(self, what: str, wanted: Sequence[Write]) -> list[Step]:
        """What is to be done, checked.

        Raises:
            Failed: a file cannot be read, or is in the way.
            Refused: it must not be done.
        """
        try:
            steps = [prepare(self.root, write) for write in wanted]
            steps += self._hooks.follow(self.root, steps)
        except WriteError as error:
            raise Failed(f"{what}: {error}") from None
        self._hooks.check(self.root, steps)
        return steps

    def _note(self, what: str, steps: Sequence[Step]) -> None:
        journal = {
            "schema_version": "1.0",
            "what": what,
            "at": datetime.now(UTC).isoformat(),
            "homes": list(self._homes),
            "writes": [step.encode(self.root) for step in steps],
        }
        try:
            atomic.create(self._journal, (json.dumps(journal, indent=1) + "\n").encode())
        except OSError as error:
            raise Failed(f"{what}: {self._journal}: {error.strerror or error}") from None

    def _back(self, what: str, steps: Sequence[Step], reason: str) -> None:
        """Take every step back, the last first.

        Raises:
            Refused: one cannot be; the journal stays.
        """
        problems = []
        for step in reversed(steps):
            try:
                undo(step)
            except WriteError as error:
                problems.append(clean_line(str(error)))
        if problems:
            raise Refused(
                f"{what} is half done: {reason}; it cannot be undone: {'; '.join(problems)} "
                f"({self._journal} contains the previous content of each file)"
            )
        _drop(self._journal)


@contextlib.contextmanager
def begin(
    root: Path,
    home: str,
    others: Sequence[str] = (),
    *,
    hooks: Hooks | None = None,
    timeout: float = TIMEOUT,
) -> Iterator[Transaction]:
    """Hold the lock of a run, with everything finished that was interrupted.

    Args:
        root: the folder that nothing is written outside of.
        home: the folder below ``root`` that is locked and holds the journal; made where missing.
        others: further folders below ``root`` to lock.
        hooks: what a protocol adds.
        timeout: seconds to wait for another process.

    Raises:
        Refused: it is held by another process, or what was interrupted cannot be finished.
    """
    with lock(root, home, others, hooks=hooks, timeout=timeout) as transaction:
        transaction.recover()
        yield transaction


@contextlib.contextmanager
def lock(
    root: Path,
    home: str,
    others: Sequence[str] = (),
    *,
    hooks: Hooks | None = None,
    timeout: float = TIMEOUT,
) -> Iterator[Transaction]:
    """As `begin`, but what was interrupted is left to `Transaction.recover`.

    Raises:
        Refused: another process holds it.
    """
    hooks = hooks or Hooks()
    for _ in range(_TRIES):
        wanted = {home, *others, *_homes(root, home)}
        names = sorted(wanted, key=lambda each: (each != home, each))
        with _locked(root, names, hooks, timeout):
            if not set(_homes(root, home)) <= wanted:
                continue  # somebody was interrupted meanwhile who had locked more
            yield Transaction(root, [home, *others], hooks)
            return
    raise Refused(f"other processes keep writing to {root}; try again")


def interrupted(root: Path, home: str) -> Interrupted | None:
    """The writing that was begun here and not finished, or None; never raises."""
    journal, _ = _read(root / home / JOURNAL)
    if journal is None:
        return None
    raw = journal.get("writes")
    done = total = 0
    for each in raw if isinstance(raw, list) else ():
        total += 1
        with contextlib.suppress(WriteError):
            done += is_done(decode(root, each))
    return Interrupted(_text_of_record(journal, "what") or _UNNAMED, _time(journal), done, total)


def fault(root: Path, home: str) -> str:
    """Why an interrupted writing can be neither finished nor undone; "" where it can, or is none.

    Nothing is written, and no lock is needed: a writing that goes on meanwhile is no fault.
    """
    read = _read(root / home / JOURNAL)
    if read[0] is None:
        return ""
    try:
        steps = _steps(root, read[0], read[1])
    except WriteError as error:
        return clean_line(str(error))
    finish = _first_problem(check, steps)
    undo = _first_problem(check_undo, steps[::-1]) if finish else ""
    if not undo or _read(root / home / JOURNAL) != read:
        return ""
    return f"{finish}; {undo}" if undo != finish else undo


def _first_problem(check: Callable[[Step], None], steps: Sequence[Step]) -> str:
    try:
        for step in steps:
            check(step)
    except WriteError as error:
        return clean_line(str(error))
    return ""


def will_write(root: Path, home: str, relative: str) -> bool:
    """Whether finishing the writing that was interrupted here writes this file; never raises."""
    journal, reason = _read(root / home / JOURNAL)
    try:
        steps = [] if journal is None else _steps(root, journal, reason)
    except WriteError:
        return False
    return any(each.relative == relative for each in steps)


def _steps(root: Path, journal: dict[str, Any], reason: str) -> list[Step]:
    """The steps that a journal holds.

    Raises:
        WriteError: it cannot be followed: for ``reason``, where there is one.
    """
    if reason:
        raise WriteError(reason)
    raw = journal.get("writes")
    if not isinstance(raw, list):
        raise WriteError("it names no writes")
    return [decode(root, each) for each in raw]


def _read(path: Path) -> tuple[dict[str, Any] | None, str]:
    """What a journal holds (None: there is none), and why that cannot be read."""
    try:
        value = json.loads(read_bounded(path, LIMIT))
    except Unreadable as error:
        return (None, "") if error.missing else ({}, error.clause)
    except (ValueError, RecursionError):
        return {}, "it is not valid JSON"
    if not isinstance(value, dict):
        return {}, "it is not a JSON object"
    return value, NEWER if _is_newer(value.get("schema_version")) else ""


def _is_newer(said: object) -> bool:
    """Whether a journal is of a format that may mean something else than this one."""
    first = said.partition(".")[0] if isinstance(said, str) else ""
    return first.isascii() and first.isdecimal() and first.lstrip("0") not in ("", "1")


def _text_of_record(journal: dict[str, Any], key: str) -> str:
    value = journal.get(key)
    return clean_line(value) if isinstance(value, str) else ""


def _time(journal: dict[str, Any]) -> datetime | None:
    try:
        at = datetime.fromisoformat(_text_of_record(journal, "at"))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _homes(root: Path, home: str) -> list[str]:
    """The folders that an interrupted writing had locked."""
    named = (_read(root / home / JOURNAL)[0] or {}).get("homes")
    return [
        each
        for each in (named if isinstance(named, list) else ())
        if isinstance(each, str) and writable(root, each) and (root / each).is_dir()
    ]


@contextlib.contextmanager
def _locked(root: Path, homes: Sequence[str], hooks: Hooks, timeout: float) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in homes:
            path = below(root, name)
            if path is None:
                raise Refused(f"{clean_line(name, 200)} points outside {root}")
            try:
                atomic.shared_folder(path)
                stack.enter_context(locked_folder(str(path), timeout=timeout))
                stack.enter_context(hooks.lock(path))
            except LogError as error:
                raise Refused(str(error)) from None
            except OSError as error:
                raise Refused(f"{path}: {error.strerror or error}") from None
        yield


def _forward(steps: Sequence[Step], *, again: bool = False) -> str:
    """Do every step and read it back; returns why not, "" where all are done.

    ``again``: a process that was killed may have done some of them.
    """
    try:
        for step in steps:
            if again and is_done(step):
                settle(step)
            do(step)
        wrong = next((step for step in steps if not is_done(step)), None)
    except WriteError as error:
        return clean_line(str(error))
    return f"{wrong.relative} does not contain what acp wrote" if wrong else ""


def _drop(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    with contextlib.suppress(OSError):
        atomic.sync_folder(str(path.parent))
