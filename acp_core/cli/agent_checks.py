"""What ``acp doctor`` says of the agents' programs that presets know."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from acp_core.agents import presets, spawn
from acp_core.agents import program as agents_program
from acp_core.agents.live import binding
from acp_core.agents.presets import Preset, PresetError
from acp_core.cli.check import Check, State
from acp_core.loops import parking
from acp_core.person.permissions import Permissions, parse
from acp_core.person.settings import SettingsError, load

_GROUP = "Agent programs"
_ONCE = "acp starts it for each attempt"


def agents(folders: Sequence[str] = ()) -> Iterator[Check]:
    """What keeps loops from waking; each preset's program: where, and which version it says it is.

    Args:
        folders: where agents work: some programs want to be told which folders to trust.
    """
    silent = parking.silent()
    if silent:
        name = f"process {silent.process.pid}"
        yield Check(
            _GROUP, "loop supervisor", State.WARN, name, f"{silent.sentence}: {silent.cure}"
        )
    allowed = Permissions()
    try:
        settings = load()
        allowed = parse(settings.permissions)
        known = presets.load(settings.presets)
    except SettingsError:  # told by the check of the settings themselves
        known = dict(presets.bundled())
    except PresetError as error:
        yield Check(_GROUP, "presets", State.WARN, str(error), "correct it in config.toml")
        known = dict(presets.bundled())
    asked = [preset for preset in known.values() if preset.program]
    check = partial(_program, folders=folders, allowed=allowed)
    with ThreadPoolExecutor() as pool:  # each takes its time to start
        for checks in pool.map(check, asked):
            yield from checks


def _program(preset: Preset, folders: Sequence[str], allowed: Permissions) -> tuple[Check, ...]:
    try:
        program = spawn.resolve(preset.program)
    except spawn.SpawnError as error:
        return (Check(_GROUP, preset.name, State.OPTIONAL, str(error), preset.install),)
    version = spawn.version(program, preset.version_args)
    value = " ".join(filter(None, (version or "version unknown", f"({program})")))
    if preset.tested:
        value += f"; acp was tested with {'it' if version == preset.tested else preset.tested}"
    may = Check(_GROUP, f"{preset.name} may", State.OK, _may(preset))
    found = Check(_GROUP, preset.name, State.OK, value)
    return (found, *_login(preset), _live(preset, allowed), *_trust(preset, folders), may)


def _live(preset: Preset, allowed: Permissions) -> Check:
    """Whether its turns are taken in a live session, or it is started for each attempt."""
    name = f"{preset.name} live"
    why = binding.missing(preset, os.getcwd()) if preset.live else ""
    is_live = bool(preset.live) and not why
    if unbound := binding.unbound(preset, allowed.policy, live=is_live):
        return Check(_GROUP, name, State.OPTIONAL, unbound)
    left = binding.left_open(preset, allowed, live=is_live)
    if not is_live:
        once = f"{_ONCE}: {why}" if why else _ONCE
        more = f"; {left}" if allowed != Permissions() else ""
        return Check(_GROUP, name, State.OPTIONAL if why else State.OK, f"{once}{more}")
    stays = "it stays for many turns, in a live session"
    decides = f"the policy {allowed.policy.value!r} decides what it asks"
    return Check(_GROUP, name, State.OK, "; ".join(filter(None, (stays, decides, left))))


def _trust(preset: Preset, folders: Sequence[str]) -> Iterator[Check]:
    """Whether its model gets tools where it would work."""
    if not agents_program.asks(preset):
        return
    name = f"{preset.name} tools"
    for folder in map(os.path.abspath, filter(os.path.isdir, folders)):
        if agents_program.missing(preset, folder):
            value = f"{preset.title} {agents_program.EFFECT}: {folder}"
            yield Check(_GROUP, name, State.WARN, value, agents_program.cure(preset, folder))
        else:
            yield Check(_GROUP, name, State.OK, f"in {folder}")


def _login(preset: Preset) -> Iterator[Check]:
    """Whether there is a sign of a login: looked for, not tried."""
    name = f"{preset.name} login"
    for variable in preset.login_env:
        if os.environ.get(variable):
            yield Check(_GROUP, name, State.OK, f"by {variable}")
            return
    for path in preset.login_files:
        known = os.path.expanduser(os.path.expandvars(path))
        if os.path.isfile(known):
            yield Check(_GROUP, name, State.OK, f"by {known}")
            return
    if preset.login_env or preset.login_files:
        yield Check(_GROUP, name, State.OPTIONAL, "acp does not find one", preset.login)


def _may(preset: Preset) -> str:
    """What it may do without asking anybody."""
    if preset.permissions and "{permissions}" in preset.args:
        more = f" and those that begin with {', '.join(preset.allow)}" if preset.allow else ""
        own = f"; {preset.may}" if preset.may else ""
        return f"change files in its folders, and run the commands of its prompt{more}{own}"
    return preset.may or preset.caution or "acp does not know"
