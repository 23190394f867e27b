"""Whether documents changed: for programs whose change is all that can be seen of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime

from acp_core.files.reading import Unreadable, read_bounded, stamp

_LIMIT = 64 << 20


def digests(paths: Iterable[str]) -> dict[str, str]:
    """The content of each file, as something short that changes with it; "" where none is."""
    found = {}
    for path in paths:
        try:
            found[path] = hashlib.sha256(read_bounded(path, _LIMIT)).hexdigest()
        except Unreadable:
            found[path] = ""
    return found


def before(paths: Iterable[str], moment: datetime) -> dict[str, str]:
    """As `digests` would have been at an earlier moment: a file written since then had another."""
    found = digests(paths)
    for path in found:
        there = stamp(path)
        if there is not None and there.modified / 1e9 > moment.timestamp():
            found[path] = "another"
    return found
