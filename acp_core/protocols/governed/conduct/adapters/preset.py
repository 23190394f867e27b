"""A turn taken by an agent that the runtime names by its preset alone: in a live session where that is possible.

The role keeps its session from one turn to the next. Whoever takes the turn may be killed: who
takes it next finds the agent at work, or what it left, and starts none beside it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable
from dataclasses import replace

from acp_core.agents import presets
from acp_core.agents.assignment import Assignment, perform
from acp_core.agents.identity import myself
from acp_core.agents.live.binding import offered
from acp_core.agents.live.state import TurnScope
from acp_core.agents.loop_directory import CannotClaim, LoopRunning
from acp_core.agents.presets import ANY, Preset, PresetError
from acp_core.agents.program import Program
from acp_core.agents.session import Session
from acp_core.agents.spawn import SpawnError
from acp_core.agents.state import Phase, Run
from acp_core.files import modes
from acp_core.files.claims import ClaimError
from acp_core.files.reading import stamp
from acp_core.model.text import clean_line
from acp_core.person import settings
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.conduct.adapters.local_cli import folder_of, prompt_of, variables
from acp_core.protocols.governed.conduct.adapters.task import TakenTurn, Task
from acp_core.protocols.governed.schema import AUTHORITATIVE, REVIEW_ONLY, Runtime, obj, text
from acp_core.protocols.governed.state import OPERATION_MARK
from acp_core.protocols.governed.write import turn_processes
from acp_core.protocols.kit.tool_names import tools_in

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


def described(preset: Preset, runtime: Runtime, root: str) -> str:
    """Which agent takes a turn, and whether in a live session, in a few words."""
    program = offered(_program(preset, runtime, root, root))
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
        made = _program(replace(self._preset, env=env), task.runtime, os.fspath(task.root), place)
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
            turn_processes.note(self._task.root, self._task.turn_id, myself())

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
            turn_processes.note(self._task.root, self._task.turn_id, run.process)
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
        modes.shared_folder(task.staged.parent)
        program = work.program()
        with Session.of(program, work.role, attempts=1, run_id=work.run_id) as session:
            run = perform(session, work)
            staged = task.staged.exists()
            ended_well = staged and (run.exit_code == 0 or run.live or run.stopped)
            then = "after it staged its result" if staged else "and staged no result"
            why = "" if ended_well else _why(run, then)
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


def _program(preset: Preset, runtime: Runtime, root: str, place: str) -> Program:
    return Program(preset, root, place, model=runtime.model if preset.model_args else "")


def _why(run: Run, then: str) -> str:
    if run.stopped:
        return f"acp stopped its agent: {run.stopped}; no result is staged"
    last = run.error or next((line for line in reversed(run.lines) if line.strip()), "")
    problem = f"its agent ended ({run.exit or 'unseen'}) {then}"
    return f"{problem}: {last.strip()}" if last else problem
