"""One loop as a process: from its spec to its exit code."""

from __future__ import annotations

from collections.abc import Callable

from acp_core.agents.place import CannotClaim, LoopRunning, place
from acp_core.agents.presets import PresetError
from acp_core.agents.program import Program
from acp_core.agents.session import Session
from acp_core.agents.spawn import SpawnError
from acp_core.history.library import Bounds
from acp_core.loops.launch import LaunchError, conductor, open_folder, shown_command
from acp_core.loops.recording import Keeping
from acp_core.loops.spec import Spec, save
from acp_core.loops.turns import Loop
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
        program = spec.chosen()
    except PresetError as error:
        raise LaunchError(str(error)) from None
    collaboration = open_folder(spec.folder)
    try:
        with Session.of(
            program,
            spec.participant,
            mode=spec.mode.value,
            attempts=spec.attempts,
            deadline=spec.deadline,
            command=_command(program, spec.participant),
            echo=echo,
        ) as session:
            save(spec, where)
            session.say(f"a loop for {spec.participant} with {program.title} begins")
            if ready:
                ready()
            keeping = Keeping(collaboration, spec.folder, spec.participant, _bounds(), session.say)
            try:
                return Loop(session, collaboration, spec, seen=keeping.record).run()
            finally:
                keeping.close()
    except LoopRunning as error:
        holder = conductor(spec).holder(str(error))
        raise LaunchError(f"{spec.participant} has a loop already{holder}") from None
    except CannotClaim as error:
        raise LaunchError(str(error)) from None
    except OSError as error:
        raise LaunchError(f"{error.filename or where.folder}: {error.strerror or error}") from None
    finally:
        collaboration.close()


def _bounds() -> Bounds:
    """What is recorded; nothing where the settings cannot be read."""
    try:
        return Bounds.of(settings.load().recording)
    except settings.SettingsError:
        return Bounds(on=False)


def _command(program: Program, participant: str) -> tuple[str, ...]:
    """The command, to be shown; a program that has gone meanwhile is told of at the first turn."""
    try:
        return shown_command(program, participant)
    except SpawnError:
        return program.words
