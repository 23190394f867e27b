"""Where acp keeps what is its own: never in a collaboration's folder.

The folders are the ones that platformdirs gives for the name "acp"; they are worked out
here with the standard library, because commands that run under a bare Python need them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

STATE_VARIABLE = "ACP_STATE"
CONFIG_VARIABLE = "ACP_CONFIG"
CACHE_VARIABLE = "ACP_CACHE"


def state_folder() -> Path:
    """The user's state folder: backups, recordings, logs, what was seen. It need not exist."""
    return _folder(STATE_VARIABLE, "XDG_STATE_HOME", ".local/state")


def config_folder() -> Path:
    """The user's configuration folder, which holds ``config.toml``. It need not exist."""
    return _folder(CONFIG_VARIABLE, "XDG_CONFIG_HOME", ".config")


def cache_folder() -> Path:
    """The user's cache folder: what can be fetched or made again. It need not exist."""
    return _folder(CACHE_VARIABLE, "XDG_CACHE_HOME", ".cache")


def key_of(folder: str) -> str:
    """The one name of a collaboration, however its path is written; a URL stays as it is."""
    return folder if "://" in folder else os.path.realpath(folder)


def _folder(own: str, shared: str, below_home: str) -> Path:
    """``$own``; else "acp" in ``$shared`` (only an absolute one counts) or below the home folder."""
    if os.environ.get(own):
        return Path(os.path.abspath(os.path.expanduser(os.environ[own])))
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
        return Path(base, "acp", "acp")
    if sys.platform == "darwin" and not os.path.isabs(os.environ.get(shared, "")):
        return Path(home, "Library", "Application Support", "acp")
    base = os.environ.get(shared, "")
    return Path(base if os.path.isabs(base) else os.path.join(home, below_home), "acp")
