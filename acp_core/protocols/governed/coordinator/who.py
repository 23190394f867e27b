"""Who decides, and that it is a human: an approval is never an agent's.

Source: governed protocol specification, "Invariant 2: Cross-repo gate approval". Standard library
only.
"""

from __future__ import annotations

import getpass
import os
import sys

from acp_core.protocols.governed.act import Refused

MARKS = ("ACP_GOVERNED_TURN",)
"""Variables that tell an agent's program, and all that it starts, whose turn it is."""


def human(named: str | None, *, agreed: bool) -> str:
    """The name of the human who decides.

    Args:
        named: the name that was given.
        agreed: it was said beforehand that nobody needs to be asked.

    Raises:
        Refused: an agent's program runs this, or there is neither a terminal nor a name.
    """
    refuse_agents()
    if not sys.stdin.isatty() and not (named and agreed):
        raise Refused("there is nobody to ask: say who decides with --as NAME, and --yes")
    return (named or "").strip() or user()


def refuse_agents() -> None:
    """Refuse to decide within an agent's turn.

    Raises:
        Refused: an agent's program runs this.
    """
    if any(os.environ.get(mark) for mark in MARKS):
        raise Refused("only a human decides about a barrier: an agent's turn cannot")


def user() -> str:
    """Who uses this machine."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "human"
