"""The account's folders as plain texts, for commands that agents run at every turn: pathlib costs them milliseconds.

Everything else uses `acp_core.person.paths`. Standard library only.
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
