"""What ``acp share`` and ``acp sync`` do where a mirror is filled or read."""

from __future__ import annotations

from acp_core.model.errors import NotStarted
from acp_core.model.text import clean_line
from acp_core.protocols.folder.conduct import following
from acp_core.protocols.folder.mirror import publishing
from acp_core.protocols.folder.mirror.joining import bring, is_reader
from acp_core.protocols.folder.mirror.publishing import Leaving, Publisher
from acp_core.protocols.folder.write import sharing as shares
from acp_core.protocols.kit.mirroring import kind_of as kind_of
from acp_core.stores import base as manifests
from acp_core.stores.opening import open_engine


def is_mirror(folder: str) -> bool:
    """Whether this account fills or reads a mirror in a folder."""
    return bool(manifests.pinned_mark(folder)) or is_reader(folder)


def plan(folder: str, url: str, id: str) -> Leaving:
    """What would leave if the folder's collaboration was mirrored.

    Raises:
        Refused: it cannot be shared so.
    """
    return publishing.leaving(folder, shares.address_for(folder, url, id))


def begin(folder: str, url: str, id: str) -> str:
    """Begin a mirror, and the process that keeps it; a sentence on that.

    Raises:
        Refused: it is not shared.
        OSError: a file could not be read or written.
    """
    done = publishing.share(folder, shares.address_for(folder, url, id))
    said = f"Shared as a mirror. Others join with: acp join {clean_line(done.address.typed, 300)} FOLDER"
    try:
        following.begin(folder)
    except NotStarted as error:
        return f"{said}. To keep it up to date, run: acp sync {clean_line(folder, 300)} ({error})"
    return f"{said}. acp keeps it up to date in the background until the run has ended."


def sync_once(folder: str) -> tuple[str, ...]:
    """Look at the store once; sentences on that.

    Raises:
        Refused: the store cannot be read, or what it holds is refused.
        OSError: a file could not be written.
    """
    with open_engine(manifests.pinned_address(folder)) as engine:
        if mark := manifests.pinned_mark(folder):
            left = Publisher(folder, engine, mark).publish()
            return ("published what changed" if left else "the mirror is up to date",)
        with manifests.held(folder):
            came = bring(folder, engine)
    return (
        *([f"from the store: {', '.join(map(clean_line, came))}"] if came else []),
        "up to date",
    )
