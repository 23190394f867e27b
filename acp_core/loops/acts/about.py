"""What the acts about loops are bound to: participants, their loops, and the programs for their turns.

Beside the presets there is what a participant had before, here or in the folder that this one
continues, and what another participant of the same collaboration has. `Chosen` holds what starting
a loop takes, wherever it is asked for.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from acp_core.agents import presets, registry
from acp_core.agents.budgets import Cap, caps_of
from acp_core.agents.loop_directory import LoopDirectory, place
from acp_core.agents.presets import ANY, Preset, PresetError, is_installed
from acp_core.agents.registry import loops_of_others
from acp_core.agents.state import Phase, RunnerState
from acp_core.loops import launch
from acp_core.loops.launch import LaunchError, Restart, Spec
from acp_core.model import Snapshot
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.turn import Mode
from acp_core.person import settings
from acp_core.person.paths import key_of
from acp_core.person.settings import Settings, SettingsError
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.diagnosis import UnmanagedProcess, safe_id
from acp_core.protocols.kit.owner_inputs import AS_BEFORE
from acp_core.protocols.kit.values import Values


class About:
    """A collaboration's participants, by the ids that people see, and their loops."""

    def __init__(
        self,
        key: str,
        snapshot: Snapshot | None = None,
        loops: Sequence[RunnerState] | None = None,
        strangers: Callable[[], tuple[UnmanagedProcess, ...]] = tuple,
    ) -> None:
        """Make it.

        Args:
            key: the collaboration's.
            snapshot: what was read of it; by default it is read when it is asked for.
            loops: this account's loops; by default they are looked for.
            strangers: gives processes of others that act for a participant.
        """
        self.key = key
        self._snapshot, self._found, self._strangers = snapshot, loops, strangers

    @classmethod
    def of(cls, context: Context) -> About:
        """What an act is bound to, whoever binds it."""
        return context if isinstance(context, About) else cls(context.key)

    @cached_property
    def snapshot(self) -> Snapshot:
        """What was read of the collaboration.

        Raises:
            Refused: there is none, or nobody takes turns in it.
        """
        if self._snapshot is not None:
            return self._snapshot
        try:
            opened = launch.open_folder(self.key)
        except LaunchError as error:
            raise Refused(str(error)) from None
        try:
            if not opened.has_turns:
                raise without_turns(self.key)
            return opened.refresh(utc_now())
        finally:
            opened.close()

    @cached_property
    def loops(self) -> dict[str, RunnerState]:
        """This account's loops by participant, running or not."""
        found = registry.runners(self.key) if self._found is None else self._found
        return {safe_id(loop.participant): loop for loop in found}

    @cached_property
    def all_loops(self) -> Mapping[str, RunnerState]:
        """The same, and those of other accounts that run: one's own that has ended hides none."""
        others = {safe_id(loop.participant): loop for loop in loops_of_others(self.key)}
        return others | {
            name: loop
            for name, loop in self.loops.items()
            if loop.alive or loop.program_alive or name not in others
        }

    @cached_property
    def strangers(self) -> tuple[UnmanagedProcess, ...]:
        """Processes of others that act for a participant."""
        return self._strangers()

    @cached_property
    def programs(self) -> Programs:
        """The programs to choose from."""
        return Programs(self.snapshot, tuple(self.loops.values()))

    @cached_property
    def agents(self) -> list[str]:
        """Participants that are not known to be people."""
        return [each.id for each in self.snapshot.participants if each.kind != "human"]

    def alive(self) -> list[str]:
        """Those whose loop runs."""
        return [name for name, loop in self.loops.items() if loop.alive]

    def without(self) -> list[str]:
        """Agents that have no running loop, those first who are waited for."""
        waited = [turn.participant for turn in self.snapshot.turns]
        free = [name for name in self.agents if name not in self.alive()]
        return sorted(free, key=lambda name: name not in waited)

    def loop(self, name: str) -> RunnerState:
        """The loop of a participant, as it is now.

        Raises:
            Refused: there is none.
        """
        known = self.all_loops.get(name) or self.all_loops.get(safe_id(name))
        if known is None:
            there = (
                f"; participants with a loop: {', '.join(self.all_loops)}" if self.all_loops else ""
            )
            raise Refused(f"{name} has no loop in {self.key}{there}")
        if known.account:
            return known
        return registry.find(known.folder, known.participant) or known


def is_loop(runner: RunnerState) -> bool:
    """Whether a loop takes the participant's turns; else somebody conducts its agent."""
    return LoopDirectory(Path(runner.place)).spec.exists()


def without_turns(folder: str) -> Refused:
    """Why no loop can be started in a collaboration."""
    return Refused(f"{folder}: its participants have no turns for a loop")


def one_of(names: Iterable[str], default: str = "") -> dict[str, Any]:
    """The choices of a field here and now, and the one that it begins with: the first by default."""
    listed = tuple(dict.fromkeys(names))
    first = default if default in listed else next(iter(listed), None)
    return {"choices": listed, "default": first}


LIKE = "like "

BEFORE = AS_BEFORE


class Programs:
    """The programs to choose from in one collaboration.

    Args:
        snapshot: The collaboration.
        loops: Its participants' loops.
    """

    def __init__(self, snapshot: Snapshot, loops: tuple[RunnerState, ...]) -> None:
        self._folder = key_of(snapshot.key)
        self._loops = loops
        self._raw = {safe_id(loop.participant): loop.participant for loop in loops}
        self._earlier = [
            key_of(link.location)
            for link in snapshot.lineage
            if link.relation == "continues" and link.found
        ]
        self._presets = _presets()
        self._ids = [each.id for each in snapshot.participants]

    def before(self, name: str) -> Spec | None:
        """What a participant's turns were taken with before: here, or where this goes on from."""
        raw = self._raw.get(name, name)
        for folder in (self._folder, *self._earlier):
            found = launch.load_spec(place(folder, raw))
            if found is not None:
                workdir = self._folder if found.workdir == found.folder else found.workdir
                return replace(found, folder=self._folder, workdir=workdir)
        return None

    def again(self, name: str, model: str = "") -> tuple[Spec, Preset]:
        """The same as before, or with another model; a deadline that passed is counted anew.

        Raises:
            PresetError: there was nothing before.
        """
        spec = self.before(name)
        if spec is None:
            raise PresetError(f"{name} had no agent before")
        loop = next((each for each in self._loops if safe_id(each.participant) == name), None)
        spec = renewed(spec, loop)
        return replace(spec, model=model or spec.model), spec.resolved()

    def names(self) -> list[str]:
        """What can be chosen: what others here run with, then the presets."""
        like = [f"{LIKE}{name}" for name in self._others()]
        before = [BEFORE] if any(self.before(name) for name in self._ids) else []
        return [*like, *before, *installed_first(self._presets)]

    def labels(self) -> dict[str, str]:
        """What choices are called that do not speak for themselves: programs that are missing."""
        return missing(self._presets)

    def default(self) -> str:
        """What works here already; else a known program that is installed."""
        others = self._others()
        return f"{LIKE}{others[0]}" if others else next(iter(installed(self._presets)), "")

    def _others(self) -> list[str]:
        """Participants whose loop has a program; those first that took turns with it."""
        having = [
            loop for loop in self._loops if launch.load_spec(place(loop.folder, loop.participant))
        ]
        having.sort(key=lambda loop: (not _is_well(loop), -loop.shown.turns))
        return [safe_id(loop.participant) for loop in having]

    def raw(self, name: str) -> str:
        """A participant's id as its loop has it."""
        return self._raw.get(name, name)

    def like(self, name: str, program: str) -> tuple[Spec, Preset]:
        """The program of another participant (``like NAME``), for this one.

        Raises:
            PresetError: the other one has none.
        """
        other = self.before(program.removeprefix(LIKE))
        if other is None:
            raise PresetError(f"{program.removeprefix(LIKE)} has no agent")
        return replace(other, participant=self.raw(name), folder=self._folder), other.resolved()

    def chosen(self, name: str, program: str, command: str, model: str) -> tuple[Spec, Preset]:
        """What is asked for when a participant's turns shall be taken with a program.

        Raises:
            PresetError: there is no such program, or the command is none.
        """
        if program == BEFORE:
            return self.again(name, model)
        raw = self.raw(name)
        if program.startswith(LIKE):
            spec, preset = self.like(name, program)
            return (replace(spec, model=model) if model else spec), preset
        if program == ANY:
            preset = presets.typed_command(command)
        else:
            preset = presets.named(program, self._presets)
        spec = self.before(name) or Spec(folder=self._folder, participant=raw, caps=_usual_caps())
        return replace(spec, participant=raw, model=model, mode=Mode.TURN, deadline=None), preset

    def usual(self, name: str, program: str) -> tuple[Spec, Preset]:
        """As before where there was something, else with this program.

        Raises:
            PresetError: there is no such program.
        """
        if self.before(name) is not None:
            return self.again(name)
        return self.chosen(name, program, "", "")


def renewed(spec: Spec, loop: RunnerState | None) -> Spec:
    """What a loop was asked to do; a deadline that passed is counted anew from now."""
    if spec.deadline is None or spec.deadline > utc_now():
        return spec
    length = spec.deadline - loop.started if loop else None
    more = utc_now() + length if length and length.total_seconds() > 0 else None
    return replace(spec, deadline=more)


def installed(known: Mapping[str, Preset]) -> list[str]:
    """The presets whose program is on this machine."""
    return [name for name, preset in known.items() if is_installed(preset.program)]


def installed_first(known: Mapping[str, Preset]) -> list[str]:
    """All presets: those whose program is on this machine, any command, then the others."""
    here = installed(known)
    return [*here, *sorted((name for name in known if name not in here), key=lambda n: n != ANY)]


def missing(known: Mapping[str, Preset]) -> dict[str, str]:
    """What the presets are called whose program is not on this machine."""
    here = {*installed(known), ANY}
    return {name: f"{name} (not installed)" for name in known if name not in here}


def _is_well(loop: RunnerState) -> bool:
    return loop.alive and loop.phase not in (Phase.GAVE_UP, Phase.PAUSING)


def _usual_caps() -> tuple[Cap, ...]:
    """The budgets of the settings; a mistake there is reported where a loop is started."""
    with contextlib.suppress(Refused, settings.SettingsError):
        return caps_of(settings.load().budgets, [])
    return ()


def _presets() -> dict[str, Preset]:
    """Every preset; a mistake in a person's own ones leaves the bundled ones."""
    with contextlib.suppress(PresetError, settings.SettingsError):
        return presets.load(settings.load().presets)
    return dict(presets.bundled())


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen beside the program."""

    model: str
    workdir: str
    alone: bool
    append_after_change: bool
    commands: str | None
    restart: str
    retries: int | None
    pause: float | None
    timeout: float | None
    deadline: float | None
    budget: list[str]
    once: bool = False
    permissions: str = ""

    @classmethod
    def of(cls, given: Values) -> Chosen:
        """What the values of an act say."""
        return cls(**{name: getattr(given, name) for name in cls.__dataclass_fields__})


def load_settings() -> Settings:
    """The person's settings.

    Raises:
        Refused: they cannot be read; says where.
    """
    try:
        return settings.load()
    except SettingsError as error:
        raise Refused(str(error)) from None


def all_presets() -> dict[str, Preset]:
    """Every preset by name.

    Raises:
        Refused: one in config.toml is not what it should be.
    """
    try:
        return presets.load(load_settings().presets)
    except PresetError as error:
        raise Refused(f"config.toml: {error}") from None


def spec_of(folder: str, participant: str, preset: Preset, chosen: Chosen) -> tuple[Spec, Preset]:
    """What is asked for, settings included, and the preset as the options change it.

    Raises:
        Refused: the options do not fit together.
    """
    if chosen.alone and (chosen.append_after_change or preset.append_after_change):
        raise Refused("--append-after-change and --alone exclude each other")
    if chosen.append_after_change:
        preset = replace(preset, append_after_change=True)
    if chosen.commands is not None:
        if "{command}" not in chosen.commands and "{script}" not in chosen.commands:
            raise Refused("--commands must name {command} or {script}")
        preset = replace(preset, commands=chosen.commands)
    settled = load_settings()
    set_by = settled.loops
    limit = chosen.timeout or 60 * set_by.get("turn_minutes", 0) or None
    until = chosen.deadline or 60 * set_by.get("minutes", 0) or None
    spec = Spec(
        folder=folder,
        participant=participant,
        model=chosen.model,
        workdir=chosen.workdir,
        mode=Mode.ALONE if chosen.alone else Mode.TURN,
        restart=Restart(chosen.restart),
        retries=int(set_by.get("retries", 3) if chosen.retries is None else chosen.retries),
        pause=set_by.get("pause", 5.0) if chosen.pause is None else chosen.pause,
        caps=caps_of(settled.budgets, chosen.budget),
        turn_limit=limit,
        deadline=utc_now() + timedelta(seconds=until) if until else None,
        once=chosen.once,
        permissions=chosen.permissions or "",
    )
    return spec, preset
