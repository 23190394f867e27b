"""Where acp keeps what is its own: never in a collaboration's folder.

The folders are the ones that platformdirs gives for the name "acp"; they are worked out here with the
standard library, because commands that run under a bare Python need them, as plain texts where they are
needed at every turn: pathlib costs milliseconds.

Which folders this account has agreed to share, and where, stands in a file for each in its
configuration: agents write in a shared folder, and not here, so what the folder itself says of its
store, or no longer says, is held against this.
"""

from __future__ import annotations

import os
import sys

from acp_core.model.light import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

STATE_VARIABLE = "ACP_STATE"
CONFIG_VARIABLE = "ACP_CONFIG"
CACHE_VARIABLE = "ACP_CACHE"


def state_folder() -> Path:
    """The user's state folder: backups, recordings, logs, what was seen. It need not exist."""
    return _path(place_of(STATE_VARIABLE, "XDG_STATE_HOME", ".local/state"))


def config_folder() -> Path:
    """The user's configuration folder, which holds ``config.toml``. It need not exist."""
    return _path(config_place())


def cache_folder() -> Path:
    """The user's cache folder: what can be fetched or made again. It need not exist."""
    return _path(cache_place())


def _path(place: str) -> Path:
    from pathlib import Path

    return Path(place)


def config_place() -> str:
    """The path of `config_folder`."""
    return place_of(CONFIG_VARIABLE, "XDG_CONFIG_HOME", ".config")


def cache_place() -> str:
    """The path of `cache_folder`."""
    return place_of(CACHE_VARIABLE, "XDG_CACHE_HOME", ".cache")


def key_of(folder: str) -> str:
    """The one name of a collaboration, however its path is written; a URL stays as it is."""
    return folder if "://" in folder else os.path.realpath(folder)


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
