"""What a participant's turn is about, for the policy that answers its program's requests."""

from __future__ import annotations

import os
import shlex

from acp_core.agents import tool_servers
from acp_core.agents.live.policy import Scope
from acp_core.model.turn import Brief, TurnState
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.tool_names import tools_in


def scope_of(
    collaboration: Collaboration, participant: str, turn: TurnState, brief: Brief
) -> Scope:
    """What the program of one turn may do without a person being asked, where the policy lets it.

    Args:
        collaboration: where the turn is.
        participant: whose.
        turn: as it was read with ``brief``: it names the documents that change.
        brief: what the turn's prompt was made for: it names the drafts and how acp is run.
    """
    here = "" if "://" in collaboration.key else os.path.realpath(collaboration.key)
    return Scope(
        folder=here,
        participant=participant,
        documents=turn.documents,
        drafts=brief.drafts,
        program=_program(brief.commands),
        commands=collaboration.own_commands() if here else {},
        server="" if tool_servers.missing() else tool_servers.NAME,
        tools=frozenset(tools_in(collaboration.protocol)),
    )


def _program(commands: str) -> tuple[str, ...]:
    """The words before the name of acp's command, as a prompt spells them."""
    words = shlex.split(commands)
    return tuple(words[: words.index("{command}")]) if "{command}" in words else ()
