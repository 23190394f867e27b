"""A turn taken by a program on this machine, without a shell and alone in its own session."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from acp_core.agents import spawn, unrecorded_start
from acp_core.agents.live import binding
from acp_core.agents.logs import last_lines
from acp_core.agents.presets import any_command
from acp_core.agents.program import Program
from acp_core.agents.spawn import Attempt, Command, Exit, SpawnError
from acp_core.files import atomic, modes
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.conduct.adapters.task import TakenTurn, Task
from acp_core.protocols.governed.schema import Runtime
from acp_core.protocols.governed.state import OPERATION_MARK
from acp_core.protocols.governed.write import turn_processes

_GRACE = 5.0  # seconds between asking a program to end and making it
TRANSPORTS = ("stdin", "argv", "dispatch_bundle_only")


def words_of(runtime: Runtime) -> list[str]:
    """The program and its arguments as they are configured.

    Raises:
        SpawnError: none is.
    """
    if not runtime.command:
        raise SpawnError("the runtime names no command")
    return [*runtime.command, *runtime.args]


def command(task: Task) -> Command:
    """The program that takes the turn, ready to be started.

    Raises:
        SpawnError: it is not there, or what it should get is too long for an argument.
    """
    words = words_of(task.runtime)
    place = folder_of(task)
    how = task.runtime.prompt_transport or "dispatch_bundle_only"
    if how not in TRANSPORTS:
        raise SpawnError(f"prompt_transport “{how}” is not one of {', '.join(TRANSPORTS)}")
    stdin = None
    if how == "argv":
        prompt = prompt_of(task)
        if not any("{prompt}" in word for word in words):
            words.append("{prompt}")
        words = [words[0], *(word.replace("{prompt}", prompt) for word in words[1:])]
        if len(prompt.encode()) > 120_000:
            raise SpawnError("the prompt is too long for an argument: use stdin")
    elif how == "stdin":
        modes.private_folder(task.own)
        path = task.own / "stdin.md"
        atomic.replace(path, prompt_of(task).encode(errors="replace"), sync=False, private=True)
        stdin = os.fspath(path)
    program = spawn.resolve(words[0], place)
    return Command((program, *words[1:]), place, environment(task), stdin)


def folder_of(task: Task) -> str:
    """The folder in which the runtime's program runs.

    Raises:
        SpawnError: it is none of the repository's.
    """
    cwd = task.runtime.cwd or "."
    inside = schema.inside(task.root, cwd)
    if inside is None:
        raise SpawnError(f"the runtime's folder {cwd} leads out of the repository")
    return os.fspath(inside)


def environment(task: Task) -> Mapping[str, str]:
    """The variables of the turn's program."""
    return spawn.environment() | variables(task)


def variables(task: Task) -> dict[str, str]:
    """Which turn a program takes, and where."""
    return {
        OPERATION_MARK: task.turn_id,
        "AGENTXCHAIN_RUN_ID": str(task.state.get("run_id")),
        "AGENTXCHAIN_TURN_ID": task.turn_id,
        "AGENTXCHAIN_ROLE": str(task.turn.get("assigned_role")),
        "AGENTXCHAIN_PHASE": str(task.state.get("phase")),
        "AGENTXCHAIN_PROJECT_ROOT": os.fspath(task.root),
        "AGENTXCHAIN_DISPATCH_DIR": os.fspath(task.folder),
        "AGENTXCHAIN_STAGING_PATH": os.fspath(task.staged),
    }


def prompt_of(task: Task) -> str:
    """What the turn's bundle tells its program."""
    parts = [
        (task.folder / name).read_text(encoding="utf-8", errors="replace")
        for name in ("PROMPT.md", "CONTEXT.md", "CROSS_REPO_CONTEXT.md")
        if (task.folder / name).is_file()
    ]
    return "\n\n".join(parts).replace("\0", "\ufffd")  # which no argument can hold


def take_with_program(task: Task) -> TakenTurn:
    """Run the program until it ends or the turn's deadline has passed.

    What it prints goes into ``stdout.log`` and ``stderr.log`` of `Task.own`. Never raises for
    what the program does.
    """
    try:
        modes.shared_folder(task.staged.parent)
        modes.private_folder(task.own)
        ready = command(task)
        _refuse_unbound(task, ready)
        err, out = turn_processes.fresh_logs(task.root, task.turn_id)
        child = spawn.start(unrecorded_start.marked(ready, os.fspath(task.own)), out, err)
    except SpawnError as error:
        return TakenTurn(False, clean_line(str(error), 300))
    except OSError as error:
        return TakenTurn(False, clean_line(f"{error.filename}: {error.strerror}", 300))
    attempt = Attempt(child, _GRACE)
    try:
        turn_processes.note(task.root, task.turn_id, child.identity)
        ended = attempt.wait(task.seconds_left())
    except BaseException:
        attempt.stop("the turn is no longer active")
        attempt.wait()
        raise
    if task.staged.exists():
        well = ended.code == 0 or attempt.stopped
        return TakenTurn(True, "" if well else _why(ended, err, "after it staged its result"))
    if attempt.stopped:
        return TakenTurn(
            False, "acp stopped its program at the turn's deadline; no result is staged"
        )
    return TakenTurn(False, _why(ended, err, "and staged no result"))


def _refuse_unbound(task: Task, ready: Command) -> None:
    """Refuse where the person's policy rejects everything: such a program asks nobody.

    Raises:
        SpawnError: it does.
    """
    root = os.fspath(task.root)
    binding.prepared(Program(any_command(ready.argv), root, root), "", "")


def _why(ended: Exit, err: Path, then: str) -> str:
    said = next((line for line in reversed(last_lines(err, 5)) if line.strip()), "")
    problem = f"its program ended ({ended}) {then}"
    return clean_line(f"{problem}: {said.strip()}" if said else problem, 300)
