"""The newest events of a log, from its last bytes: for who waits until it is read.

Source: folder protocol specification, "Event log".
"""

from __future__ import annotations

import os
from pathlib import Path

from acp_core.files.reading import open_regular
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.read.detect import shows_mirror
from acp_core.protocols.newest import NewestEvent

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
    descriptor, found = open_regular(folder / schema.LOG_FILE)
    try:
        start = max(0, found.st_size - _TAIL)
        data = os.pread(descriptor, _TAIL, start)
    finally:
        os.close(descriptor)
    lines = data.split(b"\n")[
        bool(start) : -1
    ]  # the first may be the end of one, the last the start
    entries = (schema.parse_any(line, 0) for line in lines[-most:])
    return tuple(
        NewestEvent(entry.at, entry.sender, entry.event, entry.summary)
        for entry in entries
        if isinstance(entry, schema.Entry)
    )
