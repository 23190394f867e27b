"""Asking, before a command does what a human must have decided. Standard library only."""

from __future__ import annotations

import sys

from acp_core.model.action import Preview
from acp_core.model.errors import Refused
from acp_core.protocols.kit.command_line import say
from acp_core.protocols.kit.printing import say_remarks
from acp_core.protocols.kit.values import Values


def confirmed(preview: Preview, values: Values) -> bool:
    """Whether the human means it: asked at the terminal, or said beforehand with ``--yes``.

    Args:
        preview: what would be done.
        values: those of the command: ``json``, ``yes``, and ``by`` where it records who decides.

    Raises:
        Refused: it cannot be done, there is nobody to ask, or ``--yes`` leaves open who decides.
    """
    if preview.refused:
        raise Refused(preview.refused)
    at_terminal = sys.stdin.isatty() and not values.json
    if values.yes:
        if not at_terminal and getattr(values, "by", None) == "":
            raise Refused("no terminal to ask for confirmation: use --by NAME --yes")
        return True
    if not at_terminal:
        name = "--by NAME " if hasattr(values, "by") else ""
        raise Refused(f"no terminal to ask for confirmation: use {name}--yes")
    return _asked(preview)


def _asked(preview: Preview) -> bool:
    say(preview.sentence)
    say_remarks(preview)
    return agreed()


def agreed() -> bool:
    """Ask the human at the terminal whether to do it."""
    sys.stdout.write("Proceed? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
