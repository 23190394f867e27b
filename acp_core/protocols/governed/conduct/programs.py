"""A turn taken by a program on this machine, without a shell and alone in its own session.

Where the runtime names an agent by its preset alone, it is taken in a live session if that is
possible. The role keeps its session from one turn to the next. Whoever takes the turn may be killed:
who takes it next finds the agent at work, or what it left, and starts none beside it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from acp_core.agents import presets
from acp_core.agents import program as agents_program
from acp_core.agents.assignment import Assignment, perform
from acp_core.agents.live import binding
from acp_core.agents.live.binding import offered
from acp_core.agents.live.turn import TurnScope
from acp_core.agents.logs import last_lines
from acp_core.agents.loop_directory import CannotClaim, LoopRunning
from acp_core.agents.presets import ANY, Preset, PresetError, any_command
from acp_core.agents.processes import myself
from acp_core.agents.program import Attempt, Command, Exit, Program, SpawnError
from acp_core.agents.session import Session, mark_command
from acp_core.agents.state import Phase, Run
from acp_core.files import atomic
from acp_core.files.claims import ClaimError
from acp_core.files.reading import stamp
from acp_core.model.text import clean_line
from acp_core.person import settings
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import AUTHORITATIVE, REVIEW_ONLY, Runtime, obj, text
from acp_core.protocols.governed.state import OPERATION_MARK
from acp_core.protocols.governed.write import turns as write_turns
from acp_core.protocols.governed.write.turns import TakenTurn, Task
from acp_core.protocols.kit.tools import tools_in

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
        atomic.private_folder(task.own)
        path = task.own / "stdin.md"
        atomic.replace(path, prompt_of(task).encode(errors="replace"), sync=False, private=True)
        stdin = os.fspath(path)
    program = agents_program.resolve(words[0], place)
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
    return agents_program.environment() | variables(task)


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
        atomic.shared_folder(task.staged.parent)
        atomic.private_folder(task.own)
        ready = command(task)
        _refuse_unbound(task, ready)
        err, out = write_turns.fresh_program_logs(task.root, task.turn_id)
        child = agents_program.start_program(mark_command(ready, os.fspath(task.own)), out, err)
    except SpawnError as error:
        return TakenTurn(False, clean_line(str(error), 300))
    except OSError as error:
        return TakenTurn(False, clean_line(f"{error.filename}: {error.strerror}", 300))
    attempt = Attempt(child, _GRACE)
    try:
        write_turns.note_program(task.root, task.turn_id, child.identity)
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


_LATE = "the turn's deadline has passed"


def preset_of(runtime: Runtime) -> Preset | None:
    """The preset that a runtime names; None where it names a command.

    Raises:
        PresetError: an own preset is not what it should be.
        SettingsError: the settings cannot be read.
    """
    words = (*runtime.command, *runtime.args)
    if runtime.type != schema.LOCAL_PROGRAM or len(words) != 1 or words[0] == ANY:
        return None
    found = presets.load(settings.load().presets).get(words[0])
    return found if found and found.program else None


def described_preset(preset: Preset, runtime: Runtime, root: str) -> str:
    """Which agent takes a turn, and whether in a live session, in a few words."""
    program = offered(_preset_program(preset, runtime, root, root))
    how = "in a live session" if program.live else "started for the turn"
    more = f" (no live session: {program.not_live})" if program.not_live else ""
    return f"{clean_line(program.title, 120)}, {how}{clean_line(more, 300)}"


class RoleTurn(Assignment):
    """One attempt of a role at a turn.

    Args:
        task: the turn.
        preset: the agent that takes it.
        tell: is told what people should know while it lasts.
    """

    def __init__(
        self, task: Task, preset: Preset, tell: Callable[[str], None] = lambda line: None
    ) -> None:
        self._task = task
        self._preset = preset
        self._tell = tell
        self._noted = 0
        turn, state = task.turn, task.state
        attempt = turn.get("attempt")
        attempt = attempt if isinstance(attempt, int) else 1
        self.role = text(turn, "assigned_role", 80)
        self.run_id = text(state, "run_id", 200)
        phase = text(state, "phase", 80)
        super().__init__(
            "|".join((self.run_id, task.turn_id, str(attempt), text(turn, "dispatched_at", 80))),
            OPERATION_MARK,
            note=f"{phase}: {task.turn_id}"[:200],
            title=f"turn {task.turn_id}, attempt {attempt}",
            attempt=attempt,
            timeout=task.seconds_left(),
            late=_LATE,
            turn=f"{self.run_id}|{task.turn_id}",
        )

    def program(self) -> Program:
        """The role's agent."""
        task = self._task
        place = folder_of(task)
        env = {**self._preset.env, **variables(task)}
        made = _preset_program(
            replace(self._preset, env=env), task.runtime, os.fspath(task.root), place
        )
        return offered(made)

    def prompt(self) -> str:
        """What the turn's bundle says."""
        return prompt_of(self._task)

    def tools(self) -> tuple[str, ...]:
        """Those of the protocol's participants."""
        return tools_in("governed")

    def mark(self, number: int) -> str:
        """The turn, as every program of a turn bears it."""
        return self._task.turn_id

    def is_left_done(self, run: Run) -> bool:
        """Whether the result was staged in this attempt."""
        found = stamp(self._task.staged)
        return found is not None and found.modified >= run.started.timestamp() * 1e9

    def refused(self, why: str) -> None:
        """Say it where the turn is waited for; until then this process is the one that takes it."""
        self._note_myself()
        self._tell(f"{self.role} waits for its model service: {why}")

    def _note_myself(self) -> None:
        self._noted = 0
        with contextlib.suppress(OSError):
            write_turns.note_program(self._task.root, self._task.turn_id, myself())

    def held(self, why: str) -> None:
        """Say it where the turn is waited for; until then this process is the one that takes it."""
        self._note_myself()
        root = shlex.quote(os.fspath(self._task.root))
        self._tell(f"{why}; raise it with `acp act {root} raise_budget`")

    def scope(self) -> TurnScope:
        """What the role's authority lets it change, and the result that it must write."""
        root = self._task.root
        authority = text(obj(obj(self._task.config, "roles"), self.role), "write_authority", 40)
        papers = (str(root / ".planning"), str(root / ".agentxchain" / "reviews"))
        folders = {AUTHORITATIVE: (str(root), *papers), REVIEW_ONLY: papers}.get(authority, ())
        kept = (str(root / "agentxchain.json"),)
        return TurnScope(self.note, (str(self._task.staged),), folders, kept)

    def check(self, run: Run) -> str:
        """Note which process takes the turn, where everybody sees it."""
        if run.process.pid == self._noted:
            return ""
        try:
            write_turns.note_program(self._task.root, self._task.turn_id, run.process)
        except OSError as error:  # then another account could take the turn as well
            return f"its process cannot be noted: {error.strerror or error}"
        self._noted = run.process.pid
        return ""


def take_with_preset(task: Task, preset: Preset, tell: Callable[[str], None]) -> TakenTurn:
    """Have the agent take the turn, until it ends or the turn's deadline has passed.

    Never raises for what the agent does.

    Args:
        task: the turn.
        preset: the agent that takes it.
        tell: is told what people should know while it lasts.
    """
    work = RoleTurn(task, preset, tell)
    try:
        atomic.shared_folder(task.staged.parent)
        program = work.program()
        with Session.of(program, work.role, attempts=1, run_id=work.run_id) as session:
            run = perform(session, work)
            staged = task.staged.exists()
            ended_well = staged and (run.exit_code == 0 or run.live or run.stopped)
            then = "after it staged its result" if staged else "and staged no result"
            why = "" if ended_well else _why_not_taken(run, then)
            session.record(run, turn=task.turn_id, attempt=work.attempt, took=staged, mode="turns")
            phase = Phase.STOPPED if session.stopping else Phase.DONE
            turns = session.state.turns + staged
            note = "the result is staged" if staged else why
            session.finish(phase, note, turns=turns)
    except (SpawnError, PresetError, CannotClaim, ClaimError) as error:
        return TakenTurn(False, clean_line(str(error), 300))
    except LoopRunning as error:
        why = f"{work.role} already has an agent at work: {error}".rstrip(": ")
        return TakenTurn(False, clean_line(why, 300))
    except OSError as error:
        return TakenTurn(False, clean_line(f"{error.filename}: {error.strerror}", 300))
    return TakenTurn(staged, clean_line(why, 300))


def _preset_program(preset: Preset, runtime: Runtime, root: str, place: str) -> Program:
    return Program(preset, root, place, model=runtime.model if preset.model_args else "")


def _why_not_taken(run: Run, then: str) -> str:
    if run.stopped:
        return f"acp stopped its agent: {run.stopped}; no result is staged"
    last = run.error or next((line for line in reversed(run.lines) if line.strip()), "")
    problem = f"its agent ended ({run.exit or 'unseen'}) {then}"
    return f"{problem}: {last.strip()}" if last else problem
