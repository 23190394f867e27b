"""Copies that acp keeps of a collaboration's files, in the user's state folder.

Nothing of this lies in the collaboration itself, and nothing of it is needed to append, wait
or validate. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from datetime import datetime
from typing import Any

from acp_core.files import atomic, modes
from acp_core.person.paths import state_folder
from acp_core.protocols.folder import schema

_CHARTER = "charter.json"


def place(folder: str) -> str:
    """Where copies of this collaboration's files are kept: one folder for each real path."""
    real = os.path.realpath(folder)
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:16]
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in os.path.basename(real))
    return os.path.join(state_folder(), "backups", f"{name[:40]}-{digest}")


def keep(folder: str, name: str, data: bytes, now: datetime) -> str:
    """Keep a copy of a file's bytes; returns the copy's path.

    Raises:
        OSError: the copy could not be made.
    """
    store = place(folder)
    modes.private_folder(store)
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    for number in range(1, 1000):
        path = os.path.join(store, f"{stamp}-{number:03d}-{name}")
        with contextlib.suppress(FileExistsError):
            atomic.create(path, data, private=True)
            return path
    raise FileExistsError(f"{store} already has a thousand copies from this second")


def keep_charter(folder: str, protocol: dict[str, Any]) -> None:
    """Keep the newest good protocol.json, where that is possible: repairs look there first."""
    with contextlib.suppress(OSError, UnicodeError):
        store = place(folder)
        modes.private_folder(store)
        path, data = os.path.join(store, _CHARTER), schema.encode_protocol(protocol)
        atomic.replace(path, data, private=True)


def kept_charter(folder: str) -> dict[str, Any] | None:
    """The newest good protocol.json that was kept, or None."""
    try:
        with open(os.path.join(place(folder), _CHARTER), "rb") as file:
            return schema.decode_protocol(file.read(schema.MAX_PROTOCOL + 1))
    except (OSError, ValueError):
        return None
