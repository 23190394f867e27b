"""One loop as a process: from its spec to its exit code."""

from __future__ import annotations

from collections.abc import Callable

from acp_core.agents.place import LoopRunning, place
from acp_core.agents.presets import Preset, PresetError
from acp_core.agents.registry import find
from acp_core.agents.spawn import SpawnError
from acp_core.agents.state import Saved
from acp_core.agents.supervise import Runner, myself
from acp_core.history.library import Bounds
from acp_core.loops.launch import LaunchError, open_folder, shown_command
from acp_core.loops.recording import Keeping
from acp_core.loops.spec import Spec, save
from acp_core.loops.turns import Loop
from acp_core.model.clock import utc_now
from acp_core.person import settings


def run(
    spec: Spec,
    *,
    ready: Callable[[], None] | None = None,
    echo: Callable[[str], None] | None = None,
) -> int:
    """Run a loop in this process until it ends.

    Args:
        spec: what it is asked to do.
        ready: called once the loop is the participant's only one.
        echo: is given every line of its log.

    Returns:
        The exit code, see `Loop.run`.

    Raises:
        LaunchError: it cannot run.
    """
    where = place(spec.folder, spec.participant)
    try:
        preset = spec.resolved()
    except PresetError as error:
        raise LaunchError(str(error)) from None
    saved = Saved(
        folder=spec.folder,
        participant=spec.participant,
        process=myself(),
        started=utc_now(),
        program=spec.name,
        version=spec.version,
        model=spec.model,
        command=_command(spec, preset),
        workdir=spec.workdir,
        mode=spec.mode.value,
        attempts=spec.attempts,
        deadline=spec.deadline,
    )
    collaboration = open_folder(spec.folder)
    try:
        runner = Runner(
            where,
            saved,
            stream=preset.stream,
            prices=(preset.price_in, preset.price_out),
            echo=echo,
        )
        with runner:
            save(spec, where)
            title = " ".join(filter(None, (preset.title or spec.name, spec.version, spec.model)))
            runner.say(f"a loop for {spec.participant} with {title} begins")
            if ready:
                ready()
            keeping = Keeping(collaboration, spec.folder, spec.participant, _bounds(), runner.say)
            try:
                return Loop(runner, collaboration, spec, seen=keeping.look).run()
            finally:
                keeping.close()
    except LoopRunning:
        other = find(spec.folder, spec.participant)
        who = f" (process {other.pid})" if other and other.alive else ""
        raise LaunchError(f"{spec.participant} has a loop already{who}") from None
    except OSError as error:
        raise LaunchError(f"{where.folder}: {error.strerror or error}") from None
    finally:
        collaboration.close()


def _bounds() -> Bounds:
    """What is recorded; nothing where the settings cannot be read."""
    try:
        return Bounds.of(settings.load().recording)
    except settings.SettingsError:
        return Bounds(on=False)


def _command(spec: Spec, preset: Preset) -> tuple[str, ...]:
    """The command, to be shown; a program that has gone meanwhile is told of at the first turn."""
    try:
        return shown_command(spec, preset)
    except SpawnError:
        return (spec.program, *preset.args)
