"""A session with an agent: begun or continued, put into the mode that asks, given one turn at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import acp_core
from acp_core.agents.live.connection import (
    METHOD_NOT_FOUND,
    VERSION,
    Connection,
    NoAnswer,
    SessionFailed,
)
from acp_core.agents.live.turn import NEXT_TIME
from acp_core.agents.live.updates import LIMIT_EVENT
from acp_core.agents.streams.progress import string, table
from acp_core.agents.tool_servers import NAME

_OPENING = 60.0  # seconds for a session to begin or to go on
_CANCEL = 5.0  # seconds for a cancelled turn to be answered
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
