"""Whether turns are taken in a live session, by which command, and what a policy binds there.

Every protocol that runs programs asks here, so that the same runner serves them all. A policy binds
the mode and the folders of a program's session, and what the program does unasked.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from acp_core.agents.live import turn as live_turns
from acp_core.agents.live.turn import RUNNER_MODULE, LiveCommand, Order, TurnScope
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.permissions import NO_TOOLS, ToolServer
from acp_core.agents.presets import ANY, Preset
from acp_core.agents.program import Program, SpawnError, live_program
from acp_core.model.errors import AcpError
from acp_core.person import permissions, settings
from acp_core.person.permissions import Permissions, Policy


@dataclass(frozen=True, slots=True)
class Bounds:
    """How a live session is begun so that the policy holds.

    Attributes:
        mode: the permission mode of the session; "" where it needs none.
        cwd: the folder in which the agent works.
        folders: which it may use besides.
    """

    mode: str
    cwd: str
    folders: tuple[str, ...]


def in_force(chosen: str) -> Permissions:
    """What the person allows: the settings, and the policy that was chosen for these turns.

    Args:
        chosen: the policy's name; "" for that of the settings.

    Raises:
        WrongValue: there is no such policy.
        SettingsError: they cannot be read.
    """
    allowed = permissions.parse(settings.load().permissions)
    return replace(allowed, policy=permissions.policy_of(chosen)) if chosen else allowed


def prepared(
    program: Program, drafts: str, chosen: str, scope: TurnScope | None = None
) -> Bounds | None:
    """How a live session is begun; None for a program that is started for each attempt.

    Args:
        program: the program, as it is run now.
        drafts: the participant's folder of drafts.
        chosen: the policy's name; "" for that of the settings.
        scope: what the turn may do; None for a turn of a loop.

    Raises:
        SpawnError: the policy cannot bind the program, or cannot be read.
    """
    try:
        policy = in_force(chosen).policy
    except AcpError as error:
        raise SpawnError(f"the policy cannot be read: {error}") from None
    if why := unbound(program.preset, policy, live=program.live):
        raise SpawnError(why)
    return _bounds(program, drafts, policy, scope) if program.live else None


def _bounds(program: Program, drafts: str, policy: Policy, scope: TurnScope | None) -> Bounds:
    preset, cwd = program.preset, program.workdir
    mode = preset.none_mode if policy is Policy.NONE and preset.none_mode else preset.ask_mode
    if not preset.sandboxed:
        return Bounds(mode, cwd, tuple(sorted({drafts, program.folder} - {cwd})))
    confined = scope is not None and scope.confined
    own = scope.folders if scope is not None and confined else (program.folder,)
    own = tuple(each for each in own if "://" not in each) or (drafts,)
    if policy in (Policy.ASK, Policy.EDITS) or confined:
        cwd = cwd if any(_is_in(cwd, each) for each in own) else own[0]
    return Bounds(mode, cwd, tuple(sorted({drafts, *own} - {cwd})))


def _is_in(path: str, folder: str) -> bool:
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return real == top or real.startswith(top.rstrip("/") + "/")


def section(program: Program, bound: Bounds | None) -> str:
    """What an agent is told that works in another folder than the one that was chosen; "" elsewhere."""
    if bound is None or bound.cwd == program.workdir:
        return ""
    return (
        f"\nThe files that this is about are in {program.workdir}: you can read them there. Without "
        f"asking, you can write only to {', '.join((bound.cwd, *bound.folders))}.\n"
    )


def unbound(preset: Preset, policy: Policy, *, live: bool) -> str:
    """Why the policy ``none`` cannot bind a program; "" where it can, or for another policy.

    Args:
        preset: the program's.
        policy: what is done with what it asks.
        live: it is run in a live session.
    """
    if policy is not Policy.NONE:
        return ""
    name = name_of(preset)
    if not live:
        return (
            f"the policy 'none' cannot bind {name}: it is started for each attempt, and does "
            "not ask before it acts; choose another policy (--permissions), or an agent that can hold a live session"
        )
    if preset.sandboxed and not preset.none_mode:
        return (
            f"the policy 'none' cannot bind {name}: its preset has no none_mode, in which it can "
            "change nothing"
        )
    return ""


def name_of(preset: Preset) -> str:
    """A program, for people."""
    is_any = preset.name == ANY or not preset.title
    return os.path.basename(preset.program) if is_any else preset.title


def left_open(preset: Preset, allowed: Permissions, *, live: bool) -> str:
    """What a program does without asking whatever policy and rules say; "" where nothing is known.

    Args:
        preset: the program's.
        allowed: the policy and the rules.
        live: it is run in a live session.
    """
    if not live:
        return "policies and rules hold only in a live session; without one, the agent does what its own permissions allow"
    more = "its own settings may allow more" if allowed.policy is Policy.NONE else ""
    if not preset.sandboxed:
        return "; ".join(filter(None, (preset.asks_not, more)))
    if allowed.policy is Policy.NONE:
        return f"{preset.asks_not}, but its sandbox lets them change nothing; {more}"
    places: Sequence[str] = ("the collaboration's folder", "its drafts", "temporary folders")
    if allowed.policy is Policy.ALL:
        places = ("its working folder", *places)
    rules = "; rules do not hold there" if allowed.rules else ""
    return (
        f"{preset.asks_not} inside its sandbox, which can write to {', '.join(places[:-1])} and "
        f"{places[-1]} only and has no network{rules}"
    )


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
    where: LoopDirectory,
    participant: str,
    prompt: str,
    env: Mapping[str, str],
    *,
    run_id: str = "",
    scope: TurnScope | None = None,
    module: str = RUNNER_MODULE,
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
