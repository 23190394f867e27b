"""Several files written as one: all of them, or after the next command none or all.

What is to be written, and what stood there, goes into a journal first; it is removed when all is
written and verified. A process that dies in between leaves the journal: until the next command it
explains why the files do not agree, and then that command completes the writing, or takes it back
where it cannot be completed. Writers hold a lock on the folder in which the journal lies, which
the kernel lets go of when a process dies.

    with begin(root, ".agentxchain") as transaction:
        state = read(root)
        transaction.commit("accept a turn", [Write(log, APPEND, line), Write(state, REPLACE, data)])

What is locked, checked and added besides is a protocol's own: its `Hooks`. Standard library only.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic, modes, writes
from acp_core.files.locked import TIMEOUT, LogError, locked_folder
from acp_core.files.newer import NEWER
from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.writes import APPEND as APPEND
from acp_core.files.writes import CREATE as CREATE
from acp_core.files.writes import MOVE as MOVE
from acp_core.files.writes import REMOVE as REMOVE
from acp_core.files.writes import REPLACE as REPLACE
from acp_core.files.writes import Step as Step
from acp_core.files.writes import Write as Write
from acp_core.files.writes import WriteError as WriteError
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line

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
        what = _text(journal, "what") or _UNNAMED
        try:
            steps = _steps(self.root, journal, reason)
        except WriteError as error:
            advice = "" if reason == NEWER else "; check the file, then remove it"
            raise Refused(f"{self._journal} cannot be applied: {error}{advice}") from None
        reason = _first_problem(writes.check, steps) or _forward(steps, again=True)
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
            steps = [writes.prepare(self.root, write) for write in wanted]
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
                writes.undo(step)
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
            done += writes.is_done(writes.decode(root, each))
    return Interrupted(_text(journal, "what") or _UNNAMED, _time(journal), done, total)


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
    finish = _first_problem(writes.check, steps)
    undo = _first_problem(writes.check_undo, steps[::-1]) if finish else ""
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
    return [writes.decode(root, each) for each in raw]


def _read(path: Path) -> tuple[dict[str, Any] | None, str]:
    """What a journal holds (None: there is none), and why that cannot be read."""
    try:
        value = json.loads(read_bounded(path, writes.LIMIT))
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


def _text(journal: dict[str, Any], key: str) -> str:
    value = journal.get(key)
    return clean_line(value) if isinstance(value, str) else ""


def _time(journal: dict[str, Any]) -> datetime | None:
    try:
        at = datetime.fromisoformat(_text(journal, "at"))
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _homes(root: Path, home: str) -> list[str]:
    """The folders that an interrupted writing had locked."""
    named = (_read(root / home / JOURNAL)[0] or {}).get("homes")
    return [
        each
        for each in (named if isinstance(named, list) else ())
        if isinstance(each, str) and writes.writable(root, each) and (root / each).is_dir()
    ]


@contextlib.contextmanager
def _locked(root: Path, homes: Sequence[str], hooks: Hooks, timeout: float) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in homes:
            path = writes.below(root, name)
            if path is None:
                raise Refused(f"{clean_line(name, 200)} points outside {root}")
            try:
                modes.shared_folder(path)
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
            if again and writes.is_done(step):
                writes.settle(step)
            writes.do(step)
        wrong = next((step for step in steps if not writes.is_done(step)), None)
    except WriteError as error:
        return clean_line(str(error))
    return f"{wrong.relative} does not contain what acp wrote" if wrong else ""


def _drop(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    with contextlib.suppress(OSError):
        atomic.sync_folder(str(path.parent))
