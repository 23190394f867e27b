"""Files of a later version of acp: this one says so, and leaves them as they are. Standard library only."""

from __future__ import annotations

NEWER = "written by a newer acp: use that version"
"""What is said of such a file, behind its name."""


def is_newer(said: object, schema: str) -> bool:
    """Whether what a file names as its schema is a later version of one that this acp knows.

    Args:
        said: what stands in the file; anything.
        schema: the one of this acp, such as ``acp.attention/1``.
    """
    kind, _, known = schema.rpartition("/")
    given, _, version = said.rpartition("/") if isinstance(said, str) else ("", "", "")
    return (
        given == kind
        and version.isascii()
        and version.isdecimal()
        and int(version[:9]) > int(known)
    )
