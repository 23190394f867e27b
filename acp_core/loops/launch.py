"""Starting loops that outlive whoever started them.

`plan` works out everything that will be run, so that a person can look at it; `start` runs it, as
a process of its own that no terminal and no dashboard can take down with it. A prompt names acp's
commands so that they run where the program runs.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from acp_core.agents import program as agents_program
from acp_core.agents import registry
from acp_core.agents.live import binding
from acp_core.agents.loop_directory import place
from acp_core.agents.presets import COMMANDS, Preset
from acp_core.agents.program import Program, SpawnError, locate
from acp_core.agents.registry import Conductor
from acp_core.agents.state import RunnerState
from acp_core.files.secrets import mask_command
from acp_core.loops.spec import Spec
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError, NotStarted
from acp_core.model.text import clean_name
from acp_core.model.turn import Mode
from acp_core.person.paths import key_of
from acp_core.person.permissions import Permissions, Policy
from acp_core.protocols import registry as protocols
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import identify
from acp_core.protocols.processes import LOOP

_READING = ("next", "wait", "validate")
_SCRIPTS = {
    "append": "append_event.py",
    "next": "next_action.py",
    "wait": "wait_for_turn.py",
    "validate": "validate_collaboration.py",
}


def usable_commands(commands: str) -> str:
    """A preset's ``commands``, with `acp` named so that this very acp is what runs.

    It is named by its path: the `acp` on the PATH may be another program, and programs run their
    commands in shells that set up a PATH of their own. Where acp is not installed, it is named
    as a module of this Python.
    """
    if commands != COMMANDS:
        return commands
    beside = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "acp")
    if os.path.isfile(beside):
        found = shutil.which("acp")
        same = found and os.path.realpath(found) == os.path.realpath(beside)
        return f"{shlex.quote(os.path.abspath(found) if found and same else beside)} {{command}}"
    return f"{shlex.join([sys.executable, '-P', '-m', 'acp_core'])} {{command}}"


def tool_words(commands: str) -> str:
    """The words of ``commands`` before the command's name: what must be allowed to run."""
    words: list[str] = []
    for word in commands.split():
        if "{" in word:
            break
        words.append(word)
    return " ".join(words)


def allowed_commands(commands: str, folder: str, participant: str) -> tuple[str, ...]:
    """The beginnings of the commands that a prompt names.

    An event can be appended in this folder as this participant only; what merely reads may be run
    everywhere.
    """
    who = f"--folder {shlex.quote(folder)} --participant {shlex.quote(participant)}"
    templates = [commands]
    if tool_words(commands) == shutil.which("acp"):
        templates.append(COMMANDS)
    return tuple(
        words
        for template in templates
        for words in (
            f"{_named(template, 'append')} {who}",
            *(_named(template, each) for each in _READING),
        )
    )


def _named(template: str, name: str) -> str:
    return template.replace("{command}", name).replace("{script}", _SCRIPTS[name])


_PROMPT = "<prompt>"


class LaunchError(NotStarted):
    """A loop was not started; the message is one line that says why."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What would be started.

    Attributes:
        spec: what the loop will be asked to do.
        command: the whole command, with ``<prompt>`` where the prompt goes; secrets are masked.
        stdin: whether the prompt goes to the program's standard input.
        live: the command that holds the live session; secrets are masked. Empty where there is none,
            and ``not_live`` says why ("" where the program can hold none at all).
        warnings: sentences about what may go wrong.
        refused: why it cannot be started, "" where it can.
    """

    spec: Spec
    command: tuple[str, ...] = ()
    stdin: bool = False
    live: tuple[str, ...] = ()
    not_live: str = ""
    warnings: tuple[str, ...] = ()
    refused: str = ""


def open_folder(folder: str) -> Collaboration:
    """Open the collaboration at a path.

    Raises:
        LaunchError: there is none.
    """
    key = key_of(folder)
    found = identify(Path(key), protocols.installed())
    if found is None:
        raise LaunchError(f"{folder}: not a collaboration")
    return found.open()


def plan(
    spec: Spec,
    preset: Preset,
    *,
    ask_version: bool = True,
    again: bool = False,
    exists: bool = True,
) -> Plan:
    """Work out what would be started for one participant. Never raises; may take seconds.

    Args:
        spec: what is asked for; its folder and working folder may be any path, what follows from
            the preset is filled in.
        preset: how the program is run.
        ask_version: run the program to see which version it is.
        again: the participant may have a loop, which will be stopped before.
        exists: the collaboration is there already; else it is about to be made.
    """
    folder = key_of(spec.folder)
    workdir = os.path.realpath(spec.workdir or folder)
    mode = Mode.CHANGE if preset.append_after_change and spec.mode is Mode.TURN else spec.mode
    spec = replace(
        spec, folder=folder, workdir=workdir, mode=mode, name=preset.name, preset=preset.as_table()
    )
    try:
        spec = replace(spec, program=locate(preset, workdir))
        if not os.path.isdir(workdir) and (exists or workdir != folder):
            raise SpawnError(f"{workdir}: no such folder")
        program = Program(preset, folder, workdir, spec.program, spec.model)
        command = shown_command(program, spec.participant)
        live = _live(spec, program)
        allowed = binding.in_force(spec.permissions)
        if why := binding.unbound(preset, allowed.policy, live=bool(live)):
            raise SpawnError(why)
    except AcpError as error:
        return Plan(spec, refused=str(error))
    if ask_version:
        spec = replace(spec, version=agents_program.version(spec.program, preset.version_args))
    plan = Plan(
        spec,
        command=mask_command(command),
        stdin=preset.prompt == "stdin",
        live=live,
        not_live="" if live else spec.live(preset),
        warnings=_warnings(spec, preset),
    )
    refused = _refused(spec) if exists else ""
    return replace(plan, refused=refused or ("" if again else _has_loop(spec)))


def plan_with(plan: Plan, preset: Preset, version: str) -> Plan:
    """A plan that was made without asking for the program's version, with it."""
    spec = replace(plan.spec, version=version)
    return replace(plan, spec=spec, warnings=_warnings(spec, preset))


def shown_command(program: Program, participant: str) -> tuple[str, ...]:
    """The whole command, with ``<prompt>`` where the prompt goes; secrets are in it.

    Raises:
        SpawnError: the program is not there.
    """
    named = usable_commands(program.preset.commands)
    return program.command(
        _PROMPT,
        "<prompt file>",
        str(place(program.folder, participant).drafts),
        {},
        tool=tool_words(named),
        commands=allowed_commands(named, program.folder, participant),
        documents=("<document>",),
        reads=("<other document>",),
    ).argv


def _live(spec: Spec, program: Program) -> tuple[str, ...]:
    """The command that holds the live session, secrets masked; empty where there is none."""
    if spec.live(program.preset) != "yes":
        return ()
    drafts = str(place(program.folder, spec.participant).drafts)
    return mask_command(program.live_command(drafts, {}).argv)


def _warnings(spec: Spec, preset: Preset) -> tuple[str, ...]:
    is_bold = bool(preset.caution) and spec.live(preset) != "yes"  # a live session asks
    warnings = [f"{preset.title or preset.name} {preset.caution}"] if is_bold else []
    if preset.tested and spec.version and spec.version != preset.tested:
        warnings.append(
            f"{preset.title} {spec.version} is installed; acp was tested with {preset.tested}"
        )
    if spec.model and not preset.model_args and "{model}" not in " ".join(preset.args):
        warnings.append(
            f"{preset.title or preset.name} has no model option: {spec.model} is ignored"
        )
    if spec.live(preset) == "yes" and (why := agents_program.missing(preset, spec.workdir)):
        warnings.append(why)
    return (*warnings, *_about_policy(spec, preset), *_about_budgets(spec, preset))


def _about_policy(spec: Spec, preset: Preset) -> Iterator[str]:
    """What the policy and the rules do not bind with this program."""
    try:
        allowed = binding.in_force(spec.permissions)
    except AcpError:  # that is why it cannot be started
        return
    name, is_live = binding.name_of(preset), spec.live(preset) == "yes"
    is_chosen = bool(spec.permissions or allowed != Permissions())
    is_strict = bool(allowed.rules) or allowed.policy is Policy.NONE
    tells = preset.sandboxed or is_strict if is_live else is_chosen
    if tells and (left := binding.left_open(preset, allowed, live=is_live)):
        yield f"{name}: {left}"
    program = Program(preset, spec.folder, spec.workdir, live=is_live)
    if is_live and not binding.unbound(preset, allowed.policy, live=True):
        bound = binding.prepared(
            program, str(place(spec.folder, spec.participant).drafts), spec.permissions
        )
        if bound is not None and bound.cwd != spec.workdir:
            yield f"{name} works in {bound.cwd}, and can only read {spec.workdir}"


def _about_budgets(spec: Spec, preset: Preset) -> Iterator[str]:
    """What keeps a budget from stopping this program at once."""
    title = preset.title or preset.name
    is_live = spec.live(preset) == "yes"
    has_prices = None not in (preset.price_in, preset.price_out)
    tokens = preset.live_tells_tokens if is_live else preset.tells_tokens
    cost = "end" if is_live and preset.tells_cost == "running" else preset.tells_cost
    span = "a turn of its live session" if is_live else "an attempt"
    for unit, noun, tells in (
        ("usd", "cost", tokens if has_prices else cost),
        ("tokens", "tokens", tokens),
    ):
        if all(cap.unit != unit for cap in spec.caps):
            continue
        if tells == "end":
            yield f"{title} reports its {noun} at the end of {span}: the budget stops the next one"
        elif tells == "never":
            yield f"{title} never reports its {noun}: limit its tokens instead"
        elif not tells:
            yield f"the budget counts only the {noun} that {title} reports"


def _refused(spec: Spec) -> str:
    """Why this participant can have no loop; "" where it can."""
    try:
        collaboration = open_folder(spec.folder)
    except LaunchError as error:
        return str(error)
    try:
        snapshot = collaboration.refresh(utc_now())
        turn = collaboration.turn(spec.participant, utc_now())
    finally:
        collaboration.close()
    if turn is None:
        return f"{snapshot.protocol} collaborations have no turns for a loop"
    known = [each.id for each in snapshot.participants]
    if known and clean_name(spec.participant) not in known:
        return (
            f"{spec.participant!r} is not a participant of {snapshot.name} "
            f"(participants: {', '.join(known)})"
        )
    return ""


def _has_loop(spec: Spec) -> str:
    """Which loop takes this participant's turns already; "" where none does."""
    running = registry.find(spec.folder, spec.participant)
    if running and running.alive:
        return f"{spec.participant} already has a loop (process {running.pid})"
    other = conductor(spec).elsewhere()
    if other and other.held:
        return f"{spec.participant} already has a loop: {other.sentence}"
    return ""


def restart(plan: Plan) -> RunnerState:
    """Start a planned loop in the place of the one that the participant has, if any.

    Raises:
        LaunchError: the old one does not end, or the new one does not run.
    """
    stopped = conductor(plan.spec).stop()
    if not stopped.done:
        raise LaunchError(stopped.sentence)
    return start(plan.spec)


def start(spec: Spec, env: Mapping[str, str] | None = None) -> RunnerState:
    """Start a planned loop in the background, and wait until it runs.

    Args:
        spec: of a plan that was not refused.
        env: more environment variables for the loop and its program.

    Raises:
        LaunchError: it does not run.
    """
    try:
        return conductor(spec).start(asked=spec, env=env)
    except NotStarted as error:
        raise LaunchError(str(error)) from None


def conductor(spec: Spec) -> Conductor:
    """The loop of a participant, running or not."""
    who = spec.participant
    return Conductor(spec.folder, who, LOOP.module, f"{who}: the loop")
