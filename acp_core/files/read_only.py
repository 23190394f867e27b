"""What acp leaves as it is: folders that only show what another host conducts, where nobody acts, and files
of a later version of acp, of which this one says so. Standard library only.
"""

from __future__ import annotations

import json
import os

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.text import clean_line

FILE = "mirror.json"
"""In a reader's folder: whose collaboration it shows, and the files of it."""
PLACE = ".acp/mirror"
"""In a reader's folder: where the files lie, out of the way of discovery."""
_LARGEST = 2 << 20  # bytes of the former


def holder(folder: str | os.PathLike[str]) -> str:
    """Who conducts what a folder only shows, as a sentence; "" for a folder that shows nothing so."""
    path = os.path.abspath(folder)
    inside = f"{os.sep}{PLACE.replace('/', os.sep)}{os.sep}"
    top = path.partition(inside)[0] if inside in path else path
    place = os.path.join(top, FILE)
    if top == path and not os.path.lexists(place):
        return ""
    try:
        value = json.loads(read_bounded(place, _LARGEST))
        host, account = clean_line(str(value["host"]), 80), clean_line(str(value["account"]), 80)
    except (Unreadable, ValueError, TypeError, KeyError, RecursionError):
        host, account = "another host", "unknown"
    shown = clean_line(top, 300)
    return (
        f"{host} ({account}) controls this run: {shown} is a mirror, which only shows it; "
        f"`acp act {shown}` lists what you can ask {host} for"
    )


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
