"""The account's folders as plain texts, for commands that agents run at every turn: pathlib costs them milliseconds.

Everything else uses `acp_core.person.paths`. Which folders this account has agreed to share, and where,
stands in a file for each in its configuration: agents write in a shared folder, and not here, so what
the folder itself says of its store, or no longer says, is held against this. Standard library only.
"""

from __future__ import annotations

import os
import sys

CONFIG_VARIABLE = "ACP_CONFIG"
CACHE_VARIABLE = "ACP_CACHE"


def config_place() -> str:
    """See `acp_core.person.paths.config_folder`."""
    return place_of(CONFIG_VARIABLE, "XDG_CONFIG_HOME", ".config")


def cache_place() -> str:
    """See `acp_core.person.paths.cache_folder`."""
    return place_of(CACHE_VARIABLE, "XDG_CACHE_HOME", ".cache")


def place_of(own: str, shared: str, below_home: str) -> str:
    """``$own``; else "acp" in ``$shared`` (only an absolute one counts) or below the home folder."""
    if os.environ.get(own):
        return os.path.abspath(os.path.expanduser(os.environ[own]))
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
        return os.path.join(base, "acp", "acp")
    if sys.platform == "darwin" and not os.path.isabs(os.environ.get(shared, "")):
        return os.path.join(home, "Library", "Application Support", "acp")
    base = os.environ.get(shared, "")
    return os.path.join(base if os.path.isabs(base) else os.path.join(home, below_home), "acp")


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
