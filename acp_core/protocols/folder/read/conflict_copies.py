"""What gave way in a shared folder, because another host was first, and waits to be settled.

The process that synchronizes the folder keeps such texts in ``.acp/kept``, as NAME.TIME.HOST; what
was settled since has another ending. Standard library only.
"""

from __future__ import annotations

import json
import os
import re

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.model.errors import Refused
from acp_core.model.light import NamedTuple
from acp_core.person.places import is_pinned

FOLDER = os.path.join(".acp", "kept")

_SHARE = os.path.join(".acp", "share.json")

_NAME = r"(.+)\.\d{8}T\d{6}Z\.[a-z0-9-]+(\.\d+)?"  # compiled where it is needed: seldom

_MOST = 100  # texts

_LIMIT = 1 << 16  # bytes of share.json


class KeptText(NamedTuple):
    """A text that gave way: of which document, and where it is, below the folder."""

    document: str
    file: str


def read_kept(folder: str) -> tuple[KeptText, ...]:
    """What gave way and was not settled, the latest text of each document."""
    if not os.path.lexists(os.path.join(folder, _SHARE)):
        return ()
    try:
        names = sorted(os.listdir(os.path.join(folder, FOLDER)))
    except OSError:
        return ()
    found: dict[str, KeptText] = {}
    for name in names:
        match = re.fullmatch(_NAME, name)
        if match and len(found) < _MOST:
            document = _document(folder, match[1])
            found[document] = KeptText(document, f".acp/kept/{name}")
    return tuple(found.values())


def newer_share(folder: str) -> str:
    """Why a folder that a newer acp has shared can only be looked at here; "" for any other."""
    path = os.path.join(folder, _SHARE)
    if not os.path.lexists(path):
        return ""
    from acp_core.stores import base  # late: most folders are not shared

    try:
        return base.newer_share(json.loads(read_bounded(path, _LIMIT)))
    except (Unreadable, ValueError, RecursionError):
        return ""  # whoever wants to publish says so


def strange_share(folder: str) -> str:
    """Why a folder that this account shares is not used with its store: what names that is not as agreed; else ""."""
    if not is_pinned(folder) or newer_share(folder):
        return ""
    from acp_core.stores import base  # late: most folders are not shared

    try:
        base.pinned_address(folder)
    except Refused as error:
        return str(error)
    return ""


def _document(folder: str, plain: str) -> str:
    """The document that a plain name stands for: one in a folder below has "__" for "/"."""
    below = plain.replace("__", "/")
    return below if below != plain and os.path.isfile(os.path.join(folder, below)) else plain
