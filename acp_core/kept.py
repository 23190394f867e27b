"""The files of a collaboration of which a recording keeps every version."""

from __future__ import annotations

from typing import NamedTuple


class Kept(NamedTuple):
    """One file.

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
