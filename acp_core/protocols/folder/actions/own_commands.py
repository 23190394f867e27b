"""The commands that a participant's program may run without asking, where a policy lets it.

Source: folder protocol specification, "Events", "Polling And Watchers" and "Validation".
"""

from __future__ import annotations

from functools import partial

from acp_core.agents.live.policy import OwnCommand
from acp_core.model.action_field import Kind
from acp_core.protocols.folder.actions.agents import FORCED, PLAIN
from acp_core.protocols.kit.fast_args import quick


def own_commands() -> dict[str, OwnCommand]:
    """Those that agents run at every turn, by name, plainly written; none writes without locks."""
    return {
        name: OwnCommand(
            partial(quick, fields=tuple(each for each in fields if each is not FORCED)),
            tuple(each.name for each in fields if each.kind is Kind.FILE),
        )
        for name, fields in PLAIN.items()
    }
