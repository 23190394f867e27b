"""Which folders this account has agreed to share, and where: a file for each in its configuration.

Agents write in a shared folder, and not here: what the folder itself says of its store, or no longer
says, is held against this. Standard library only.
"""

from __future__ import annotations

import os

from acp_core.person.places import config_place


def pins_folder() -> str:
    """The folder of all pins. It need not exist."""
    return os.path.join(config_place(), "shared")


def pin_of(folder: str | os.PathLike[str]) -> str:
    """The file in which this account agreed to a folder's store. It need not exist."""
    from hashlib import sha256  # late: accounts that share nothing never need it

    name = sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:32]
    return os.path.join(pins_folder(), f"{name}.json")


def is_pinned(folder: str | os.PathLike[str]) -> bool:
    """Whether this account has shared or joined a folder, whatever the folder says by now."""
    return os.path.isdir(pins_folder()) and os.path.lexists(pin_of(folder))
