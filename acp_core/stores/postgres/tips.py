"""The id of a tip in a PostgreSQL store: the number of the revision, and the mark that names it for good."""

from __future__ import annotations


def tip_id(revision: int, mark: bytes) -> str:
    """The id of a tip: which revision, and which of that number."""
    return f"{revision}-{mark.hex()}"


def parts(id: str) -> tuple[int, bytes]:
    """The number and the mark of a tip's id, which a folder's files say; (0, b"") where it is none."""
    number, _, mark = id.partition("-")
    try:
        return (int(number), bytes.fromhex(mark)) if len(number) < 19 else (0, b"")
    except ValueError:
        return 0, b""
