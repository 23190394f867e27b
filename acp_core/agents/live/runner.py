"""``python -m acp_core.agents.live.runner``: holds a participant's live session by the Agent Client Protocol.

It is started with the first turn, in the background, and takes one turn after the other: whoever
watches a turn (`acp_core.agents.live.turn`) gives it the next as a file, and reads how far it is
in the turn's journal. So it outlives who watches, and who comes later finds it at work. It ends
when nobody gives it a turn for long, and leaves nothing behind that its agent started. The agent's
session is begun or continued, put into the mode that asks, and given one turn at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
import logging
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import acp as agent_client
import acp.connection as json_rpc

import acp_core
from acp_core.agents import background, codec
from acp_core.agents import processes as agents_processes
from acp_core.agents.live import turn as live_turn
from acp_core.agents.live.policy import Gate, Judge
from acp_core.agents.live.policy import judge_of as of_scope
from acp_core.agents.live.requests import FORM
from acp_core.agents.live.turn import NEXT_TIME, End, Files, Held, Order, Reply, Steering, Turn
from acp_core.agents.live.updates import (
    AGENT,
    CLIENT,
    LIMIT_EVENT,
    MOST_CALLS,
    RUNNER,
    Journal,
    SessionState,
    apply,
    begin_turn,
)
from acp_core.agents.loop_directory import LoopDirectory
from acp_core.agents.permissions import NAME
from acp_core.agents.processes import Identity, descendants, identify, marked, myself
from acp_core.agents.program import Command
from acp_core.agents.progress import string, table
from acp_core.files import atomic
from acp_core.model.clock import utc_now
from acp_core.model.errors import NotStarted

VERSION = 1  # of the protocol

METHOD_NOT_FOUND = -32601

_LARGEST_LINE = 64 << 20

_LOOK = 0.2  # seconds between two looks whether the program lives

_REST = 0.5  # seconds for what an ended program wrote last

_LEAVE = 2.0  # seconds to end by itself once its input is closed

_END = 2.0  # seconds between asking its processes to end and making them

Message = dict[str, Any]


class SessionFailed(NotStarted):
    """A live session cannot go on; the message says why.

    Attributes:
        code: of the program's answer; None where there was none.
        data: what the program says beside it.
    """

    def __init__(self, text: str, code: int | None = None, data: object = None) -> None:
        super().__init__(text)
        self.code = code
        self.data = data

    @property
    def answered(self) -> bool:
        """Whether the program itself refused, and lives."""
        return self.code is not None


class NoAnswer(SessionFailed):
    """The program lives, and did not answer in time."""


@dataclass(frozen=True, slots=True)
class Client:
    """What the program can ask of us, and who sees the messages.

    Attributes:
        answer: given a method and its parameters; its result is the answer. An exception
            `SessionFailed` with a code is an answer as well.
        observe: sees every message in its order: who sent it, and what.
        note: told in a sentence what was odd.
    """

    answer: Callable[[str, Message], Awaitable[object]]
    observe: Callable[[str, Message], None]
    note: Callable[[str], None]


class _Transport:
    """Lines of JSON; one that holds no object is skipped, not the end of the connection."""

    def __init__(self, process: asyncio.subprocess.Process, note: Callable[[str], None]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._writer, self._reader = process.stdin, process.stdout
        self._note = note
        self._lock = asyncio.Lock()

    async def send(self, message: Message) -> None:
        async with self._lock:
            self._writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            await self._writer.drain()

    async def receive(self) -> Message | None:
        while line := await self._line():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if isinstance(message, dict):
                return message
            if line.strip():
                self._note("the agent printed a line that is not a message")
        return None

    async def _line(self) -> bytes:
        """The next line; b"" at the end. One that is too long is left out."""
        while True:
            try:
                return await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as error:
                return error.partial
            except asyncio.LimitOverrunError as error:
                await self._reader.readexactly(error.consumed)
                self._note("the agent printed a line that is too long")

    async def close(self) -> None:
        self._writer.close()


class Connection:
    """A program at work, and the messages between it and us. Made by `open`."""

    def __init__(
        self, process: asyncio.subprocess.Process, client: Client, mark: tuple[str, str]
    ) -> None:
        self._process = process
        self._client = client
        self._mark = mark
        self.identity = identify(process.pid) or Identity(process.pid, time.time())
        self._rpc = json_rpc.Connection(
            self._answer, _Transport(process, client.note), observers=[self._observe]
        )
        self._exited = asyncio.Event()
        self._ended = asyncio.create_task(self._watch())

    @classmethod
    async def open(
        cls, command: Command, errors: Path, client: Client, mark: tuple[str, str]
    ) -> Connection:
        """Start a program.

        Args:
            command: the program.
            errors: the file for its standard error.
            client: what it can ask, and who sees its messages.
            mark: a variable and its value, by which all that it starts is known.

        Raises:
            SessionFailed: it cannot be started.
        """
        fd = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            process = await asyncio.create_subprocess_exec(
                *command.argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=fd,
                cwd=command.cwd,
                env={**command.env, mark[0]: mark[1]},
                start_new_session=True,
                limit=_LARGEST_LINE,
                umask=atomic.umask_in(command.cwd),
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise SessionFailed(f"{os.path.basename(command.argv[0])}: {why}") from None
        finally:
            os.close(fd)
        return cls(process, client, mark)

    @property
    def alive(self) -> bool:
        """Whether the program runs."""
        return self._process.returncode is None

    async def _watch(self) -> None:
        """Until the program has ended: its ``wait`` would wait for all that hold its pipes too."""
        while self._process.returncode is None:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK)
        self._exited.set()
        await asyncio.sleep(_REST)

    def _observe(self, event: json_rpc.StreamEvent) -> None:
        incoming = event.direction is json_rpc.StreamDirection.INCOMING
        self._client.observe(AGENT if incoming else CLIENT, event.message)

    async def _answer(self, method: str, params: object, is_notification: bool) -> object:
        if is_notification:
            return None  # seen by the observer already, in its order
        try:
            return await self._client.answer(method, params if isinstance(params, dict) else {})
        except SessionFailed as error:
            code = METHOD_NOT_FOUND if error.code is None else error.code
            raise agent_client.RequestError(code, str(error), error.data) from None

    async def request(self, method: str, params: Message, seconds: float | None = None) -> Message:
        """Ask the program something, and wait for its answer.

        Args:
            method: what; ``params`` its parameters.
            seconds: how long to wait; None for as long as the program lives.

        Raises:
            SessionFailed: it refused (then with its code), or it ended.
            NoAnswer: it did not answer in time.
        """
        asked = asyncio.ensure_future(self._rpc.send_request(method, params))
        try:
            await asyncio.wait(
                {asked, self._ended}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not asked.done():
                if seconds is None or self._ended.done():
                    raise SessionFailed(self._end())
                raise NoAnswer(f"the agent did not answer {method} within {seconds:g} s")
            return _object(asked.result())
        except agent_client.RequestError as error:
            raise SessionFailed(_reason(error), error.code, error.data) from None
        except OSError:
            raise SessionFailed(self._end()) from None
        finally:
            if not asked.done():
                asked.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await asked

    async def notify(self, method: str, params: Message) -> None:
        """Tell the program something; one that has ended is told nothing."""
        with contextlib.suppress(OSError):
            await self._rpc.send_notification(method, params)

    def _end(self) -> str:
        code = self._process.returncode
        if code is None:
            return "the agent closed its output"
        return f"the agent ended by signal {-code}" if code < 0 else f"the agent ended with {code}"

    def processes(self) -> tuple[Identity, ...]:
        """Everything that the program started and that lives, itself included."""
        found = {*descendants(os.getpid()), *marked(*self._mark)}
        return tuple(each for each in found if each.pid != os.getpid())

    def end_commands(self, before: Iterable[Identity]) -> None:
        """End the commands that the program started and let go on: each in a session of its own.

        What serves the program itself (servers of tools, helpers) belongs to its session and stays.

        Args:
            before: the processes from before; they stay.
        """
        known = set(before)

        def commands() -> list[Identity]:
            new = [each for each in self.processes() if each not in known]
            return [each for each in new if _session_of(each.pid) != self.identity.pid]

        if not agents_processes.have_ended(commands(), _REST):
            end_all(commands)

    async def close(self) -> None:
        """End the program and everything that it started; returns when all of it has ended."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), _LEAVE)
        await asyncio.to_thread(end_all, self.processes)
        self._ended.cancel()
        with contextlib.suppress(OSError):
            await self._rpc.close()


def end_all(processes: Callable[[], Iterable[Identity]]) -> None:
    """End processes, and those that appear meanwhile.

    Args:
        processes: gives those that live, anew at each call.
    """
    for _ in range(3):
        left = tuple(processes())
        if not left:
            return
        agents_processes.end(left, _END)


def _session_of(pid: int) -> int:
    """The session that a process belongs to; 0 where it has ended."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def _object(value: object) -> Message:
    return value if isinstance(value, dict) else {}


def _reason(error: agent_client.RequestError) -> str:
    """What an error says: its text, or the more exact one beside it."""
    data = error.data if isinstance(error.data, dict) else {}
    more = next(
        (data[each] for each in ("message", "details") if isinstance(data.get(each), str)), ""
    )
    text = str(error)
    return f"{text}: {more}" if more and more not in text else text


_OPENING = 60.0  # seconds for a session to begin or to go on

_STEER = 10.0


class NoLiveSession(SessionFailed):
    """No live session is possible with this program."""


class LiveSession:
    """A session over a connection, not yet open.

    Args:
        connection: to the agent's program.
        cwd: the folder in which the agent works.
        ask_mode: the mode that makes it ask; "" where it needs none.
        folders: which the agent may use besides ``cwd``, where it lets itself be told.
        server: the command that serves the participant's tools; empty for none.
        server_env: variables that this command gets: several programs hand it few of their own.

    Attributes:
        id: the agent's name for the session.
        continued: whether it goes on with an earlier one.
        not_continued: why it does not, where it was asked to; "" elsewhere.
    """

    def __init__(
        self,
        connection: Connection,
        cwd: str,
        ask_mode: str,
        folders: Sequence[str] = (),
        server: Sequence[str] = (),
        server_env: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._connection = connection
        self._cwd = cwd
        self._folders = list(folders)
        self._servers = [_server(server, server_env)] if server else []
        self._ask_mode = ask_mode
        self._capabilities: dict[str, Any] = {}
        self._meta: dict[str, Any] = {}
        self._agent = ""
        self.id = ""
        self.continued = False
        self.not_continued = ""

    @property
    def connection(self) -> Connection:
        """The connection to the agent's program."""
        return self._connection

    async def open(
        self, earlier: str = "", *, recent: bool = False, handshake: float = 60.0
    ) -> None:
        """Shake hands, and go on with an earlier session where that is possible.

        Args:
            earlier: the agent's name for that session; "" for a new one.
            recent: it was used in this minute: to load it then spoils what one program saved.
            handshake: seconds for the first answer.

        Raises:
            NoLiveSession: the program cannot hold a live session.
            SessionFailed: it refused, or ended.
        """
        asked = {
            "protocolVersion": VERSION,
            "clientCapabilities": {
                "fs": {"readTextFile": False, "writeTextFile": False},
                "elicitation": {"form": {}},
            },
            "clientInfo": {"name": "acp", "version": acp_core.__version__},
        }
        try:
            answer = await self._connection.request("initialize", asked, handshake)
        except NoAnswer as error:  # a busy machine says nothing about the program
            raise NoLiveSession(f"{error}{NEXT_TIME}") from None
        except SessionFailed as error:
            raise NoLiveSession(str(error), error.code, error.data) from None
        version = answer.get("protocolVersion")
        if version != VERSION:
            raise NoLiveSession(
                f"the agent speaks version {version!r} of the protocol, not {VERSION}"
            )
        self._capabilities = table(answer.get("agentCapabilities"))
        self._meta = table(answer.get("_meta"))
        self._agent = string(table(answer.get("agentInfo")).get("name"))
        if not (earlier and await self._continue(earlier, recent)):
            await self.renew()

    async def renew(self) -> None:
        """Begin a new session, with nothing of an earlier one in its context.

        Raises:
            SessionFailed: the agent refused, or ended.
        """
        answer = await self._ask("session/new", self._place())
        self.id = string(answer.get("sessionId"))
        self.continued = False
        if not self.id:
            raise NoLiveSession("the agent began a session without a name")
        await self._set_mode()

    async def _continue(self, earlier: str, recent: bool) -> bool:
        """Go on with an earlier session; False, and why, where the agent cannot."""
        sessions = table(self._capabilities.get("sessionCapabilities"))
        if "resume" in sessions:
            method = "session/resume"
        elif self._capabilities.get("loadSession") is True and not recent:
            method = "session/load"
        elif self._capabilities.get("loadSession") is True:
            self.not_continued = "the agent cannot load a session again within a minute"
            return False
        else:
            self.not_continued = "the agent cannot resume sessions"
            return False
        asked = {"sessionId": earlier, **self._place()}
        try:
            await self._connection.request(method, asked, _OPENING)
        except SessionFailed as error:
            if error.answered:
                self.not_continued = f"the agent cannot resume session {earlier}: {error}"
                return False
            raise
        self.id, self.continued = earlier, True
        await self._set_mode()
        return True

    def _place(self) -> dict[str, Any]:
        """Where the agent works; claude tells of its usage limit in fields only where it is asked to."""
        place: dict[str, Any] = {"cwd": self._cwd, "mcpServers": self._servers}
        if "additionalDirectories" in table(self._capabilities.get("sessionCapabilities")):
            place["additionalDirectories"] = self._folders
        if "claude" in self._agent:
            place["_meta"] = {"claudeCode": {"emitRawSDKMessages": [{"type": LIMIT_EVENT}]}}
        return place

    async def _set_mode(self) -> None:
        """Have the agent ask before it acts: several begin in a mode that does not."""
        if self._ask_mode:
            asked = {"sessionId": self.id, "modeId": self._ask_mode}
            await self._ask("session/set_mode", asked)

    async def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        try:
            return await self._connection.request(method, params, _OPENING)
        except SessionFailed as error:
            if error.code == METHOD_NOT_FOUND:
                raise NoLiveSession(f"the agent does not know {method}", error.code) from None
            raise

    async def prompt(self, text: str) -> dict[str, Any]:
        """Give the agent a turn, and wait for its answer: it proves nothing.

        Raises:
            SessionFailed: the agent refused, or ended.
        """
        prompt = [{"type": "text", "text": text}]
        return await self._connection.request(
            "session/prompt", {"sessionId": self.id, "prompt": prompt}
        )

    async def cancel(self) -> None:
        """Ask the agent to end its turn; the answer comes to whoever waits in `prompt`."""
        await self._connection.notify("session/cancel", {"sessionId": self.id})

    @property
    def can_steer(self) -> bool:
        """Whether the agent takes messages in the middle of a turn."""
        return table(self._meta.get("steering")).get("supported") is True

    async def steer(self, text: str) -> bool:
        """Give the agent a message in the middle of its turn; whether it took it.

        Raises:
            SessionFailed: the agent refused, or ended.
        """
        asked = {
            "sessionId": self.id,
            "prompt": [{"type": "text", "text": text}],
            "_meta": {"steering": {"idleBehavior": "promptRequired"}},
        }
        answer = await self._connection.request("_session/steering", asked, _STEER)
        return answer.get("outcome") == "injected"


def _server(command: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """An MCP server as the protocol names one."""
    variables = [{"name": name, "value": value} for name, value in env.items()]
    return {"name": NAME, "command": command[0], "args": list(command[1:]), "env": variables}


_IDLE_LOOK = 5.0  # seconds between two looks while it is idle

_CANCEL_TURN = 4.0  # seconds for a cancelled turn to be answered

_FULL = 0.7  # share of the context from which on a new session is begun

_PERMISSION = "session/request_permission"

_OVER = "the turn was over"

_NEW = "new session with the turn's prompt, because "

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


class Runner:
    """Holds the session of a participant.

    Args:
        order: What it is asked for.
        judge: Decides what its agent asks permission for.
    """

    def __init__(self, order: Order, judge: Judge) -> None:
        self._order = order
        self._gate = Gate(order, judge, self._note)
        self._asked: deque[dict[str, Any]] = deque()  # requests for permission, as they came
        self._calls: dict[str, dict[str, Any]] = {}  # tool calls, as they were announced
        self._where = LoopDirectory(Path(order.place))
        self._files = Files(self._where)
        self._connection: Connection | None = None
        self._session: LiveSession | None = None
        self._state = SessionState()
        self._journal: Journal | None = None
        self._delivering: set[asyncio.Task[None]] = set()
        self._delivered: set[str] = set()  # ids of what was delivered in this turn
        self._one_by_one = asyncio.Lock()
        self._begun = utc_now()
        self._wake = asyncio.Event()
        self._stop = asyncio.Event()
        before = self._files.load()
        same = before is not None and before.digest == order.digest
        self._changed = before is not None and before.session != "" and not same
        self._held = Held(
            myself(),
            digest=order.digest,
            session=before.session if before and same else "",
            used=before.used if before else None,
            number=before.number if before else 0,
        )

    async def run(self, ready: background.Ready) -> int:
        """Take turns until there are none any more. Returns the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self._wake.set)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._ask_to_stop)
        end_all(self._left_before)
        live_turn.discard_messages(self._files)
        self._save()
        ready()
        try:
            while await self._step():
                pass
        finally:
            await self._close()
        return 0

    def _left_before(self) -> list[Identity]:
        """What a runner before us left, when it was killed."""
        return [each for each in marked(*self._files.mark) if each != self._held.process]

    async def _step(self) -> bool:
        """Take the next turn, or wait for it. False where there will be none."""
        self._wake.clear()
        turn = self._files.take_turn()
        if turn is not None:
            await self._take(turn)
            return not self._stop.is_set() or self._leave()
        if self._stop.is_set() or self._is_over():
            return self._leave()
        if self._connection is not None and not self._connection.alive:
            await self._close()
        self._refuse_messages()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), _IDLE_LOOK)
        return True

    def _ask_to_stop(self) -> None:
        self._stop.set()
        self._wake.set()

    def _is_over(self) -> bool:
        """Whether it was idle for long enough."""
        idle = utc_now() - (self._held.used or self._begun)
        if idle > timedelta(seconds=self._order.idle):
            return True
        return idle > timedelta(seconds=self._order.alone) and not self._where.is_locked()

    def _leave(self) -> bool:
        """Say that no more turns are taken; True where one was given in the same moment."""
        self._save(leaving=True)
        if self._stop.is_set() or not self._files.turn.exists():
            return False
        self._save(leaving=False)
        return True

    def _save(self, **changes: Any) -> None:
        self._held = replace(self._held, **changes)
        with contextlib.suppress(OSError):  # a full disk ends no session
            codec.write(self._files.held, self._held)

    async def _take(self, turn: Turn) -> None:
        """Take a turn, and write down how it ended."""
        self._save(number=turn.number)
        self._journal = Journal(Path(turn.journal))
        self._delivered = set()
        self._state = begin_turn(self._state)
        state = self._state
        self._note(
            turn={
                "session": state.session,
                "agent": state.agent,
                "version": state.version,
                "mode": state.mode,
                "before": state.before,
            }
        )
        end = End()
        try:
            await self._prompt(_text(turn.prompt), turn.number)
            end = End(1 if self._state.error else 0)
        except NoLiveSession as error:
            end = End(1, str(error))
            self._note(failed=str(error))
        except SessionFailed as error:
            end = End(1, crashed=not error.answered)
            self._note(failed=str(error))
            if not error.answered:
                await self._close()
        except OSError as error:
            end = End(1)
            self._note(failed=str(error))
        leaving = self._stop.is_set()  # whoever sees the end must not give it another turn
        self._save(used=utc_now(), turns=self._held.turns + 1, leaving=leaving)
        with contextlib.suppress(OSError):
            codec.write(Path(turn.end), end)

    async def _prompt(self, text: str, number: int) -> None:
        session = await self._ready()
        connection = session.connection
        before = await asyncio.to_thread(connection.processes)
        asked = asyncio.create_task(session.prompt(text))
        if not await self._answered(asked, session, number):
            self._note(note="The turn is cancelled.")
            self._gate.withdraw()
            await session.cancel()
            await asyncio.wait({asked}, timeout=_CANCEL_TURN)
            if asked.done():  # one program lets its commands go on
                await asyncio.to_thread(connection.end_commands, before)
        self._refuse_messages()
        if not asked.done():
            asked.cancel()
            raise SessionFailed("the agent did not end its turn when it was asked to")
        await asked

    async def _answered(
        self, asked: asyncio.Task[dict[str, Any]], session: LiveSession, number: int
    ) -> bool:
        """Wait until the turn is answered, and deliver messages meanwhile; False to cancel it."""
        while not asked.done():
            self._wake.clear()
            if self._stop.is_set() or live_turn.cancelled_by(self._where, number):
                return False
            for path, message in live_turn.messages(self._files):
                task = asyncio.create_task(self._deliver(session, path, message, number))
                self._delivering.add(task)
                task.add_done_callback(self._delivering.discard)
            woken = asyncio.create_task(self._wake.wait())
            await asyncio.wait({asked, woken}, return_when=asyncio.FIRST_COMPLETED)
            woken.cancel()
        return True

    async def _deliver(
        self, session: LiveSession, path: Path, message: Steering, number: int
    ) -> None:
        """Give the agent a message in the middle of its turn, and say what came of it."""
        if message.number != number:
            live_turn.reply(path, Reply(False, _OVER))
            return
        if not session.can_steer:
            live_turn.reply(
                path, Reply(False, "the agent takes no messages in the middle of a turn")
            )
            return
        async with self._one_by_one:
            if message.ids and self._delivered.issuperset(message.ids):
                live_turn.reply(path, Reply(True))
                return
            try:
                taken = await session.steer(message.text)
            except SessionFailed as error:
                live_turn.reply(path, Reply(False, str(error)))
                return
            if taken:
                self._delivered.update(message.ids)
                self._note(message=message.text, by=message.by, ids=list(message.ids))
        live_turn.reply(path, Reply(taken, "" if taken else _OVER))

    def _refuse_messages(self) -> None:
        """Messages that came too late for this turn."""
        for path, _ in live_turn.messages(self._files):
            live_turn.reply(path, Reply(False, _OVER))

    async def _ready(self) -> LiveSession:
        """The session, open, with room in its context."""
        session = self._session
        if self._connection is None or session is None:
            return await self._open()
        if self._state.size and self._state.used > _FULL * self._state.size:
            why = "the context of the session was nearly full"
            self._note(note="The context is nearly full: a new session begins.", opened=_NEW + why)
            await session.renew()
            self._save(session=session.id)
        return session

    async def _open(self) -> LiveSession:
        client = Client(self._answer, self._observe, lambda text: self._note(note=text))
        order, files = self._order, self._files
        self._connection = await Connection.open(order.command, files.errors, client, files.mark)
        self._save(agent=self._connection.identity)
        mark, place = files.mark
        session = LiveSession(
            self._connection,
            order.cwd,
            order.ask_mode,
            order.folders,
            order.server,
            {**order.server_env, mark: place},
        )
        used = self._held.used
        recent = used is not None and utc_now() - used < timedelta(minutes=1)
        try:
            await session.open(self._held.session, recent=recent, handshake=order.handshake)
        except SessionFailed:
            await self._close()
            raise
        self._note_opened(session, self._held.session)
        self._session = session
        self._save(session=session.id, steers=session.can_steer)
        return session

    def _note_opened(self, session: LiveSession, earlier: str) -> None:
        """Say in the turn's journal whether an earlier session goes on, and why it does not."""
        if session.continued:
            self._note(
                note=f"The session {earlier} is resumed.", opened=f"resumed session {earlier}"
            )
        elif earlier:
            self._note(
                note=f"The session {earlier} could not be resumed: a new one begins.",
                opened=_NEW + session.not_continued,
            )
        elif self._changed:
            self._changed = False
            self._note(opened=f"{_NEW}the agent or its settings changed")

    async def _close(self) -> None:
        """End the agent and everything that it started."""
        self._gate.withdraw()
        connection, self._connection, self._session = self._connection, None, None
        self._state = SessionState()
        if connection is not None:
            await connection.close()
            self._save(agent=None)

    def _observe(self, direction: str, message: dict[str, Any]) -> None:
        """Write a message down; the library calls this in the messages' order."""
        self._state = apply(self._state, direction, message)
        if direction == AGENT:
            self._notice(string(message.get("method")), message)
        if self._journal is not None:
            self._journal.write(direction, message, time.time())

    def _note(self, **message: Any) -> None:
        self._observe(RUNNER, message)

    def _notice(self, method: str, message: dict[str, Any]) -> None:
        """What is needed as it came when a request for permission or a form is answered."""
        params = table(message.get("params"))
        update = table(params.get("update"))
        call = string(update.get("toolCallId"))
        if method in (_PERMISSION, FORM) and "id" in message:  # a notification gets no answer
            self._asked.append(message)
        elif method == "$/cancel_request":
            self._gate.withdraw(str(params.get("requestId")))
        elif method == "session/update" and call:
            self._calls[call] = {**self._calls.get(call, {}), **update}
            while len(self._calls) > MOST_CALLS:
                del self._calls[next(iter(self._calls))]

    async def _answer(self, method: str, params: dict[str, Any]) -> object:
        """What the agent asks of us: permissions and answers. Files and terminals are its own."""
        if method not in (_PERMISSION, FORM):
            raise SessionFailed(f"{method}: not offered")
        message = self._asked.popleft()  # requests are answered in the order in which they came
        if method == FORM:
            return await self._gate.fill_in(message)
        call = string(table(table(message.get("params")).get("toolCall")).get("toolCallId"))
        return await self._gate.answer(message, self._calls.get(call))


def _text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def main(judge_of: Callable[[Order], Judge] = of_scope) -> int:
    """Hold the session that is asked for.

    Args:
        judge_of: gives who decides what the agent asks permission for.

    Returns:
        The exit code.
    """
    return background.run_asked(
        Order, lambda order, ready: _run(order, judge_of(order), ready), NotStarted
    )


def _run(order: Order, judge: Judge, ready: background.Ready) -> int:
    logging.getLogger().addHandler(logging.NullHandler())  # the library's; the journal has it all
    atomic.private_folder(Files(LoopDirectory(Path(order.place))).folder)
    with contextlib.suppress(OSError, AttributeError):  # orphans of the agent become our children
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    return asyncio.run(Runner(order, judge).run(ready))


if __name__ == "__main__":
    sys.exit(main())
