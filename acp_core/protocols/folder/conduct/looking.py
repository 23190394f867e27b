"""One look at the store of a shared folder, for who waits or asks what to do. Standard library only."""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime

from acp_core.protocols.folder.mirror.joining import bring, is_reader
from acp_core.protocols.folder.write import handover, synchronizing
from acp_core.stores import base as manifests
from acp_core.stores.engine import StoreUnreachable
from acp_core.stores.opening import open_engine


def bring_news(folder: str) -> str:
    """Bring what is new in the store, unless a process does so anyway; "" or a sentence about it.

    Raises:
        Refused: what the store holds cannot be taken, or its address is not this account's.
        OSError: a file could not be written.
    """
    if handover.is_synced(folder):
        return ""
    try:
        with open_engine(manifests.pinned_address(folder)) as engine:
            if is_reader(folder):
                with manifests.held(folder):
                    bring(folder, engine)
                return ""
            return "; ".join(synchronizing.sync(folder, engine, publish=False).notes)
    except StoreUnreachable as error:
        return f"as of {_read_at(folder)}; not reached since: {error}"


def _read_at(folder: str) -> str:
    with contextlib.suppress(OSError):
        at = os.stat(os.path.join(folder, manifests.BASE)).st_mtime
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return "an unknown time"
