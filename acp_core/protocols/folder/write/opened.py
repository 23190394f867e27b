"""A collaboration as a writer holds it: protocol.json and the log, read under the log's lock.

The state always follows from the log; what protocol.json says of it may lag behind and is
mended by the next write. Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Iterator

from acp_core.files import locked as files_locked
from acp_core.files.journal import blocks
from acp_core.files.locked import LockedLog, LogError, locked
from acp_core.files.reading import Unreadable, read_bounded, read_head
from acp_core.model.errors import Refused
from acp_core.model.light import TYPE_CHECKING, Any, NamedTuple
from acp_core.protocols.folder.read.log import LONG, History, is_full
from acp_core.protocols.folder.schema import records

if TYPE_CHECKING:
    from acp_core.protocols.folder.read.checkpoint import Checkpoint
    from acp_core.protocols.folder.read.log import Entries
    from acp_core.protocols.folder.schema.records import BadLine, Entry
    from acp_core.protocols.folder.state import Machine

from acp_core.protocols.folder.read.log import NEWLINES
from acp_core.protocols.folder.schema.records import is_shared, path_of
from acp_core.protocols.folder.state import SUPPORTING_FROZEN, fields_after

_TRIES = 5  # a writer that takes no lock may be in the middle of protocol.json
_PAUSE = 0.05
_TORN = "events.jsonl ends in a torn line: run `acp repair --folder {}`"
RETURNS = f"the lines of events.jsonl end in carriage returns only: {NEWLINES}"


class Opened(NamedTuple):
    """What a writer knows of a collaboration: everything follows from ``protocol`` and ``history``.

    ``size`` is that of the log in bytes, ``lines`` how many it has; ``tail`` is what stands after
    the last newline, which no event of ``history`` comes from; ``checkpoint`` is where to keep
    what ``history`` says of a long log.
    """

    folder: str
    protocol: dict[str, Any]
    history: History
    size: int
    lines: int
    tail: bytes = b""
    checkpoint: Checkpoint | None = None

    @property
    def dialect(self) -> str:
        """The dialect, by protocol.json."""
        return self.history.dialect

    @property
    def participants(self) -> tuple[str, ...]:
        """Who takes part, by protocol.json."""
        return self.history.participants

    @property
    def entries(self) -> Entries:
        """The events."""
        return self.history.entries

    @property
    def machine(self) -> Machine:
        """The state that they lead to."""
        return self.history.machine

    @property
    def bad(self) -> list[BadLine]:
        """The lines that are no events."""
        return self.history.check.bad_lines

    @property
    def full(self) -> bool:
        """Whether the log is as large as acp reads: no event can follow."""
        return is_full(self.lines, self.size)

    @property
    def last(self) -> Entry | None:
        """The last event, None in an empty log."""
        return self.entries[-1] if self.entries else None

    @property
    def last_seq(self) -> int:
        """The seq of the last event, 0 in an empty log."""
        last = self.last
        if last is None or last.seq is None:
            return max((entry.seq or 0 for entry in self.entries), default=0)
        return last.seq

    @property
    def next_seq(self) -> int:
        """The seq of the next event: lines that cannot be read count, too."""
        return self.last_seq + 1 + self.history.check.unread


class Held(NamedTuple):
    """The lock is held: the log to write to, and a warning ("" for none) about the lock."""

    log: LockedLog
    doubt: str


@contextlib.contextmanager
def lock(folder: str, *, force: bool = False, judged: bool = False) -> Iterator[Held]:
    """Hold the collaboration's lock.

    Args:
        folder: the collaboration.
        force: write even where a lock protects nothing.
        judged: the caller has asked already what a lock is worth here.

    Raises:
        Refused: there is no collaboration here, its log cannot be locked, or the body of the
            ``with`` could not write it.
    """
    if not os.path.isdir(folder):
        raise Refused(f"{folder} is not a folder; `acp init` starts a collaboration")
    if not os.path.lexists(path_of(folder, records.PROTOCOL_FILE)):
        raise Refused(f"missing protocol.json in {folder}")
    if not os.path.lexists(path_of(folder, records.LOG_FILE)):
        raise Refused(f"missing events.jsonl in {folder}; run `acp repair --folder {folder}`")
    doubt = "" if judged else refuse_lockless(folder, force)
    try:
        log_file = path_of(folder, records.LOG_FILE)
        with locked(log_file, force=force, reads=is_shared(folder)) as log:
            yield Held(log, doubt)
    except LogError as error:
        raise Refused(str(error)) from None


def read_protocol(folder: str) -> dict[str, Any]:
    """protocol.json, read again for a moment where somebody seems to be writing it.

    Raises:
        Refused: it cannot be read.
    """
    path = path_of(folder, records.PROTOCOL_FILE)
    for attempt in range(1, _TRIES + 1):
        try:
            return records.decode_protocol(read_bounded(path, records.MAX_PROTOCOL))
        except ValueError as error:
            if attempt == _TRIES:
                hint = f"run `acp repair --folder {folder}`"
                raise Refused(f"invalid protocol.json: {error}; {hint}") from None
        except Unreadable as error:
            if error.missing:
                raise Refused(f"missing protocol.json in {folder}") from None
            raise Refused(f"protocol.json: {error}") from None
        time.sleep(_PAUSE)
    raise AssertionError("unreachable")


def take(
    folder: str, protocol: dict[str, Any], data: bytes, log: LockedLog | None = None
) -> Opened:
    """What protocol.json and the log's bytes lead to.

    Args:
        folder: the collaboration.
        protocol: protocol.json.
        data: the log.
        log: whose bytes these are, where what an earlier run kept of a long one may be used.
    """
    participants, dialect = records.participant_ids(protocol), records.dialect_of(protocol)
    history, checkpoint, start, lines = None, None, 0, 0
    if log is not None and len(data) >= LONG:
        from acp_core.protocols.folder.read.checkpoint import Checkpoint

        checkpoint = Checkpoint(*log.identity(), participants, dialect)
        history = checkpoint.recall(lambda size: memoryview(data)[:size])
        start, lines = checkpoint.size, checkpoint.lines
    if history is None:
        history = History(participants, dialect)
    for block in blocks(data[start:], lines + 1):
        block = block.head(records.MAX_LINES - lines)  # readers stop there, too
        if not block.count:
            break
        history.read(block)
        lines += block.count
        if checkpoint is not None:
            checkpoint.take(block)
    tail = data[data.rfind(b"\n") + 1 :]
    return Opened(folder, protocol, history, len(data), lines, tail, checkpoint)


def open_locked(folder: str, log: LockedLog, *, full: bool = False, recall: bool = False) -> Opened:
    """The collaboration whose lock is held.

    Args:
        folder: the collaboration.
        log: its log.
        full: take a log that is too large as far as readers read it, for who appends nothing.
        recall: use what an earlier run kept of a long log.

    Raises:
        Refused: protocol.json cannot be read, its dialect is not known, or the log is torn.
    """
    protocol = read_protocol(folder)
    _require_known(folder, protocol)
    if log.size() > records.MAX_LOG:
        opened = take(folder, protocol, log.head(records.MAX_LOG))
        if not full:
            from acp_core.protocols.folder.rules import unrecoverable_log  # late: hardly ever

            unrecoverable_log.check(folder, opened.history, "", full_log=True)
            raise Refused(f"{log.path} is larger than {records.MAX_LOG} bytes")
        return opened
    for _ in range(_TRIES):
        torn = log.is_torn()
        data = log.read(records.MAX_LOG)
        if torn:
            raise Refused(_torn(folder, data))
        if not data or data.endswith(b"\n"):
            return take(folder, protocol, data, log if recall else None)
    raise Refused(f"{folder}: another program keeps writing events.jsonl without a lock; try again")


def open_unlocked(folder: str, *, full: bool = False) -> Opened:
    """The collaboration as it stands, without its lock: for showing what an event would do.

    Args:
        folder: the collaboration.
        full: as for `open_locked`.

    Raises:
        Refused: as `open_locked`, or the log cannot be read.
    """
    protocol = read_protocol(folder)
    _require_known(folder, protocol)
    try:
        data = read_bounded(path_of(folder, records.LOG_FILE), records.MAX_LOG)
    except Unreadable as error:
        if full and error.errno == errno.EFBIG:
            return take(
                folder, protocol, read_head(path_of(folder, records.LOG_FILE), records.MAX_LOG)
            )
        raise Refused(f"{path_of(folder, records.LOG_FILE)}: {error}") from None
    if data and not data.endswith(b"\n"):
        raise Refused(_torn(folder, data))
    return take(folder, protocol, data)


def _torn(folder: str, data: bytes) -> str:
    """Why nothing can be appended to a log that ends within a line."""
    if b"\r" in data[data.rfind(b"\n") + 1 :]:
        return RETURNS
    return _TORN.format(folder)


def _require_known(folder: str, protocol: dict[str, Any]) -> None:
    if records.dialect_of(protocol) == records.UNKNOWN_DIALECT:
        raise Refused(
            f"unknown schemaVersion {protocol['schemaVersion']!r} in {folder}; acp can read but not change this collaboration"
        )


def with_state(opened: Opened) -> dict[str, Any]:
    """protocol.json as it must be after the log: every key that is not derived is kept."""
    first, last = (opened.entries[0], opened.entries[-1]) if opened.entries else (None, None)
    frozen = {e.doc for e in opened.history.deliverables if (e.event, e.role) == SUPPORTING_FROZEN}
    return fields_after(opened.protocol, opened.machine, first, last, frozen)


def refuse_lockless(folder: str, force: bool) -> str:
    """Refuse a file system on which a lock protects nothing.

    Returns:
        A warning where locks hold only under conditions; "" elsewhere.

    Raises:
        Refused: a lock protects nothing here, and the writer does not insist.
    """
    kind = files_locked.kind(folder, files_locked.here())
    if kind in files_locked.NO_LOCKS and not force:
        raise Refused(
            f"{folder} is on {kind}, where locks do not work between machines: "
            "two writers could damage the log; --force writes anyway"
        )
    if kind in files_locked.DOUBTFUL_LOCKS:
        return f"{folder} is on {kind}: locks hold between hosts only with the right mount options"
    if kind in files_locked.NO_LOCKS:
        return f"{folder} is on {kind}, where locks protect nothing"
    return ""
