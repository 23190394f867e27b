"""The libraries of the extra ``wire``, without which an agent neither runs nor is asked."""

from __future__ import annotations

import importlib.util

from acp_core.model.errors import Refused

NEEDED = ("starlette", "uvicorn", "websockets", "httpx", "cryptography")


def need_libraries() -> None:
    """Say in one line what has to be installed, where something is missing.

    Raises:
        Refused: something is.
    """
    lacking = missing()
    if lacking:
        names = ", ".join(lacking)
        raise Refused(f"{names} is missing here: pip install 'acp-tui[wire]' installs it")


def missing() -> list[str]:
    """The libraries of the extra ``wire`` that are not installed."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]
