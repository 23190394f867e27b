"""What ``acp doctor`` says of the agents' programs that presets know."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from acp_core.agents import presets, spawn
from acp_core.agents.presets import Preset, PresetError
from acp_core.cli.check import Check, State
from acp_core.loops import heartbeat
from acp_core.person.settings import SettingsError, load

_GROUP = "Agent programs"


def agents() -> Iterator[Check]:
    """What keeps loops from waking; each preset's program: where, and which version it says it is."""
    silent = heartbeat.silent()
    if silent:
        name = f"process {silent.process.pid}"
        yield Check(
            _GROUP, "loop supervisor", State.WARN, name, f"{silent.sentence}: {silent.cure}"
        )
    try:
        known = presets.load(load().presets)
    except SettingsError:  # told by the check of the settings themselves
        known = dict(presets.bundled())
    except PresetError as error:
        yield Check(_GROUP, "presets", State.WARN, str(error), "correct it in config.toml")
        known = dict(presets.bundled())
    asked = [preset for preset in known.values() if preset.program]
    with ThreadPoolExecutor() as pool:  # each takes its time to start
        yield from pool.map(_program, asked)


def _program(preset: Preset) -> Check:
    try:
        program = spawn.resolve(preset.program)
    except spawn.SpawnError as error:
        return Check(_GROUP, preset.name, State.OPTIONAL, str(error), preset.install)
    version = spawn.version(program, preset.version_args)
    value = " ".join(filter(None, (version or "version unknown", f"({program})")))
    if not preset.tested or version == preset.tested:
        return Check(_GROUP, preset.name, State.OK, value)
    return Check(_GROUP, preset.name, State.OK, f"{value}; acp was tested with {preset.tested}")
