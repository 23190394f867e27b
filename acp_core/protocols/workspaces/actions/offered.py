"""What a person can do in a run, bound to it: the descriptions stand in `table`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.model.errors import Refused
from acp_core.protocols.kit.binding import Location, bind_all, bind_named
from acp_core.protocols.workspaces.actions import table
from acp_core.protocols.workspaces.actions.common import open_run
from acp_core.protocols.workspaces.actions.table_integration import (
    DRAFTING,
    FINISHING,
    REPAIRING,
)

if TYPE_CHECKING:
    from acp_core.model.action import Action


def actions(folder: str, now: datetime) -> Sequence[Action]:
    """What a person can do now, most useful first; nothing where no orchestrator wrote anything.

    Args:
        folder: the run.
        now: the time as of which it is read.
    """
    try:
        run = open_run(Location(folder), now)
    except (Refused, OSError):  # what cannot be read can at least be mended
        return bind_all((REPAIRING,), Location(folder), now)
    return bind_all((FINISHING, REPAIRING) if run.is_integrated else table.OFFERED, run, now)


def action(folder: str, name: str, now: datetime) -> Action | None:
    """One action by its name, new or old, without the others; None where there is none.

    Raises:
        Refused: it cannot be done now.
        OSError: the run cannot be read.
    """
    return bind_named((*table.OFFERED, DRAFTING), name, Location(folder), now)
