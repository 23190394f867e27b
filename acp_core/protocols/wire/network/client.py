"""A client of an agent's HTTP interface, asynchronous, with an answer or an error for everything; and whom it trusts.

async with Client("http://127.0.0.1:7901") as agent:
    receipt = await agent.send("hello")
    async for event in agent.stream(since=receipt.server_seq):
        ...

Certificates of the usual public authorities are believed, or of those in ``SSL_CERT_FILE`` in their
place; and of the authority that `--ca` names.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from functools import lru_cache
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from acp_core.model.errors import NetworkError, Refused
from acp_core.protocols.wire.network import agent_directory, links
from acp_core.protocols.wire.schema import observed
from acp_core.protocols.wire.schema.basics import Json, count, decode, fields_of, objects
from acp_core.protocols.wire.schema.basics import WireError as Refusal
from acp_core.protocols.wire.schema.bodies import is_web_address, text_part

PAUSE = 0.5  # seconds before a stream that broke is opened again

SILENCE = (
    45.0  # seconds without anything, not even a comment, after which a stream counts as broken
)

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)

_FIELDS = ("id", "event", "data")


class Address(NamedTuple):
    """Where an agent is asked, and with which token. ``certificate``: its file, of one of this user."""

    url: str
    token: str | None
    certificate: str = ""


def address(location: str, token: str | None = None) -> Address:
    """Where to ask the agent at a location.

    Args:
        location: an HTTP address (the owner's token is shown to an agent of this user), a link (``acp://`` or ``http://`` with a token, which gives a
            peer's rights), or the name of an agent of this user that runs.
        token: shown instead of the one that is known.

    Raises:
        WireError: the location is none of them.
    """
    if location.startswith("acp://") or links.has_token(location):
        try:
            link = links.parse_any(location)
        except links.LinkError as error:
            raise AgentError(str(error)) from None
        return Address(link.http, token or link.token)
    if "://" in location:
        if not is_web_address(location):
            raise AgentError("an agent's address is http://HOST:PORT or acp://HOST:PORT/TOKEN")
        own = agent_directory.running_at(location)
        if own is None:
            return Address(location.rstrip("/"), token)
        return Address(own.http_url, token or own.owner_token, own.tls_cert)
    running = agent_directory.find_running(location)
    if running is None:
        raise AgentError(agent_directory.no_such_agent(location))
    return Address(running.http_url, token or running.owner_token, running.tls_cert)


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
        headers = {"accept": "application/json", **PLAIN}
        if self.address.token:
            headers["authorization"] = f"Bearer {self.address.token}"
        self._timeout = timeout
        self._http = httpx.AsyncClient(
            base_url=self.address.url,
            headers=headers,
            timeout=timeout,
            trust_env=False,
            verify=context(self.address.url, self.address.certificate),
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
        return observed.card(await self._ask("GET", "/.well-known/acp.json"))

    async def status(self) -> Json:
        """Figures of the agent."""
        return await self._ask("GET", "/status")

    async def skills(self, query: str = "", limit: int = 20) -> list[Json]:
        """Its skills that fit a query, best first, each with its ``match_score``."""
        return listed(
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
            count(answer.get("server_seq")) or 0,
            answer.get("queued") is True,
            answer.get("task"),
            answer.get("reply"),
        )

    async def messages(self, **query: str | int) -> Json:
        """A page of messages; ``query`` as for ``GET /messages``."""
        return await self._ask("GET", "/messages", query=query)

    async def tasks(self, **query: str | int) -> list[Json]:
        """Tasks; ``query`` as for ``GET /tasks``."""
        found = await self._ask_any("GET", "/tasks", query=query)
        return [observed.task(each) for each in listed(found, "tasks")]

    async def task(self, id: str) -> Json:
        """One task."""
        return observed.task(await self._ask("GET", f"/tasks/{quote(id, safe='')}"))

    async def update(
        self, id: str, status: str, artifact: Any = None, error: str | None = None
    ) -> Json:
        """Report as the worker where a task stands."""
        body: Json = {"status": status}
        body |= {} if artifact is None else {"artifact": artifact}
        body |= {} if error is None else {"error": error}
        return await self._on_task(id, "update", body)

    async def resume(self, id: str, content: str | list[Json]) -> Json:
        """Give a task the input it is waiting for."""
        parts = [text_part(content)] if isinstance(content, str) else content
        body: Json = {"parts": parts, "role": "user"}
        return await self._on_task(id, "continue", body)

    async def cancel(self, id: str) -> Json:
        """Cancel a task."""
        return await self._on_task(id, "cancel", {})

    async def _on_task(self, id: str, verb: str, body: Json) -> Json:
        """Ask something of a task; the first agents know it by the other spelling."""
        where = f"/tasks/{quote(id, safe='')}"
        try:
            told = await self._ask("POST", f"{where}:{verb}", body)
        except AgentError as error:
            if error.status not in (404, 405):
                raise
            told = await self._ask("POST", f"{where}/{verb}", body)
        return {"id": id, **observed.task(told)}

    async def reply(self, correlation_id: str, content: str | list[Json]) -> Json:
        """Answer a message that waits for a reply."""
        parts = [text_part(content)] if isinstance(content, str) else content
        body: Json = {"correlation_id": correlation_id, "parts": parts, "role": "agent"}
        return await self._ask("POST", "/reply", body)

    async def create(self, parts: list[Json]) -> Json:
        """Give the agent itself a task."""
        return await self._ask("POST", "/tasks", {"parts": parts, "role": "user"})

    async def settled(self, id: str, wait: int) -> Json:
        """A task when it is over or asks something, at the latest after ``wait`` seconds."""
        where = f"/tasks/{quote(id, safe='')}/wait"
        found = await self._ask("GET", where, query={"timeout": wait}, more=wait)
        return fields_of(found.get("task"))

    async def bridge(self, what: str, **query: str | int) -> Json:
        """What a bridge tells of its folder: snapshot, document, event or actions."""
        return await self._ask("GET", f"/bridge/{what}", query=query)

    async def preview(self, action: str, inputs: Json) -> Json:
        """What a bridge says that an act would do; nothing is done."""
        told = await self._ask("POST", "/bridge/preview", {"action": action, "inputs": inputs})
        return fields_of(told.get("preview"))

    async def peers(self) -> list[Json]:
        """The peers of the agent."""
        found = await self._ask_any("GET", "/peers")
        return [observed.peer(each) for each in listed(found, "peers")]

    async def heard(self, limit: int = 100) -> list[Json]:
        """The latest messages, oldest first, as far as it still has them and shows them.

        Nothing is taken out of a queue for it: what `/recv` gives, it gives to nobody else.
        """
        for path, name in (("/messages", "messages"), ("/history", "history")):
            try:
                found = listed(await self._ask_any("GET", path, query={"limit": limit}), name)
            except AgentError as error:
                if error.status in (400, 403, 404, 405):
                    continue
                raise
            return sorted(map(observed.message, found), key=lambda each: str(each.get("ts") or ""))
        return []

    async def peer(self, id: str) -> Json:
        """One peer."""
        return observed.peer(await self._ask("GET", f"/peer/{quote(id, safe='')}"))

    async def connect(self, link: str, name: str | None = None) -> Json:
        """Let the agent keep a connection to the one behind a link."""
        body: Json = {"link": link} if name is None else {"link": link, "name": name}
        return await self._ask("POST", "/peers/connect", body)

    async def move(self, peer: str, to: str) -> Json:
        """Let another peer of the agent get what waits for one that is away."""
        return await self._ask("POST", f"/peer/{quote(peer, safe='')}/move", {"to": to})

    async def forget(self, peer: str) -> Json:
        """Let the agent drop a peer, and what waits for it."""
        return await self._ask("DELETE", f"/peer/{quote(peer, safe='')}")

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
                    place_now = event.seq or place_now
                    yield event
            except httpx.HTTPError as error:
                if not again:
                    raise AgentError(f"the stream broke: {words(error)}") from None
            if not again:
                return
            await asyncio.sleep(PAUSE)

    async def _events(self, since: int | None) -> AsyncIterator[Event]:
        query = {} if since is None else {"since": since}
        timeout = httpx.Timeout(self._timeout, read=SILENCE)
        async with self._http.stream("GET", "/stream", params=query, timeout=timeout) as response:
            if response.status_code != 200:
                raise refusal(response, await read_body(response, self._timeout))
            fields: dict[str, str] = {}
            async for line in read_lines(response):
                name, _, value = line.partition(":")
                if name in _FIELDS:
                    fields[name] = value.removeprefix(" ")
                elif not line:
                    event = event_of(fields)
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
        content = await self._ask_any(method, path, body, query, more)
        if not isinstance(content, dict):
            raise AgentError(f"{self.address.url} does not answer like an agent", status=200)
        return content

    async def _ask_any(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        query: dict[str, str | int] | None = None,
        more: float = 0.0,
    ) -> Any:
        seconds = self._timeout + more
        try:
            async with self._http.stream(
                method, path, json=body, params=query, timeout=seconds
            ) as response:
                data = await read_body(response, seconds)
        except httpx.HTTPError as error:
            where = self.address.url
            unsure = method != "GET" and not isinstance(error, _NEVER_SENT)
            said = "does not answer" if unsure else "cannot be reached"
            raise AgentError(
                f"the agent at {where} {said}: {words(error)}",
                unsure=unsure,
                untrusted=bool(untrusted(error)),
            ) from None
        if not response.is_success:
            raise refusal(response, data)
        return content_of(data)


_SAID = 2_000  # characters of what an agent says went wrong


class AgentError(NetworkError):
    """An agent refused, or could not be asked; the message is one line.

    Attributes:
        code: the error's code (core specification, section 5); "" where none was answered.
        status: the HTTP status; 0 where there was no answer.
        unsure: whether the agent may have done what it was asked for all the same.
        untrusted: somebody answered, whose certificate is not believed.
    """

    def __init__(
        self,
        message: str,
        code: str = "",
        status: int = 0,
        *,
        unsure: bool = False,
        untrusted: bool = False,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.status = status
        self.unsure = unsure
        self.untrusted = untrusted


class Receipt(NamedTuple):
    """What became of a message. ``queued``: its receiver is away and gets it when it returns."""

    message_id: str
    server_seq: int
    queued: bool
    task: Json | None
    reply: Json | None


class Event(NamedTuple):
    """An event of a stream. ``seq`` is its place, after which a stream can be taken up again; 0: none
    is told."""

    seq: int
    kind: str
    data: Json


def event_of(fields: dict[str, str]) -> Event | None:
    """The event that these lines of a stream make, if they do."""
    try:
        data = decode(fields["data"])
        seq = count(int(fields["id"][:20])) or 0 if "id" in fields else None
    except (KeyError, ValueError, Refusal):
        return None
    if not isinstance(data, dict):
        return None
    kind, told = observed.event(fields.get("event", "message")[:64], data)
    return Event(observed.number(data) if seq is None else seq, kind[:64], told)


def refusal(response: httpx.Response, data: bytes) -> AgentError:
    fields = fields_of(content_of(data))
    usual = f"the answer was {response.status_code}"
    if response.is_redirect:
        usual += ", a redirect, which acp does not follow"
    said = fields.get("error") or usual
    return AgentError(
        str(said)[:_SAID], str(fields.get("error_code", ""))[:64], response.status_code
    )


def content_of(data: bytes) -> Any:
    try:
        return decode(data)
    except Refusal:
        return None


def listed(answer: Any, name: str) -> list[Json]:
    """The objects of an answer that is a list, or holds one under a name."""
    return objects(answer if isinstance(answer, list) else fields_of(answer).get(name))


LARGEST = 32 << 20  # bytes of an answer

LONGEST_LINE = 8 << 20  # bytes of one line of a stream; a message may have 1 MiB

PLAIN = {"accept-encoding": "identity"}


class TooLarge(httpx.HTTPError):
    """An answer, or a line of it, is larger than anything that an agent says."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"{what} of more than {limit} bytes")


async def read_body(response: httpx.Response, seconds: float) -> bytes:
    """The whole of an answer, as far as it is no larger than `LARGEST`.

    Args:
        seconds: within which all of it has to arrive.

    Raises:
        TooLarge: it is larger.
        httpx.ReadTimeout: it did not end in time.
        httpx.HTTPError: the connection broke.
    """
    data = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in _chunks(response):
                data += chunk
                if len(data) > LARGEST:
                    raise TooLarge("an answer", LARGEST)
    except TimeoutError:
        raise httpx.ReadTimeout("the answer is endless") from None
    return bytes(data)


async def read_lines(response: httpx.Response, limit: int = LONGEST_LINE) -> AsyncIterator[str]:
    """The lines of a stream as they come, without their ends.

    Raises:
        TooLarge: a line is longer than ``limit`` bytes.
        httpx.HTTPError: the connection broke.
    """
    parts: list[bytes] = []
    size = 0
    async for chunk in _chunks(response):
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join((*parts, line)).removesuffix(b"\r").decode("utf-8", "replace")
            parts, size = [], 0
        if rest:
            parts.append(rest)
            size += len(rest)
        if size > limit:
            raise TooLarge("a line", limit)


async def _chunks(response: httpx.Response) -> AsyncIterator[bytes]:
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("", "identity"):
        raise httpx.DecodingError(
            f"the answer has the encoding {coding[:40]}, which acp did not request"
        )
    async for chunk in response.aiter_raw():
        yield chunk


VARIABLE = "SSL_CERT_FILE"

_more: list[str] = []


def also(file: str | None) -> None:
    """Believe the authorities in this file, too, from now on and everywhere in this process.

    Raises:
        Refused: it cannot be read, or holds no certificate.
    """
    if not file:
        return
    try:
        ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        raise Refused(f"--ca: {file}: {_reason(error)}") from None
    _more.append(file)


def context(url: str, own: str = "") -> ssl.SSLContext | bool:
    """What checks who answers at an address; False where nothing there is encrypted.

    Args:
        url: the address.
        own: the certificate file of an agent of this user, which is believed for what it is: it
            need not name this machine's loopback address.

    Raises:
        OSError: a file of certificates cannot be read.
    """
    if not url.startswith("https:"):
        return False
    if own:
        return _pinned(own)
    return _usual(os.environ.get(VARIABLE, ""), tuple(_more))


@lru_cache(maxsize=4)
def _usual(file: str, more: tuple[str, ...]) -> ssl.SSLContext:
    """Made once: that takes a while. ``file`` is what the environment names."""
    made = httpx.create_ssl_context()  # which reads SSL_CERT_FILE
    for each in more:
        made.load_verify_locations(each)
    return made


def _pinned(file: str) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=file)
    made.check_hostname = False
    made.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return made


def check_pair(cert: str | None, key: str | None) -> tuple[str, str] | None:
    """The files with a certificate and its key, where an agent is to serve with them.

    Raises:
        Refused: one of them is missing, or they cannot be used.
    """
    if not cert and not key:
        return None
    if not cert or not key:
        raise Refused("--tls-cert and --tls-key require each other")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise Refused(f"--tls-cert, --tls-key: {cert}, {key}: {_reason(error)}") from None
    return os.path.abspath(cert), os.path.abspath(key)


def words(error: Exception) -> str:
    """Why a request failed, in words that say what to do about a certificate."""
    text = str(error) or type(error).__name__
    found = untrusted(error)
    if found:
        return f"its certificate is not trusted here ({found}): name the authority's file with --ca or {VARIABLE}"
    return f"{text}: it does not speak TLS" if "WRONG_VERSION_NUMBER" in text else text


def untrusted(error: Exception) -> str:
    """What is wrong with a certificate, where that is why a request failed; else ""."""
    cause: BaseException | None = error if isinstance(error, httpx.ConnectError) else None
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return str(cause.verify_message).rstrip(".")
        cause = cause.__cause__ or cause.__context__
    return ""


def _reason(error: Exception) -> str:
    told = error.strerror if isinstance(error, OSError) else None
    return told or getattr(error, "reason", None) or str(error) or type(error).__name__
