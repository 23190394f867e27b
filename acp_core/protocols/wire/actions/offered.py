"""What a person can do through an agent now, all of it or one act by its name."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from acp_core.model.action import Action
from acp_core.protocols.kit.binding import bind_all, bind_named
from acp_core.protocols.wire.actions.steering import OpenAgent
from acp_core.protocols.wire.actions.table import OFFERED
from acp_core.protocols.wire.read.folder import Reading


def actions(key: str, reading: Reading, now: datetime) -> Sequence[Action]:
    """What can be done now, most wanted first; nothing while the agent cannot be asked.

    Args:
        key: what commands call the agent.
        reading: what is known of it.
        now: the time.
    """
    return bind_all(OFFERED, OpenAgent(key, reading), now)


def action(name: str, key: str, reading: Reading, now: datetime) -> Action | None:
    """One of them by its name, without the others; None where there is none of that name.

    Raises:
        Refused: it cannot be done now.
    """
    return bind_named(OFFERED, name, OpenAgent(key, reading), now)
