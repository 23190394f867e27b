"""How a program is chosen and run: what starting a loop takes, wherever it is asked for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

from acp_core.agents import presets
from acp_core.agents.budgets import caps_of
from acp_core.agents.presets import Preset, PresetError
from acp_core.loops.spec import Restart, Spec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.turn import Mode
from acp_core.person import settings
from acp_core.person.settings import Settings, SettingsError
from acp_core.protocols.kit.values import Values


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
