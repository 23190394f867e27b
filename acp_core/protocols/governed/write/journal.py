"""Several files written as one: all of them, or after the next command none or all.

What is to be written, and what stood there, goes into a journal first; it is removed when all is
written and verified. A process that dies in between leaves the journal: until the next command it
explains why the files do not agree, and then that command completes the writing, or takes it back
where it cannot be completed. Writers hold a lock on the folder of the run (``.agentxchain``) or of
the coordinator (``.coordinator``), which the kernel lets go of when a process dies.

Source: governed protocol specification, "State coherence after resync". Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from acp_core.files import atomic
from acp_core.files.locked import TIMEOUT, LogError, locked_folder
from acp_core.files.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.write import Refused, foreign_lock, seals, writes
from acp_core.protocols.governed.write.writes import Step, Write, WriteError

RUN, COORDINATOR = ".agentxchain", ".coordinator"
NAME = "acp-journal.json"
_ABOVE = 6  # folders above a run in which an initiative is looked for
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


class Held:
    """The lock is held. Made by `held`."""

    def __init__(self, root: Path, home: str, homes: Sequence[str]) -> None:
        self.root, self._home, self._homes = root, home, tuple(homes)
        self.recovered: Recovered | None = None

    def commit(self, what: str, wanted: Sequence[Write]) -> None:
        """Write all files, in this order, and verify them.

        Args:
            what: a sentence about it, for whoever finds it unfinished.
            wanted: the writes; at most one for each file.

        Raises:
            Failed: one could not be written; all are as before.
            Refused: nor could they be taken back: the journal stays.
        """
        path = self.root / self._home / NAME
        try:
            steps = [writes.prepare(self.root, write) for write in wanted]
            steps += seals.sealing(self.root, steps)
            journal = {
                "schema_version": "1.0",
                "what": what,
                "at": datetime.now(UTC).isoformat(),
                "homes": list(self._homes),
                "writes": [step.encode() for step in steps],
            }
            atomic.create(path, (json.dumps(journal, indent=1) + "\n").encode())
        except WriteError as error:
            raise Failed(f"{what}: {error}") from None
        except OSError as error:
            raise Failed(f"{what}: {path}: {error.strerror or error}") from None
        reason = _forward(steps)
        if not reason:
            seals.keep(steps)
            _drop(path)
            return
        _back(path, what, steps, reason)
        raise Failed(f"{what}: {reason}")

    def recover(self) -> None:
        """Finish what was interrupted; `held` calls it."""
        path = self.root / self._home / NAME
        loaded = _read(path)
        if loaded.missing:
            return
        what = schema.text(loaded.value, "what") or "an unknown writing"
        try:
            if loaded.reason:
                raise WriteError(loaded.reason)
            raw = loaded.value.get("writes")
            if not isinstance(raw, list):
                raise WriteError("it names no writes")
            steps = [writes.decode(self.root, each) for each in raw]
        except WriteError as error:
            raise Refused(
                f"{path} cannot be followed: {error}; look at it, then remove it"
            ) from None
        reason = _forward(steps)
        if reason:
            _back(path, what, steps, reason)
        else:
            seals.keep(steps)
            _drop(path)
        self.recovered = Recovered(what, not reason, reason)


@contextlib.contextmanager
def held(
    root: Path, home: str = RUN, others: Sequence[str] = (), *, timeout: float = TIMEOUT
) -> Iterator[Held]:
    """Hold the lock of a run or of an initiative, with everything finished that was interrupted.

    Args:
        root: the run's folder, or the initiative's.
        home: `RUN` or `COORDINATOR`; the folder is made where it is missing.
        others: further folders below ``root`` to lock, those of an initiative's runs.
        timeout: seconds to wait for another process.

    Raises:
        Refused: it is held by another process, or what was interrupted cannot be finished.
    """
    for _ in range(_TRIES):
        if home == RUN:
            _finish_above(root, timeout)
        wanted = {home, *others, *_homes(root, home)}
        with _locked(root, sorted(wanted, key=lambda each: (each != home, each)), timeout):
            behind = home == RUN and any(interrupted(up, COORDINATOR) for up in above(root))
            if behind or not set(_homes(root, home)) <= wanted:
                continue
            holder = Held(root, home, [home, *others])
            holder.recover()
            yield holder
            return
    raise Refused(f"{root} is written by other processes again and again; try again")


def interrupted(root: Path, home: str = RUN) -> Interrupted | None:
    """The writing that was begun here and not finished, or None; never raises."""
    loaded = _read(root / home / NAME)
    if loaded.missing:
        return None
    raw = loaded.value.get("writes")
    done = total = 0
    for each in raw if isinstance(raw, list) else ():
        total += 1
        with contextlib.suppress(WriteError):
            done += writes.is_done(writes.decode(root, each))
    what = schema.text(loaded.value, "what") or "an unknown writing"
    return Interrupted(what, schema.moment(loaded.value, "at"), done, total)


def above(root: Path) -> Iterator[Path]:
    """The folders above a run, nearest first, in which a coordinator keeps its files."""
    for place in list(Path(os.path.abspath(root)).parents)[:_ABOVE]:
        if (place / schema.MULTI_CONFIG).is_file() and (place / COORDINATOR).is_dir():
            yield place


def line(value: dict[str, Any]) -> bytes:
    """An object as one line of a log."""
    return (json.dumps(value, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def document(value: dict[str, Any]) -> bytes:
    """An object as a JSON file."""
    text = json.dumps(value, ensure_ascii=False, indent=2) + "\n"
    return text.encode("utf-8", "backslashreplace")


def _finish_above(root: Path, timeout: float) -> None:
    for place in above(root):
        if interrupted(place, COORDINATOR):
            with held(place, COORDINATOR, timeout=timeout):
                pass


def _read(path: Path) -> schema.Loaded:
    return schema.read_object(path, schema.LOG_LIMIT)


def _homes(root: Path, home: str) -> list[str]:
    """The folders that an interrupted writing had locked."""
    named = schema.strings(_read(root / home / NAME).value, "homes")
    return [each for each in named if writes.inside(root, each) and (root / each).is_dir()]


@contextlib.contextmanager
def _locked(root: Path, homes: Sequence[str], timeout: float) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in homes:
            path = schema.inside(root, name)
            if path is None:
                raise Refused(f"{clean_line(name, 200)} leads out of {root}")
            try:
                path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(locked_folder(str(path), timeout=timeout))
                if path.name == RUN:
                    stack.enter_context(foreign_lock.held(path))
            except LogError as error:
                raise Refused(str(error)) from None
            except OSError as error:
                raise Refused(f"{path}: {error.strerror or error}") from None
        yield


def _forward(steps: Sequence[Step]) -> str:
    """Do every step and look at it again; returns why not, "" where all are done."""
    try:
        for step in steps:
            writes.do(step)
        wrong = next((step for step in steps if not writes.is_done(step)), None)
    except WriteError as error:
        return clean_line(str(error))
    return f"{wrong.relative} does not hold what was written" if wrong else ""


def _back(path: Path, what: str, steps: Sequence[Step], reason: str) -> None:
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
            f"{what} is half done: {reason}; it cannot be taken back: {'; '.join(problems)} "
            f"({path} holds what stood in each file)"
        )
    _drop(path)


def _drop(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    with contextlib.suppress(OSError):
        atomic.sync_folder(str(path.parent))
