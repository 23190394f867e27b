"""What a live session's runner is asked for, and what it says of itself in its files."""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from acp_core.agents import codec
from acp_core.agents.identity import Identity
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.spawn import Command

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
