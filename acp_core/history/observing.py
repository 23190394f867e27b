"""What a recording keeps of a look: what is new in the files, the Snapshot, and participants' loops."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from acp_core.files.reading import Unreadable, open_regular
from acp_core.history.schema import (
    LARGEST,
    LARGEST_LOG,
    MISSING,
    PRESENT,
    LoopChange,
    Observed,
    Seen,
)
from acp_core.model import Snapshot
from acp_core.model.past import TrackedFile

if TYPE_CHECKING:
    from acp_core.agents.state import Run, RunnerState

_TAIL = 4_096  # bytes before its old end that must be as they were, or the log was rewritten
_JUST_NOW = 50_000_000  # ns: a file changed this short before it was read may change unnoticed
_CHUNK = 1 << 20
Known = tuple[int | None, int, bytes, str]
"""What a recording holds of a file: time of change (ns), size, digest of all, state."""


class _Memory(NamedTuple):
    """A file as it was found last. ``digest`` and ``tail`` are those of a log."""

    stamp: tuple[int, int, int] | None  # time of change (ns), size, inode
    settled: bool
    digest: Any = None
    tail: bytes = b""


class Observing:
    """The files of one collaboration; each is read only when it may have changed.

    Args:
        known: What the recording holds already, by name.
    """

    def __init__(self, known: dict[str, Known]) -> None:
        self._known = known
        self._memory: dict[str, _Memory] = {}

    def read_changes(self, tracked: tuple[TrackedFile, ...], now_ns: int) -> list[Observed]:
        """What may be new in these files.

        Args:
            tracked: the files as the collaboration names them now.
            now_ns: nanoseconds since 1970: what changed just before is read again.
        """
        found = [self._read_change(file, now_ns) for file in tracked]
        return [each for each in found if each is not None]

    def unsettled(self) -> bool:
        """Whether a file was changed so short ago that it must be looked at again soon."""
        return any(not memory.settled for memory in self._memory.values())

    def _read_change(self, file: TrackedFile, now_ns: int) -> Observed | None:
        memory = self._memory.get(file.name)
        try:
            descriptor, found = open_regular(file.path)
        except Unreadable as error:
            return self._absent(file, MISSING if error.missing else error.reason)
        try:
            stamp = _stamp(found)
            if memory is not None and memory.stamp == stamp and memory.settled:
                return None
            known = self._known.get(file.name)
            settled = now_ns - found.st_mtime_ns > _JUST_NOW
            if not found.st_size and not settled:  # most likely somebody is about to write it
                self._memory[file.name] = _Memory(stamp, settled)
                return None
            if memory is None and known and settled and known[:2] == stamp[:2] and not file.log:
                self._memory[file.name] = _Memory(stamp, True)
                return None
            if found.st_size > (LARGEST_LOG if file.log else LARGEST):
                self._memory[file.name] = _Memory(stamp, settled)
                return _observed(file, stamp[0], found.st_size, b"", b"", state="too large to keep")
            if file.log:
                return self._log(file, descriptor, stamp, settled, memory, known)
            data = _read(descriptor, LARGEST + 1)
            if _stamp(os.fstat(descriptor)) != stamp:  # it is being written: look again soon
                self._memory[file.name] = _Memory(stamp, False)
                return None
        except OSError as error:
            return self._absent(file, (error.strerror or str(error)).lower())
        finally:
            os.close(descriptor)
        self._memory[file.name] = _Memory(stamp, settled)
        return _observed(file, stamp[0], len(data), hashlib.sha256(data).digest(), data)

    def _absent(self, file: TrackedFile, state: str) -> Observed:
        """Said every time: another recorder may have kept the file while it was there."""
        self._memory[file.name] = _Memory(None, True)
        return _observed(file, None, 0, b"", b"", state=state)

    def _log(
        self,
        file: TrackedFile,
        descriptor: int,
        stamp: tuple[int, int, int],
        settled: bool,
        memory: _Memory | None,
        known: Known | None,
    ) -> Observed:
        before = memory.stamp if memory else None
        if (
            memory is not None
            and memory.digest is not None
            and before is not None
            and before[2] == stamp[2]
            and before[1] <= stamp[1]
            and _at(descriptor, before[1] - len(memory.tail), len(memory.tail)) == memory.tail
        ):
            start, follows = before[1], memory.digest.digest()
            data = _at(descriptor, start, LARGEST_LOG)
            digest = memory.digest.copy()
            digest.update(data)
            tail = (memory.tail + data)[-_TAIL:]
        else:
            everything = _at(descriptor, 0, LARGEST_LOG)
            start, follows, digest = _after(everything, known)
            data, tail = everything[start:], everything[-_TAIL:]
        size = start + len(data)
        self._memory[file.name] = _Memory((stamp[0], size, stamp[2]), settled, digest, tail)
        return Observed(
            file.name, True, file.document, stamp[0], size, digest.digest(), data, start, follows
        )

    def forget(self, known: dict[str, Known]) -> None:
        """Begin anew, because another recorder has kept something meanwhile."""
        self._known = known
        self._memory = {}


def _after(everything: bytes, known: Known | None) -> tuple[int, bytes, Any]:
    """Where what is new in a log begins, the digest of what is before, and that of all of it."""
    digest = hashlib.sha256()
    if known is not None and known[3] == PRESENT and 0 < known[1] <= len(everything):
        digest.update(memoryview(everything)[: known[1]])
        if digest.digest() == known[2]:
            digest.update(memoryview(everything)[known[1] :])
            return known[1], known[2], digest
        digest = hashlib.sha256()
    digest.update(everything)
    return 0, b"", digest


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_size, found.st_ino


def _observed(
    file: TrackedFile,
    changed: int | None,
    size: int,
    whole: bytes,
    data: bytes,
    *,
    state: str = PRESENT,
) -> Observed:
    return Observed(file.name, file.log, file.document, changed, size, whole, data, state=state)


def _read(descriptor: int, limit: int) -> bytes:
    parts = []
    while limit and (part := os.read(descriptor, min(limit, _CHUNK))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)


def _at(descriptor: int, start: int, size: int) -> bytes:
    os.lseek(descriptor, start, os.SEEK_SET)
    return _read(descriptor, size)


def seen_in(snapshot: Snapshot) -> Seen:
    """The verdict, phase, who was waited for, what needed somebody, and the findings."""
    content = {
        "run": snapshot.run_id,
        "status": snapshot.status.value,
        "phase": snapshot.phase,
        "round": snapshot.round,
        "verdict": snapshot.verdict.value,
        "events": len(snapshot.events),
        "source": snapshot.source.state.value,
        "doubt": snapshot.doubt,
        "waiting": [[turn.participant, turn.what, _iso(turn.since)] for turn in snapshot.turns],
        "causes": [[cause.code, cause.sentence] for cause in snapshot.causes],
        "needs": [[need.code, need.sentence] for need in snapshot.needs],
    }
    findings = [
        [each.code, each.severity.value, each.message, each.document, each.line, each.event]
        for each in snapshot.findings
    ]
    return Seen(snapshot.as_of.timestamp(), _json(content), _json(findings))


def loop_change(loop: RunnerState, now: datetime) -> LoopChange:
    """What a loop does, with which program, and how its last run went.

    Counts that grow while a program runs are kept when the run has ended: they would be a change
    with every line that it prints.
    """
    saved, run = loop.shown, loop.run
    content: dict[str, object] = {
        "phase": saved.phase.value,
        "since": _iso(saved.since),
        "note": saved.note,
        "alive": loop.alive,
        "died": loop.died,
        "pid": loop.pid,
        "started": _iso(saved.started),
        "program": saved.program,
        "version": saved.version,
        "model": saved.model,
        "mode": saved.mode,
        "turn": saved.turn,
        "turns": saved.turns,
        "attempt": saved.attempt,
        "restarts": saved.restarts,
        "run": _run(run) if run else None,
    }
    if run is None or run.ended is not None:
        content["tokens"] = [saved.tokens_in, saved.tokens_out]
        content["cost"] = saved.cost
        content["estimated"] = saved.estimated
    return LoopChange(now.timestamp(), loop.participant, _json(content))


def _run(run: Run) -> dict[str, object]:
    content: dict[str, object] = {
        "number": run.number,
        "started": _iso(run.started),
        "ended": _iso(run.ended),
        "exit": run.exit,
        "stopped": run.stopped,
    }
    if run.calls:
        content["calls"] = [[each.at, each.what, each.status] for each in run.calls]
    return content


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
