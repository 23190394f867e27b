"""What a human can do in a run or in an initiative, bound to it: the descriptions stand in `table`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from acp_core.model.errors import Refused
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.initiative_common import open_whole
from acp_core.protocols.governed.acts.table_deciding import RECOVERY, TAKING_FILES
from acp_core.protocols.governed.write.opened import read_unlocked
from acp_core.protocols.kit.binding import Context, Location, bind_all, bind_named

if TYPE_CHECKING:
    from acp_core.model.action import Action


def run_actions(folder: str, now: datetime) -> Sequence[Action]:
    """What a human can do in a run now, most useful first.

    Args:
        folder: its repository.
        now: the time.
    """
    context: Context
    try:
        context = read_unlocked(folder)
    except (Refused, OSError):  # all that may be left is to finish what was interrupted, or drop it
        return bind_all((RECOVERY, TAKING_FILES), Location(folder), now)
    return bind_all(table.OF_RUN, context, now)


def initiative_actions(folder: str, now: datetime) -> Sequence[Action]:
    """What a human can do in an initiative now, most useful first.

    Args:
        folder: the initiative.
        now: the time.
    """
    return bind_all(table.OF_INITIATIVE, open_whole(Path(folder)), now)


def run_action(folder: str, name: str, now: datetime) -> Action | None:
    """One act of a run by its name, new or old, without the others; None where there is none.

    Raises:
        Refused: it cannot be done now.
        OSError: the run cannot be read.
    """
    return bind_named(table.OF_RUN, name, Location(folder), now)


def initiative_action(folder: str, name: str, now: datetime) -> Action | None:
    """One act of an initiative by its name; see `run_action`."""
    return bind_named(table.OF_INITIATIVE, name, Location(folder), now)
