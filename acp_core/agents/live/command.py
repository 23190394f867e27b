"""Whether a program's turns are taken in a live session, and the command that takes one.

Every protocol that runs programs asks here, so that the same runner serves them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from acp_core.agents.live import turn as live_turns
from acp_core.agents.live.binding import Bounds, prepared
from acp_core.agents.live.state import Order, TurnScope
from acp_core.agents.live.turn import RUNNER, LiveCommand
from acp_core.agents.place import Place
from acp_core.agents.presets import Preset
from acp_core.agents.program import Program
from acp_core.agents.spawn import SpawnError, live_program
from acp_core.agents.tool_servers import NO_TOOLS, ToolServer


def offered(program: Program, *, once: bool = False) -> Program:
    """The program, run in live sessions where it and this installation allow that.

    Args:
        program: as it was chosen.
        once: start it anew for each attempt all the same.
    """
    if not program.preset.live:
        return program
    why = missing(program.preset, program.workdir, program.model, once=once)
    return replace(program, live=not why, not_live=why)


def missing(preset: Preset, workdir: str, model: str = "", *, once: bool = False) -> str:
    """Why no live session is held with a preset's program that could; "" where one is.

    Args:
        preset: the program's.
        workdir: where it runs.
        model: which model was chosen; "" for its own choice.
        once: a person asked for a program of its own for each attempt.
    """
    if once:
        return "--once was given"
    if model and "{model" not in " ".join(preset.live):
        return "a model was chosen, and a live session of this agent cannot set one"
    try:
        live_program(preset, workdir)
    except SpawnError as error:
        return str(error)
    return live_turns.missing()


def command(
    program: Program,
    where: Place,
    participant: str,
    prompt: str,
    env: Mapping[str, str],
    *,
    run_id: str = "",
    scope: TurnScope | None = None,
    module: str = RUNNER,
    server: ToolServer = NO_TOOLS,
    bound: Bounds | None = None,
) -> LiveCommand:
    """The command of one turn.

    Args:
        program: takes the turn.
        where: the participant's place.
        participant: whose turn it is.
        prompt: the file of the turn's prompt.
        env: variables that the program gets beside its usual ones.
        run_id: the collaboration's run: another run gets another session.
        scope: what the turn may do; None where ``module`` finds that out.
        module: the runner.
        server: serves the participant's tools to the agent.
        bound: how its session is begun; None for what the scope's policy asks for.

    Raises:
        SpawnError: the program is not there, or the policy cannot bind it.
    """
    drafts = str(where.drafts)
    made = program.live_command(drafts, env)
    bound = bound or prepared(program, drafts, scope.permissions if scope else "", scope)
    assert bound is not None  # it is run in a live session
    order = Order(
        str(where.folder),
        made.argv,
        bound.cwd,
        dict(made.env),
        bound.mode,
        bound.folders,
        folder=program.folder,
        participant=participant,
        title=program.title,
        rejection_ends_turn=program.preset.rejection_ends_turn,
        run_id=run_id,
        server=server.command,
        server_env=dict(server.env),
    )
    return LiveCommand(order, prompt, module, scope)
