"""A live session as whoever takes a participant's turns sees it: its files, and a turn as a program at work.

The runner that holds the session (`acp_core.agents.live.runner`) is given its order and each turn as
a file, and says in files what it is and how turns end. It goes on when whoever watches is killed; the
next one finds the turn again by its run. A person's message and the cancelling of a turn are files, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import secrets
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from acp_core.agents import background, codec, processes
from acp_core.agents.live.updates import RUNNER
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.processes import Identity, descendants, marked
from acp_core.agents.program import Command, Exit, SpawnError
from acp_core.agents.progress import items, string, table
from acp_core.files import atomic
from acp_core.model.errors import NotStarted

MARK = "ACP_LIVE_SESSION"
"""The variable by which everything that a session starts is known; its value is the path of the place."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a runner is asked for; it stays the same for all its turns.

    Attributes:
        place: the participant's place.
        argv, cwd, env: the agent's program, as it is started.
        ask_mode: the permission mode that makes it ask us; "" where it needs none.
        folders: which the agent may use besides ``cwd``.
        idle: seconds without a turn after which it ends; ``alone`` the same where nobody holds the
            participant's lock.
        handshake: seconds for the agent's first answer: on a busy machine, programs start slowly.
        folder, participant: the collaboration, and whose turns are taken.
        title: the program, for people.
        rejection_ends_turn: the agent ends its turn when a request of it is rejected.
        run_id: the collaboration's run; "" where its protocol names none.
        server: the command that serves the participant's tools to the agent; empty for none.
        server_env: variables that this command needs.
    """

    place: str
    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str] = field(default_factory=dict, repr=False)
    ask_mode: str = ""
    folders: tuple[str, ...] = ()
    idle: float = 600.0
    alone: float = 30.0
    handshake: float = 60.0
    folder: str = ""
    participant: str = ""
    title: str = ""
    rejection_ends_turn: bool = False
    run_id: str = ""
    server: tuple[str, ...] = ()
    server_env: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def command(self) -> Command:
        """The agent's program."""
        return Command(self.argv, self.cwd, self.env)

    @property
    def digest(self) -> str:
        """Changes with anything but the variables, which differ from one caller to the next."""
        words = [*self.argv, self.cwd, self.ask_mode, *self.folders, self.run_id, *self.server]
        return hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: the files of its prompt, its journal, and its end."""

    number: int
    prompt: str
    journal: str
    end: str


@dataclass(frozen=True, slots=True)
class TurnScope:
    """What a turn may do without a person being asked, where the policy lets it.

    Attributes:
        what: what the turn is about, for people.
        documents: files that it may change.
        folders: folders below which it may change files.
        kept: names below those that it may not change without being asked about.
        confined: a change elsewhere is rejected; no person is asked.
        permissions: the policy; "" for that of the settings.
        tools: the tools of our own server that were given to the program.
    """

    what: str = ""
    documents: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    confined: bool = False
    permissions: str = ""
    tools: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class End:
    """How a turn ended.

    Attributes:
        code: 0 where the agent answered it.
        unusable: why no turn can be taken in a live session with this program; "" where one can.
        crashed: the program ended in the middle of it, or closed its output.
    """

    code: int = 0
    unusable: str = ""
    crashed: bool = False


@dataclass(frozen=True, slots=True)
class Held:
    """A runner and its session.

    Attributes:
        process: the runner; ``agent`` the agent's program, None where none runs.
        digest: of what it was asked for.
        session: the agent's name for the session, "" where none began.
        used: when the session was used last; ``turns`` it took.
        number: of the run whose turn it took last.
        leaving: it takes no more turns.
        steers: the agent takes messages in the middle of a turn.
    """

    process: Identity
    agent: Identity | None = None
    digest: str = ""
    session: str = ""
    used: datetime | None = None
    turns: int = 0
    number: int = 0
    leaving: bool = False
    steers: bool = False


class Files:
    """The files of a participant's live session, below its place.

    Args:
        where: the participant's place.
    """

    def __init__(self, where: LoopDirectory) -> None:
        self.folder = where.folder / "live"
        self.mark = (MARK, str(where.folder))

    @property
    def held(self) -> Path:
        """What the runner says of itself."""
        return self.folder / "session.json"

    @property
    def turn(self) -> Path:
        """The turn that the runner is to take next."""
        return self.folder / "turn.json"

    @property
    def messages(self) -> Path:
        """The folder of messages for the running turn."""
        return self.folder / "messages"

    @property
    def scope(self) -> Path:
        """What the turn may do, where its protocol says so beforehand."""
        return self.folder / "scope.json"

    @property
    def errors(self) -> Path:
        """What the agent's program printed as errors."""
        return self.folder / "agent.err"

    def load(self) -> Held | None:
        """The runner that is or was there; None where there was none."""
        with contextlib.suppress(codec.CodecError):
            return codec.read(Held, self.held)
        return None

    def load_scope(self) -> TurnScope | None:
        """What the turn may do; None where nothing says so."""
        with contextlib.suppress(codec.CodecError):
            return codec.read(TurnScope, self.scope)
        return None

    def take_turn(self) -> Turn | None:
        """The turn to be taken next, taken away; None where there is none."""
        try:
            turn = codec.read(Turn, self.turn)
            os.unlink(self.turn)
        except (codec.CodecError, FileNotFoundError):
            return None
        return turn


CRASHES = 2

"""Crashes of a live session after which the rest of a turn is taken without one."""

CRASHED = f"no: the live session crashed {CRASHES} times in this turn"

"""What a session's state says then of live sessions, until the next turn."""

NEXT_TIME = "; the next turn retries"

"""What ends the reason why no live session is possible, where another turn may find it possible."""

_LIBRARY = "acp"

RUNNER_MODULE = "acp_core.agents.live.runner"

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
    module: str = RUNNER_MODULE
    scope: TurnScope | None = None


class LiveTurn:
    """A turn at work, started here or by a watcher before us.

    Args:
        where: the participant's place.
        runner: the process that holds it.
        end: the file that the runner leaves at the turn's end.
    """

    def __init__(self, where: LoopDirectory, runner: Identity, end: Path) -> None:
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
            processes.send(self.identity, number)
            return
        processes.send(self.identity, signal.SIGKILL)
        end_leftovers(self._where)


def only_now(live: str) -> bool:
    """Whether what a session's state says against live sessions holds for this turn only."""
    return live == CRASHED or live.endswith(NEXT_TIME)


def missing() -> str:
    """Why no live session can be held here; "" where one can."""
    return "" if importlib.util.find_spec(_LIBRARY) else EXTRA


def start(where: LoopDirectory, command: LiveCommand, number: int, journal: Path) -> LiveTurn:
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
        atomic.private_folder(files.folder)
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
    processes.send(held.process, signal.SIGUSR1)
    now = files.load()
    if now is not None and not now.leaving and held.process.alive():
        return True
    try:
        os.unlink(files.turn)
    except FileNotFoundError:
        return True  # taken in its last moment
    return False


def adopt(where: LoopDirectory, runner: Identity, journal: Path) -> LiveTurn:
    """A turn that an earlier watcher began."""
    return LiveTurn(where, runner, end_of(journal))


def begun(where: LoopDirectory, number: int) -> Identity | None:
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


def is_held(where: LoopDirectory) -> bool:
    """Whether a session is held for a participant now."""
    held = Files(where).load()
    return held is not None and held.process.alive()


def stop(where: LoopDirectory) -> None:
    """End the session that is held for a participant, and whatever its agent left running."""
    files = Files(where)
    held = files.load()
    if held is None:
        return
    if held.process.alive():
        processes.send(held.process, signal.SIGTERM)
        if not processes.have_ended([held.process], _LEAVE):
            processes.send(held.process, signal.SIGKILL)
    end_leftovers(where)


def end_leftovers(where: LoopDirectory) -> None:
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
        processes.end(left, _SOON)


_STEP = 0.05  # seconds between two looks for a reply

_PATIENCE = 12.0  # seconds for a program to take a message: the runner gives it ten


@dataclass(frozen=True, slots=True)
class Steering:
    """A message for a turn.

    Attributes:
        number: of its run.
        text: what the agent gets; ``by`` who sends it.
        ids: what it holds: a message whose ids were delivered in this turn is not delivered again.
    """

    number: int
    text: str
    by: str
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of a message: whether the agent took it, and why not."""

    delivered: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """An attempt that a person cancelled: its number, and who did."""

    number: int
    by: str


def can_steer(where: LoopDirectory) -> bool:
    """Whether the session that is held takes messages in the middle of a turn."""
    held = Files(where).load()
    return held is not None and held.steers and held.process.alive()


def steer(where: LoopDirectory, message: Steering) -> Reply:
    """Send a message to a running turn, and wait for what comes of it.

    Raises:
        OSError: it cannot be written.
    """
    files = Files(where)
    atomic.private_folder(files.messages)
    path = files.messages / f"{time.time_ns()}-{secrets.token_hex(4)}.json"
    reply = path.with_suffix(".reply")
    codec.write(path, message)
    _wake(files)
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and _is_held(files):
        with contextlib.suppress(codec.CodecError):
            found = codec.read(Reply, reply)
            reply.unlink(missing_ok=True)
            return found
        time.sleep(_STEP)
    path.unlink(missing_ok=True)
    return Reply(False, "the session did not take it in time")


def delivered(journal: Path) -> frozenset[str]:
    """The ids of what was delivered in a turn, as its journal tells."""
    found: set[str] = set()
    with contextlib.suppress(OSError), journal.open("rb") as lines:
        for line in lines:
            if b'"ids"' in line:
                with contextlib.suppress(ValueError, RecursionError):
                    record = table(json.loads(line))
                    if record.get("direction") == RUNNER:
                        found.update(map(string, items(table(record.get("message")).get("ids"))))
    return frozenset(found)


def messages(files: Files) -> Iterator[tuple[Path, Steering]]:
    """The messages that were sent, oldest first; each is taken away and needs a `reply`."""
    try:
        names = sorted(os.listdir(files.messages))
    except OSError:
        return
    for path in (files.messages / name for name in names if name.endswith(".json")):
        with contextlib.suppress(codec.CodecError, OSError):
            message = codec.read(Steering, path)
            path.unlink()
            yield path, message


def reply(path: Path, answer: Reply) -> None:
    """Say what came of a message."""
    with contextlib.suppress(OSError):
        codec.write(path.with_suffix(".reply"), answer)


def discard_messages(files: Files) -> None:
    """Take away messages and replies that nobody waits for any more."""
    with contextlib.suppress(OSError):
        for path in files.messages.iterdir():
            path.unlink(missing_ok=True)


def cancel(where: LoopDirectory, number: int, by: str) -> None:
    """Cancel an attempt: note it, and wake who holds its session.

    Raises:
        OSError: it cannot be written.
    """
    codec.write(where.cancelled, Cancelled(number, by))
    _wake(Files(where))


def cancelled_by(where: LoopDirectory, number: int) -> str:
    """Who cancelled an attempt; "" where nobody did."""
    with contextlib.suppress(codec.CodecError):
        found = codec.read(Cancelled, where.cancelled)
        return found.by if found.number == number else ""
    return ""


def _is_held(files: Files) -> bool:
    held = files.load()
    return held is not None and held.process.alive()


def _wake(files: Files) -> None:
    held = files.load()
    if held is not None:
        processes.send(held.process, signal.SIGUSR1)
