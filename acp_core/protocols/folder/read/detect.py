"""Whether a folder holds a folder collaboration, and the newest events of its log, from its last bytes.

Source: folder protocol specification, "Files" and "Event log".
"""

from __future__ import annotations

import os
from pathlib import Path

from acp_core.files import read_only
from acp_core.files.reading import Unreadable, open_regular, read_bounded
from acp_core.protocols.discovery import NewestEvent
from acp_core.protocols.folder.schema import records
from acp_core.protocols.folder.schema.records import Entry

_KEYS = ("currentPhase", "completionGates", "participants", "proposalOwner", "waitingFor")

_FIRST = 65_536  # bytes of the log that are looked at to tell what it is


def detect(folder: Path | str) -> bool:
    """Whether a folder collaboration stands in this very folder, however damaged."""
    path = os.fspath(folder)
    if shows_mirror(path):
        return True
    try:
        protocol = records.decode_protocol(
            read_bounded(os.path.join(path, records.PROTOCOL_FILE), records.MAX_PROTOCOL)
        )
    except (Unreadable, ValueError):
        return _looks_like_one(path)
    return sum(key in protocol for key in _KEYS) >= 2 or _looks_like_one(path)


def shows_mirror(folder: str) -> bool:
    """Whether a folder only shows what another host conducts, and holds no collaboration itself.

    This account has joined it there: agents that write such a file hide nothing by it.
    """
    if not os.path.lexists(os.path.join(folder, read_only.FILE)):
        return False
    from acp_core.stores.address import pinned_reads  # only mirrors need it

    return bool(pinned_reads(folder))


def _looks_like_one(path: str) -> bool:
    """By the documents around it, or by the first event of the log."""
    documents = sum(os.path.lexists(os.path.join(path, name)) for name in records.DOCUMENTS)
    log = os.path.join(path, records.LOG_FILE)
    if documents >= 3:
        markers = (os.path.join(path, records.PROTOCOL_FILE), log)
        return any(os.path.lexists(marker) for marker in markers)
    try:
        descriptor, _ = open_regular(log)
    except Unreadable:
        return False
    try:
        first = os.read(descriptor, _FIRST).split(b"\n", 1)[0]
    except OSError:
        return False
    finally:
        os.close(descriptor)
    entry = records.parse_line(first, 1)
    return isinstance(entry, Entry) and entry.event == "initialized" and not entry.faults


_TAIL = 65_536  # bytes that are looked at


def newest(folder: Path, most: int) -> tuple[NewestEvent, ...]:
    """The newest events of the log in a folder, in order, at most ``most``.

    Lines that cannot be read, or are still being written, are left out. A folder that shows a
    collaboration of another host tells none: its log is not here.

    Raises:
        Unreadable: the log is missing, no regular file, or may not be read.
        OSError: the disk failed.
    """
    if shows_mirror(str(folder)):
        return ()
    descriptor, found = open_regular(folder / records.LOG_FILE)
    try:
        start = max(0, found.st_size - _TAIL)
        data = os.pread(descriptor, _TAIL, start)
    finally:
        os.close(descriptor)
    lines = data.split(b"\n")[
        bool(start) : -1
    ]  # the first may be the end of one, the last the start
    entries = (records.parse_any(line, 0) for line in lines[-most:])
    return tuple(
        NewestEvent(entry.at, entry.sender, entry.event, entry.summary)
        for entry in entries
        if isinstance(entry, records.Entry)
    )


def locate(text: str, token: str | None = None) -> str:
    """The key of a store, or of a collaboration in one.

    Args:
        text: an address as people write it.
        token: not used: how people authenticate is configured elsewhere.

    Raises:
        ValueError: it is none, or acp does not use what it names.
    """
    from acp_core.stores.address import BadAddress, parse  # late: who writes needs no links

    try:
        return parse(text).link
    except BadAddress as error:
        raise ValueError(str(error)) from None
