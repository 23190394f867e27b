"""From a location to a collaboration: a folder's path, or the address of one in a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from acp_core.protocols.contract import Collaboration


def open_location(location: str) -> Collaboration:
    """Open a collaboration. Never raises for what stands there."""
    if "://" in location:
        from acp_core.protocols.folder.read.elsewhere import (
            StoreCollaboration,
        )  # only links need it

        return StoreCollaboration(location)
    from acp_core.protocols.folder.read.detect import shows_mirror

    if shows_mirror(location):
        from acp_core.protocols.folder.mirror.opened import MirrorCollaboration  # only mirrors

        return MirrorCollaboration(location)
    from acp_core.protocols.folder.read.collaboration import open_folder

    return open_folder(location)
