"""What a loop is asked to do, and starting, recording and stopping loops that outlive whoever started them.

`plan` works out everything that will be run, so that a person can look at it; `start` runs it, as
a process of its own that no terminal and no dashboard can take down with it. A prompt names acp's
commands so that they run where the program runs. The spec is kept beside the loop's state, so that
it can be started again; its budgets may be changed by a person while it runs. A loop records what it
sees, so that a collaboration has a history though nobody watched it; those that a person stops are
recorded here: a parked one ends without running again.
"""

from __future__ import annotations

import logging
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from pathlib import Path

from acp_core.agents import codec, limits, registry
from acp_core.agents import program as agents_program
from acp_core.agents.budgets import Cap
from acp_core.agents.live import binding
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.presets import COMMANDS, Preset, PresetError, parse
from acp_core.agents.processes import Stopped
from acp_core.agents.program import Program, SpawnError, locate
from acp_core.agents.registry import Conductor, find, runners
from acp_core.agents.state import RunnerState
from acp_core.files.reading import stamp
from acp_core.files.secrets import mask_command
from acp_core.history.recorder import Recorder
from acp_core.history.schema import Bounds
from acp_core.model.clock import utc_now
from acp_core.model.errors import AcpError, NotStarted
from acp_core.model.text import clean_name
from acp_core.model.turn import Brief, Mode
from acp_core.person import settings
from acp_core.person.paths import key_of
from acp_core.person.permissions import Permissions, Policy
from acp_core.protocols import registry as protocols
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.discovery import identify
from acp_core.protocols.processes import LOOP

_LONGEST_PAUSE = 300.0


class Restart(str, Enum):
    """When a program is run again for a turn that it did not take.

    ``ON_FAILURE``: as often as the limit says. ``ALWAYS``: without a limit, and a program that
    takes part alone also when it ended well. ``NEVER``: not at all.
    """

    NEVER = "never"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a loop is asked to do.

    Attributes:
        folder: the collaboration: a real path or a URL.
        participant: whose turns are taken.
        name: the preset's name; ``preset`` the preset itself, as a table.
        program: the program's absolute path; ``version`` what it said when it was asked.
        model: which model, "" for the program's own choice.
        workdir: where the program runs.
        mode: how it takes part.
        restart: when it is run again.
        retries: how often at most for one turn, after the first run.
        pause: seconds before the first of those; each further pause is longer.
        turn_limit: seconds that a turn may take, None for no limit.
        deadline: when the loop ends whatever happened, None for never.
        interval: seconds between two looks while it waits.
        linger: seconds that a program may go on after all was done.
        caps: how much its programs may take.
        once: a program of its own for each attempt, although it could hold a live session.
        permissions: the policy for what its live session asks; "" for that of the settings.
        leave: end the loop where it would otherwise give up and wait for a person.
        goes_on: an interrupted loop is started again: what it waited for, it waits for still.
    """

    folder: str
    participant: str
    name: str = "command"
    preset: dict[str, object] = field(default_factory=dict)
    program: str = ""
    version: str = ""
    model: str = ""
    workdir: str = ""
    mode: Mode = Mode.TURN
    restart: Restart = Restart.ON_FAILURE
    retries: int = 3
    pause: float = limits.FIRST_PAUSE
    turn_limit: float | None = None
    deadline: datetime | None = None
    interval: float = 1.0
    linger: float = 60.0
    leave: bool = False
    caps: tuple[Cap, ...] = ()
    once: bool = False
    permissions: str = ""
    goes_on: bool = False

    def resolved(self) -> Preset:
        """The preset.

        Raises:
            PresetError: it is not what it should be.
        """
        return parse(self.name, self.preset)

    def chosen(self) -> Program:
        """The program, as it is run.

        Raises:
            PresetError: its preset is not what it should be.
        """
        preset = self.resolved()
        why = self.not_live(preset) if preset.live else ""
        return Program(
            preset,
            self.folder,
            self.workdir,
            self.program,
            self.model,
            self.version,
            live=bool(preset.live) and not why,
            not_live=why,
        )

    def live(self, preset: Preset) -> str:
        """Whether turns are taken in a live session, as `Saved` says it."""
        if not preset.live:
            return ""
        why = self.not_live(preset)
        return f"no: {why}" if why else "yes"

    def not_live(self, preset: Preset) -> str:
        """Why turns are not taken in a live session, for a program that could; "" where they are."""
        if self.mode is not Mode.TURN and not self.once:
            return f"not possible with mode {self.mode.value!r}"
        return binding.missing(preset, self.workdir, self.model, once=self.once)

    def brief(self, place: LoopDirectory, commands: str) -> Brief:
        """What every prompt of this loop is made for."""
        return Brief(mode=self.mode, commands=commands, drafts=str(place.drafts))

    @property
    def attempts(self) -> int:
        """How many runs a turn gets at most; 0 for as many as it needs."""
        if self.restart is Restart.ALWAYS:
            return 0
        return 1 if self.restart is Restart.NEVER else 1 + max(0, self.retries)

    def pause_after(self, attempt: int) -> float:
        """Seconds between a run that failed and the next."""
        return limits.pause_after(attempt, self.pause, _LONGEST_PAUSE)

    def wait_after(self, waits: int) -> float:
        """Seconds until a model service is tried again that failed so many times in a row."""
        return limits.pause_after(waits, self.pause)


def save_spec(spec: Spec, place: LoopDirectory) -> None:
    """Keep a spec in the loop's place.

    Raises:
        OSError: it cannot be written.
    """
    codec.write(place.spec, spec)


def load_spec(place: LoopDirectory) -> Spec | None:
    """The spec that is kept in a loop's place; None where there is none that can be used."""
    try:
        spec = codec.read(Spec, place.spec)
        spec.resolved()
    except (codec.CodecError, PresetError):
        return None
    return spec


def caps_in(where: LoopDirectory, spec: Spec) -> Callable[[], tuple[Cap, ...]]:
    """What gives the caps of a loop as they are now; its spec is read again when it changes.

    Args:
        where: the loop's place.
        spec: what the loop was asked to do.
    """
    seen: object = None
    caps = spec.caps

    def read() -> tuple[Cap, ...]:
        nonlocal seen, caps
        found = stamp(where.spec)
        if found != seen:
            seen = found
            saved = load_spec(where)
            caps = saved.caps if saved else caps
        return caps

    return read


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


_log = logging.getLogger(__name__)


def recorded() -> Bounds:
    """What is recorded; nothing where the settings cannot be read."""
    try:
        return Bounds.of(settings.load().recording)
    except settings.SettingsError:
        return Bounds(on=False)


def keep_loops(folder: str) -> None:
    """Keep how the loops of a collaboration stand now. Nothing where that is not possible."""
    bounds = recorded()
    if not bounds.on:
        return
    try:
        collaboration = open_folder(folder)
    except LaunchError:  # it is away
        return
    recorder, now = Recorder("loop", bounds), utc_now()
    try:
        snapshot = collaboration.refresh(now)
        recorder.saw(snapshot, collaboration.tracked_files, tuple(runners(folder)), now)
        recorder.flush()
    except Exception:  # a fault of ours must not undo what was done
        _log.info("the loops of %s were not recorded", folder, exc_info=True)
    finally:
        recorder.close()
        collaboration.close()


class Keeping:
    """Keeps the versions that stand there whenever the loop looks; see `acp_core.history`.

    Nothing that fails here ends or delays a turn; it is said once.

    Args:
        collaboration: Where the loop takes turns.
        key: Its place: a real path or a URL.
        participant: Whose loop it is.
        bounds: Whether anything is recorded, and how much.
        say: Writes a line to the loop's log.
    """

    def __init__(
        self,
        collaboration: Collaboration,
        key: str,
        participant: str,
        bounds: Bounds,
        say: Callable[[str], None],
    ) -> None:
        self._collaboration = collaboration
        self._key, self._participant = key, participant
        self._on = bounds.on
        self._recorder = Recorder("loop", bounds)
        self._say = say
        self._problem = ""

    def record(self, now: datetime) -> None:
        """Keep what is new."""
        if not self._on:
            return
        try:
            snapshot = self._collaboration.refresh(now)
            loop = find(self._key, self._participant)
            loops = (loop,) if loop is not None else ()
            self._recorder.saw(snapshot, self._collaboration.tracked_files, loops, now)
            problem = self._recorder.problem
        except Exception as error:  # a fault of ours must not end a collaboration
            problem = f"{type(error).__name__}: {error}"
        if problem and problem != self._problem:
            self._say(f"not recorded: {problem}")
        self._problem = problem

    def close(self) -> None:
        """Keep what was seen last."""
        self._recorder.flush()
        self._recorder.close()


def stop_loops(loops: Iterable[RunnerState]) -> list[Stopped]:
    """Stop several loops at once, with their programs; what came of each, in the same order.

    A loop that is parked ends without being started again, so that what it would record is
    recorded for it.
    """
    wanted = list(loops)
    stopped = registry.stop_all(wanted)
    for folder in dict.fromkeys(loop.folder for loop in wanted if not loop.account):
        keep_loops(folder)
    return [_left(*each) for each in zip(wanted, stopped, strict=True)]


def _left(loop: RunnerState, stopped: Stopped) -> Stopped:
    """Let others act for the participant of a loop that was stopped, and say where they cannot yet."""
    if not stopped.done or loop.account:
        return stopped
    try:
        collaboration = open_folder(loop.folder)
    except LaunchError:  # it is not there any more
        return stopped
    try:
        trouble = collaboration.leave(loop.participant)
    finally:
        collaboration.close()
    return Stopped(True, f"{stopped.sentence}; {trouble}") if trouble else stopped
