"""Where a collaboration stands: the address that a link stands for, and whether a folder is shared.

Light, as nothing is opened yet, and as every write asks the latter.
"""

from __future__ import annotations

import os

from acp_core.person.paths import is_pinned


def locate(text: str, token: str | None = None) -> str:
    """The key of a store, or of a collaboration in one.

    Args:
        text: an address as people write it.
        token: not used: how people authenticate is configured elsewhere.

    Raises:
        ValueError: it is none, or acp does not use what it names.
    """
    from acp_core.stores.address import BadAddress, parse  # late: who writes needs no links

    try:
        return parse(text).link
    except BadAddress as error:
        raise ValueError(str(error)) from None


SHARE = os.path.join(".acp", "share.json")
"""The file by which a folder says that it is shared with other hosts."""


def path_of(folder: str, name: str) -> str:
    """A file of the collaboration."""
    return os.path.join(folder, name)


def is_shared(folder: str) -> bool:
    """Whether the folder is shared with other hosts: then its store has the say.

    One that this account shares stays so, whatever a program removes there.
    """
    return os.path.lexists(path_of(folder, SHARE)) or is_pinned(folder)
