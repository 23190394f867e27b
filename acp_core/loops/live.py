"""``python -m acp_core.loops.live``: holds the live session of a participant whose turns a loop takes.

What the agent asks permission for is judged by the turn as it stands at that moment: read here, so
that an answer needs no loop that is alive.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from acp_core.agents import permissions
from acp_core.agents.live import policy, runner
from acp_core.agents.live.binding import in_force
from acp_core.agents.live.policy import Judge, Judged, Scope
from acp_core.agents.live.requests import PermissionRequest
from acp_core.agents.live.turn import Order
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.loops import launch
from acp_core.loops.launch import Spec, open_folder
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError
from acp_core.model.turn import Brief, TurnState
from acp_core.person.permissions import Verdict
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.tools import tools_in


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
        server="" if permissions.missing() else permissions.NAME,
        tools=frozenset(tools_in(collaboration.protocol)),
    )


def _program(commands: str) -> tuple[str, ...]:
    """The words before the name of acp's command, as a prompt spells them."""
    words = shlex.split(commands)
    return tuple(words[: words.index("{command}")]) if "{command}" in words else ()


def judge_of(order: Order) -> Judge:
    """The policy for the turns of a participant's loop."""
    where = LoopDirectory(Path(order.place))

    def judge(request: PermissionRequest) -> Judged:
        spec = launch.load_spec(where)
        if spec is None:
            why = "the settings of this loop cannot be read"
            return Judged(policy.Decision(Verdict.ASK, why))
        try:
            return _judged(request, spec, where)
        except (AcpError, OSError) as error:
            return Judged(policy.Decision(Verdict.ASK, f"the policy cannot decide: {error}"))

    return judge


def _judged(request: PermissionRequest, spec: Spec, where: LoopDirectory) -> Judged:
    brief = spec.brief(where, launch.usable_commands(spec.resolved().commands))
    collaboration = open_folder(spec.folder)
    try:
        turn = collaboration.turn(spec.participant, utc_now(), brief)
        if turn is None:
            return Judged(policy.Decision(Verdict.ASK, "the turn cannot be read"))
        scope = scope_of(collaboration, spec.participant, turn, brief)
        return Judged(policy.decide(request, scope, in_force(spec.permissions)), turn.what)
    finally:
        collaboration.close()


if __name__ == "__main__":
    sys.exit(runner.main(judge_of))
