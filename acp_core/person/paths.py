"""Where acp keeps what is its own: never in a collaboration's folder.

The folders are the ones that platformdirs gives for the name "acp"; they are worked out
here with the standard library, because commands that run under a bare Python need them.
"""

from __future__ import annotations

import os
from pathlib import Path

from acp_core.person.places import CACHE_VARIABLE as CACHE_VARIABLE
from acp_core.person.places import CONFIG_VARIABLE as CONFIG_VARIABLE
from acp_core.person.places import cache_place, config_place, place_of

STATE_VARIABLE = "ACP_STATE"


def state_folder() -> Path:
    """The user's state folder: backups, recordings, logs, what was seen. It need not exist."""
    return _folder(STATE_VARIABLE, "XDG_STATE_HOME", ".local/state")


def config_folder() -> Path:
    """The user's configuration folder, which holds ``config.toml``. It need not exist."""
    return Path(config_place())


def cache_folder() -> Path:
    """The user's cache folder: what can be fetched or made again. It need not exist."""
    return Path(cache_place())


def key_of(folder: str) -> str:
    """The one name of a collaboration, however its path is written; a URL stays as it is."""
    return folder if "://" in folder else os.path.realpath(folder)


def _folder(own: str, shared: str, below_home: str) -> Path:
    return Path(place_of(own, shared, below_home))
