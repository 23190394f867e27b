"""A client of an agent's HTTP interface: asynchronous, with an answer or an error for everything.

async with Client("http://127.0.0.1:7901") as agent:
    receipt = await agent.send("hello")
    async for event in agent.stream(since=receipt.server_seq):
        ...
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from acp_core.protocols.wire import links
from acp_core.protocols.wire.agent import place
from acp_core.protocols.wire.parts import is_web_address, text_part
from acp_core.protocols.wire.schema import Json

PAUSE = 0.5  # seconds before a stream that broke is opened again
SILENCE = (
    45.0  # seconds without anything, not even a comment, after which a stream counts as broken
)


class WireError(Exception):
    """An agent refused, or could not be asked; the message is one line.

    Attributes:
        code: the error's code (core specification, section 5); "" where none was answered.
        status: the HTTP status; 0 where there was no answer.
    """

    def __init__(self, message: str, code: str = "", status: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.status = status


class Receipt(NamedTuple):
    """What became of a message. ``queued``: its receiver is away and gets it when it returns."""

    message_id: str
    server_seq: int
    queued: bool
    task: Json | None
    reply: Json | None


class Event(NamedTuple):
    """An event of a stream. ``seq`` is its place, after which a stream can be taken up again."""

    seq: int
    kind: str
    data: Json


class Address(NamedTuple):
    """Where an agent is asked, and with which token."""

    url: str
    token: str | None


def address(location: str, token: str | None = None) -> Address:
    """Where to ask the agent at a location.

    Args:
        location: an HTTP address, an ``acp://`` link (which gives a peer's rights), or the name
            of an agent of this user that runs.
        token: shown instead of the one that is known.

    Raises:
        WireError: the location is none of them.
    """
    if location.startswith("acp://"):
        try:
            link = links.parse(location)
        except links.LinkError as error:
            raise WireError(str(error)) from None
        return Address(link.http, token or link.token)
    if "://" in location:
        if not is_web_address(location):
            raise WireError("an agent's address is http://HOST:PORT or acp://HOST:PORT/TOKEN")
        return Address(location.rstrip("/"), token)
    running = place.find(location)
    if running is None:
        names = ", ".join(each.name for each in place.running()) or "none"
        raise WireError(f"no agent of this name runs: {location} (running: {names})")
    return Address(running.http_url, token or running.owner_token)


class Client:
    """Asks one agent; to be used with ``async with``.

    Args:
        location, token: see `address`.
        timeout: seconds within which an answer has to begin.

    Raises:
        WireError: the location is none.
    """

    def __init__(self, location: str, token: str | None = None, timeout: float = 30.0) -> None:
        self.address = address(location, token)
        headers = {"accept": "application/json"}
        if self.address.token:
            headers["authorization"] = f"Bearer {self.address.token}"
        self._timeout = timeout
        self._http = httpx.AsyncClient(
            base_url=self.address.url, headers=headers, timeout=timeout, trust_env=False
        )

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def card(self) -> Json:
        """The AgentCard."""
        return await self._ask("GET", "/.well-known/acp.json")

    async def status(self) -> Json:
        """Figures of the agent."""
        return await self._ask("GET", "/status")

    async def skills(self, query: str = "", limit: int = 20) -> list[Json]:
        """Its skills that fit a query, best first, each with its ``match_score``."""
        return _list(
            await self._ask("POST", "/skills/query", {"query": query, "limit": limit}), "skills"
        )

    async def send(
        self,
        content: str | list[Json],
        *,
        to: str | None = None,
        message_id: str | None = None,
        context_id: str | None = None,
        task_id: str | None = None,
        role: str = "user",
        sender: str | None = None,
        create_task: bool = False,
        wait: float | None = None,
    ) -> Receipt:
        """Send a message through the agent, or to it.

        Args:
            content: a text, or parts.
            to: the id of the peer; None: the only one, or the agent itself for who shows the
                token of its link.
            sender: who says it, where that is not the agent itself.
            create_task: make a task of it.
            wait: seconds to wait for a reply.

        Raises:
            WireError: it was not taken. Sending again with the same ``message_id`` is safe.
        """
        parts = [text_part(content)] if isinstance(content, str) else content
        body: Json = {"parts": parts, "role": role}
        given = {
            "message_id": message_id,
            "context_id": context_id,
            "task_id": task_id,
            "from": sender,
        }
        body |= {name: value for name, value in given.items() if value is not None}
        if create_task:
            body["create_task"] = True
        if wait is not None:
            body |= {"sync": True, "timeout": wait}
        where = f"/peer/{quote(to, safe='')}/send" if to else "/message:send"
        answer = await self._ask("POST", where, body, more=wait or 0.0)
        return Receipt(
            str(answer.get("message_id")),
            int(answer.get("server_seq") or 0),
            answer.get("queued") is True,
            answer.get("task"),
            answer.get("reply"),
        )

    async def messages(self, **query: str | int) -> Json:
        """A page of messages; ``query`` as for ``GET /messages``."""
        return await self._ask("GET", "/messages", query=query)

    async def tasks(self, **query: str | int) -> list[Json]:
        """Tasks; ``query`` as for ``GET /tasks``."""
        return _list(await self._ask("GET", "/tasks", query=query), "tasks")

    async def task(self, id: str) -> Json:
        """One task."""
        return await self._ask("GET", f"/tasks/{quote(id, safe='')}")

    async def update(
        self, id: str, status: str, artifact: Any = None, error: str | None = None
    ) -> Json:
        """Report as the worker where a task stands."""
        body: Json = {"status": status}
        body |= {} if artifact is None else {"artifact": artifact}
        body |= {} if error is None else {"error": error}
        return await self._ask("POST", f"/tasks/{quote(id, safe='')}:update", body)

    async def resume(self, id: str, content: str | list[Json]) -> Json:
        """Give a task the input for which it waits."""
        parts = [text_part(content)] if isinstance(content, str) else content
        body: Json = {"parts": parts, "role": "user"}
        return await self._ask("POST", f"/tasks/{quote(id, safe='')}:continue", body)

    async def cancel(self, id: str) -> Json:
        """Cancel a task."""
        return await self._ask("POST", f"/tasks/{quote(id, safe='')}:cancel", {})

    async def reply(self, correlation_id: str, content: str | list[Json]) -> Json:
        """Answer a message that waits for a reply."""
        parts = [text_part(content)] if isinstance(content, str) else content
        body: Json = {"correlation_id": correlation_id, "parts": parts, "role": "agent"}
        return await self._ask("POST", "/reply", body)

    async def peers(self) -> list[Json]:
        """The peers of the agent."""
        return _list(await self._ask("GET", "/peers"), "peers")

    async def connect(self, link: str, name: str | None = None) -> Json:
        """Let the agent keep a connection to the one behind a link."""
        body: Json = {"link": link} if name is None else {"link": link, "name": name}
        return await self._ask("POST", "/peers/connect", body)

    async def stream(self, since: int | None = None, *, again: bool = True) -> AsyncIterator[Event]:
        """Everything that happens, from now on or after ``since``.

        Args:
            again: open the stream again when it breaks, at the place that was reached, so that
                nothing is missed and nothing comes twice.

        Raises:
            WireError: the agent refused; or the stream broke, without ``again``.
        """
        place_now = since
        while True:
            try:
                async for event in self._events(place_now):
                    place_now = event.seq
                    yield event
            except httpx.HTTPError as error:
                if not again:
                    raise WireError(f"the stream broke: {_words(error)}") from None
            if not again:
                return
            await asyncio.sleep(PAUSE)

    async def _events(self, since: int | None) -> AsyncIterator[Event]:
        query = {} if since is None else {"since": since}
        timeout = httpx.Timeout(self._timeout, read=SILENCE)
        async with self._http.stream("GET", "/stream", params=query, timeout=timeout) as response:
            if response.status_code != 200:
                await response.aread()
                raise _refusal(response)
            fields: dict[str, str] = {}
            async for line in response.aiter_lines():
                name, _, value = line.partition(":")
                if name:
                    fields[name] = value.removeprefix(" ")
                elif not line:
                    event = _event(fields)
                    fields = {}
                    if event:
                        yield event

    async def _ask(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: dict[str, str | int] | None = None,
        more: float = 0.0,
    ) -> Json:
        try:
            response = await self._http.request(
                method, path, json=body, params=query, timeout=self._timeout + more
            )
        except httpx.HTTPError as error:
            where = self.address.url
            raise WireError(f"the agent at {where} cannot be reached: {_words(error)}") from None
        if not response.is_success:
            raise _refusal(response)
        content = _content(response)
        if not isinstance(content, dict):
            raise WireError(
                f"{self.address.url} answers as no agent does", status=response.status_code
            )
        return content


def _event(fields: dict[str, str]) -> Event | None:
    """The event that these lines of a stream make, if they do."""
    try:
        data = json.loads(fields["data"])
        seq = int(fields["id"])
    except (KeyError, ValueError, RecursionError):
        return None
    return Event(seq, fields.get("event", "message"), data) if isinstance(data, dict) else None


def _refusal(response: httpx.Response) -> WireError:
    content = _content(response)
    fields = content if isinstance(content, dict) else {}
    said = fields.get("error") or f"the answer was {response.status_code}"
    return WireError(str(said), str(fields.get("error_code", "")), response.status_code)


def _content(response: httpx.Response) -> Any:
    try:
        return response.json()
    except (ValueError, RecursionError):
        return None


def _list(answer: Json, name: str) -> list[Json]:
    found = answer.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _words(error: Exception) -> str:
    return str(error) or type(error).__name__
