"""What a person can do to a cycle, bound to its project; which of its cycles is meant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.protocols.cycle.acts import table
from acp_core.protocols.cycle.read.scan import OpenProject
from acp_core.protocols.kit.binding import bind_all, bind_named

if TYPE_CHECKING:
    from acp_core.model.action import Action


def actions(opened: OpenProject, now: datetime) -> Sequence[Action]:
    """What a person can do now, most useful first; nothing where there is no cycle."""
    return bind_all(table.OFFERED, opened, now)


def action(opened: OpenProject, name: str, now: datetime) -> Action | None:
    """One action by its name, new or old, without the others; None where there is none.

    Raises:
        Refused: it cannot be done now.
        OSError: the cycle cannot be read.
    """
    return bind_named(table.OFFERED, name, opened, now)
