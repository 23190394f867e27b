"""A program that speaks the Agent Client Protocol: started, asked, and ended with all it started.

The only module that imports the library. The library's typed layer drops what it does not know
and lets a program's ``_meta`` overwrite arguments, so that messages are taken and given as they
are. The program is ours from start to end: it leads a session of its own, its standard error is a
file, and its end is noticed by its process, not only by the end of its output, which a child of
it may keep open.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import acp as agent_client
import acp.connection as json_rpc

from acp_core.agents import ending
from acp_core.agents.identity import Identity, descendants, identify, marked
from acp_core.agents.live.journal import AGENT, CLIENT
from acp_core.agents.spawn import Command
from acp_core.files import modes
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
                umask=modes.umask_in(command.cwd),
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

        if not ending.have_ended(commands(), _REST):
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
        ending.end(left, _END)


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
