"""What is known of a collaboration's past: the files that a recording tracks, or a log made of it."""

from __future__ import annotations

from typing import NamedTuple


class TrackedFile(NamedTuple):
    """A file of which a recording keeps every version.

    ``name`` is its path relative to the collaboration's folder, with "/" (it may begin with
    ".."); ``path`` is where it lies, unaltered. A ``log`` is only ever appended to: of each
    version the recording keeps what was added. ``document`` is its id in Snapshots, "" where
    it is none. A file that ``follows`` the log is written just after an event, and says what
    follows from it.
    """

    name: str
    path: str
    log: bool = False
    document: str = ""
    follows: bool = False


class PastLog(NamedTuple):
    """A past that no file holds as it is, as a log from which the protocol reads it again.

    ``name`` is that of the log's file, ``data`` what stands in it after the last event. For each
    event of the last Snapshot, ``ends`` says where its part of ``data`` ends, in bytes, and
    ``times`` when it was written, in seconds since 1970, None where that is not known.
    """

    name: str
    data: bytes
    ends: tuple[int, ...]
    times: tuple[float | None, ...]

    def until(self, events: int) -> bytes:
        """The log as far as it had got.

        Args:
            events: how many of its events had happened; at most as many as there are.
        """
        return self.data[: self.ends[events - 1]] if events else b""
