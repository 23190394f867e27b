"""One turn of a live session, as whoever takes a participant's turns sees it: a program at work.

The runner that holds the session (`acp_core.agents.live.runner`) is given the turn as a file. It
goes on when whoever watches is killed; the next one finds the turn again by its run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
from dataclasses import dataclass
from pathlib import Path

from acp_core.agents import background, codec, ending
from acp_core.agents.identity import Identity, descendants, marked
from acp_core.agents.live.state import End, Files, Held, Order, Turn, TurnScope
from acp_core.agents.place import Place
from acp_core.agents.spawn import Exit, SpawnError
from acp_core.files import modes
from acp_core.model.errors import NotStarted

CRASHES = 2
"""Crashes of a live session after which the rest of a turn is taken without one."""
CRASHED = f"no: the live session crashed {CRASHES} times in this turn"
"""What a session's state says then of live sessions, until the next turn."""
NEXT_TIME = "; the next turn retries"
"""What ends the reason why no live session is possible, where another turn may find it possible."""
_LIBRARY = "acp"
RUNNER = "acp_core.agents.live.runner"
"""The runner whose policy is what each turn's scope says."""
_LEAVE = 15.0  # seconds for a runner to end with its agent
_SOON = 2.0  # seconds between asking what it left behind to end and making it
EXTRA = 'install the extra: pip install "acp-tui[live]"'


@dataclass(frozen=True, slots=True)
class LiveCommand:
    """A turn that is to be taken in a live session.

    Attributes:
        order: what the runner is asked for.
        prompt: the file of the turn's prompt.
        module: the runner: `RUNNER`, or one that knows a policy.
        scope: what the turn may do, for `RUNNER`.
    """

    order: Order
    prompt: str
    module: str = RUNNER
    scope: TurnScope | None = None


class LiveTurn:
    """A turn at work, started here or by a watcher before us.

    Args:
        where: the participant's place.
        runner: the process that holds it.
        end: the file that the runner leaves at the turn's end.
    """

    def __init__(self, where: Place, runner: Identity, end: Path) -> None:
        self._where = where
        self.identity = runner
        self._end = end

    def poll(self) -> Exit | None:
        """How the turn ended, or None while it goes on."""
        alive = self.identity.alive()  # before the look at the file: it may end in between
        end = _read_end(self._end)
        if end is not None:
            return Exit(code=end.code)
        return None if alive else Exit()

    def signal(self, number: int) -> None:
        """Ask the runner to cancel the turn and end; or end it with all that its agent started."""
        if number != signal.SIGKILL:
            ending.send(self.identity, number)
            return
        ending.send(self.identity, signal.SIGKILL)
        sweep(self._where)


def only_now(live: str) -> bool:
    """Whether what a session's state says against live sessions holds for this turn only."""
    return live == CRASHED or live.endswith(NEXT_TIME)


def missing() -> str:
    """Why no live session can be held here; "" where one can."""
    return "" if importlib.util.find_spec(_LIBRARY) else EXTRA


def start(where: Place, command: LiveCommand, number: int, journal: Path) -> LiveTurn:
    """Begin a turn: in the session that is held, or with a new runner.

    Args:
        where: the participant's place.
        command: the turn.
        number: of its run.
        journal: the file for what happens in it.

    Raises:
        SpawnError: no runner can be started.
    """
    files = Files(where)
    end = end_of(journal)
    turn = Turn(number, command.prompt, str(journal), str(end))
    try:
        modes.private_folder(files.folder)
        end.unlink(missing_ok=True)
        if command.scope is not None:
            codec.write(files.scope, command.scope)
        held = files.load()
        if held is None or not _goes_on(files, held, command.order, turn):
            stop(where)
            codec.write(files.turn, turn)
            background.start(command.module, given=codec.encode(command.order))
            held = files.load()
    except (NotStarted, OSError) as error:
        raise SpawnError(f"the live session did not start: {error}") from None
    if held is None:
        raise SpawnError("the live session did not start")
    return LiveTurn(where, held.process, end)


def _goes_on(files: Files, held: Held, order: Order, turn: Turn) -> bool:
    """Whether the session that is held takes the turn."""
    if held.leaving or held.digest != order.digest or not held.process.alive():
        return False
    codec.write(files.turn, turn)
    ending.send(held.process, signal.SIGUSR1)
    now = files.load()
    if now is not None and not now.leaving and held.process.alive():
        return True
    try:
        os.unlink(files.turn)
    except FileNotFoundError:
        return True  # taken in its last moment
    return False


def adopt(where: Place, runner: Identity, journal: Path) -> LiveTurn:
    """A turn that an earlier watcher began."""
    return LiveTurn(where, runner, end_of(journal))


def begun(where: Place, number: int) -> Identity | None:
    """The runner that took the turn of a run, or will; None where the run is no live turn."""
    files = Files(where)
    held = files.load()
    if held is None:
        return None
    if held.number == number:
        return held.process
    with contextlib.suppress(codec.CodecError):
        if codec.read(Turn, files.turn).number == number and held.process.alive():
            return held.process
    return None


def end_of(journal: Path) -> Path:
    """The file that says how a turn ended, beside its journal."""
    return journal.with_suffix(".end")


def unusable(journal: Path) -> str:
    """Why the turn showed that its program can hold no live session; "" where it did not."""
    end = _read_end(end_of(journal))
    return end.unusable if end else ""


def crashed(journal: Path) -> bool:
    """Whether the turn ended because its session crashed: the program, or who held it."""
    end = _read_end(end_of(journal))
    return end is None or end.crashed


def has_ended(journal: Path) -> bool:
    """Whether the runner has said how the turn ended."""
    return exit_of(journal) is not None


def exit_of(journal: Path) -> Exit | None:
    """How a turn ended, as its runner said; None where it has not."""
    end = _read_end(end_of(journal))
    return None if end is None else Exit(code=end.code)


def _read_end(path: Path) -> End | None:
    with contextlib.suppress(codec.CodecError):
        return codec.read(End, path)
    return None


def is_held(where: Place) -> bool:
    """Whether a session is held for a participant now."""
    held = Files(where).load()
    return held is not None and held.process.alive()


def stop(where: Place) -> None:
    """End the session that is held for a participant, and whatever its agent left running."""
    files = Files(where)
    held = files.load()
    if held is None:
        return
    if held.process.alive():
        ending.send(held.process, signal.SIGTERM)
        if not ending.have_ended([held.process], _LEAVE):
            ending.send(held.process, signal.SIGKILL)
    sweep(where)


def sweep(where: Place) -> None:
    """End what the agent of a runner that was killed started, and the agent itself."""
    files = Files(where)
    held = files.load()
    if held is None or held.process.alive():
        return
    for _ in range(3):
        left = set(marked(*files.mark))
        if held.agent is not None and held.agent.alive():
            left |= {held.agent, *descendants(held.agent.pid)}
        if not left:
            return
        ending.end(left, _SOON)
