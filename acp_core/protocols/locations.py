"""Where collaborations are: a folder's path, or a link to one elsewhere.

A link names its protocol by its scheme. What opens it, such as a token, is remembered by the
protocol; the key that stands for it everywhere else holds nothing secret.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.model.errors import InvalidInput

if TYPE_CHECKING:
    from acp_core.protocols.contract import Listing
    from acp_core.protocols.discovery import DiscoveredCollaboration
    from acp_core.protocols.registry import Protocol

MARK = "://"
RUNNING = "running:"
"""Stands among places for everything of this user that runs here, wherever it is."""

SearchRoot = Path | str
"""A folder to look under, the key of a collaboration elsewhere, or `RUNNING`."""


class BadLocation(InvalidInput, ValueError):
    """It leads nowhere; the message is one line, and never repeats a token."""


def is_link(text: str | os.PathLike[str]) -> bool:
    """Whether a location is a link rather than a path."""
    return isinstance(text, str) and MARK in text


def resolve(text: str, token: str | None = None) -> str:
    """The key of what a link leads to.

    Args:
        text: as a person wrote it.
        token: that opens it, given beside it; "": none; None: that of the environment.

    Raises:
        BadLocation: no protocol opens such links, or it is not written as its protocol asks.
    """
    from acp_core.protocols import registry

    found = _protocol(text)
    if found is None or found.locate is None:
        scheme = text.partition(MARK)[0][:20]
        known = sorted({scheme for each in registry.installed() for scheme in each.schemes})
        raise BadLocation(f"{scheme}://: unknown kind of link (known: {', '.join(known)})")
    try:
        key: str = registry.load(found.locate)(text, token)
    except ValueError as error:
        raise BadLocation(str(error)) from None
    return key


def find(location: str) -> DiscoveredCollaboration | None:
    """The collaboration at a key or a path, or None.

    Args:
        location: a folder's path, or a link that `resolve` gave.
    """
    from acp_core.protocols import registry
    from acp_core.protocols.discovery import DiscoveredCollaboration, identify

    if not is_link(location):
        return identify(Path(location), registry.installed())
    found = _protocol(location)
    return DiscoveredCollaboration(location, found) if found else None


def listing_of(link: str) -> Listing | None:
    """The list of the many collaborations that a link leads to; None where it leads to one."""
    from acp_core.protocols import registry

    found = _protocol(link)
    if found is None or found.listing is None or not is_list(link):
        return None
    made: Listing = registry.load(found.listing)(link)
    return made


def is_list(link: str) -> bool:
    """Whether a link leads to many collaborations; opens nothing."""
    found = _protocol(link)
    return found is not None and found.listing is not None and "#" not in link


def _protocol(link: str) -> Protocol | None:
    from acp_core.protocols import registry

    scheme = link.partition(MARK)[0].lower()
    return next((each for each in registry.installed() if scheme in each.schemes), None)
