"""Requests, their rights and limits, answers, and streams of events, for what serves endpoints.

Who follows ``/stream`` keeps a place in the agent's durable log and reads on from there. So it gets
every entry once, whether it was there, came back, or is slow.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import logging
import shlex
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import h11
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from acp_core.protocols.kit import guard
from acp_core.protocols.wire import matters
from acp_core.protocols.wire.conduct.agent import Agent, Limits
from acp_core.protocols.wire.conduct.relay import HttpChannel
from acp_core.protocols.wire.network.channels import until_one_ends
from acp_core.protocols.wire.read import store
from acp_core.protocols.wire.schema.basics import (
    TERMINAL,
    Code,
    Json,
    LogEntry,
    WireError,
    decode_object,
    encode,
    invalid,
    now_text,
    time_of,
    time_text,
)

logger = logging.getLogger("acp.wire")

SLACK = 65536  # bytes of a body beyond the largest message

NAMED = 4  # times the largest message; of a message up to there that is too large the id is told

OWNER, PEER, ANYBODY = "owner", "peer", "anybody"

NO_TOKEN = "this request needs a bearer token (Authorization: Bearer TOKEN)"

RIGHTS = "acp.rights"


class Call:
    """A request to an agent; its query is read as its place declares it.

    ``rights`` is `OWNER`, `PEER` for who showed the link's token, or `ANYBODY` for who showed none.
    """

    def __init__(self, agent: Agent, place: Endpoint, request: Request) -> None:
        self.agent = agent
        self.place = place
        self.request = request
        self.rights: str = request.scope.get(RIGHTS, ANYBODY)

    @property
    def wrapped(self) -> bool:
        """Whether lists are wanted inside an object: for who asks for JSON by name."""
        return "application/json" in self.request.headers.get("accept", "").lower()

    async def body(self, *, empty: bool = False, times: int = 1) -> Json:
        """The JSON object in the body; with ``empty``, none at all is an empty one.

        Args:
            times: the largest message, that it may be long.

        Raises:
            Refusal: it is anything else, too large, or does not arrive.
        """
        return decode_object(await self.data(times), empty=empty)

    async def message(self) -> Json:
        """The same, of a message whose size is checked afterwards."""
        return await self.body(times=NAMED)

    async def data(self, times: int = 1) -> bytes:
        """The body as it came, at most so many times as long as the largest message.

        Raises:
            Refusal: it is too large, or does not arrive.
        """
        limits, data = self.agent.config.limits, bytearray()
        most = times * limits.message + SLACK
        try:
            async with asyncio.timeout(limits.body_seconds):
                async for chunk in self.request.stream():
                    data += chunk
                    if len(data) > most:
                        raise WireError(
                            Code.TOO_LARGE, "the body is too large", max_bytes=limits.message
                        )
        except TimeoutError:
            raise WireError(Code.TIMEOUT, "the body did not arrive in time") from None
        return bytes(data)

    def path(self, name: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[name])

    def text(self, *names: str) -> str | None:
        """A value of the query, under the first of several names that has one.

        Raises:
            Refusal: it is none of those that can be chosen.
        """
        for name in names:
            param, value = self.place.param(name), self.request.query_params.get(name)
            if value and param.choices and value not in param.choices:
                raise invalid(f"{name}: must be one of {', '.join(param.choices)}")
            if value:
                return value
        return None

    def number(self, name: str) -> int | None:
        """A whole number of the query; one that is too high counts as the highest.

        Raises:
            Refusal: it is none, or too low.
        """
        param, given = self.place.param(name), self.text(name)
        if given is None:
            return None if param.default is None else int(param.default)
        plain = given.strip()
        if not plain.isascii() or not plain.isdigit() or len(plain) > 400:
            raise invalid(f"{name}: must be a whole number")
        value = int(plain)
        if value < param.low:
            raise invalid(f"{name}: must be at least {param.low}")
        return min(value, param.high)

    def count(self, name: str) -> int:
        """The same, of one that has a default."""
        return self.number(name) or 0

    def time(self, name: str) -> datetime | None:
        """A time of the query: ISO 8601, or seconds since 1970.

        Raises:
            Refusal: it is neither.
        """
        given = self.text(name)
        if given is None:
            return None
        at = time_of(given.replace(" ", "+"))  # a "+" that was not escaped
        if at is None:
            try:
                at = datetime.fromtimestamp(float(given), UTC)
            except (ValueError, OverflowError, OSError):
                raise invalid(f"{name}: must be a time, such as 2026-03-21T07:00:00Z") from None
        return at

    def time_text(self, name: str) -> str | None:
        """The same, as it stands in a task."""
        at = self.time(name)
        return None if at is None else time_text(at)

    def newest_first(self, *fields: str) -> tuple[str, bool]:
        """How a page is sorted: the field, and whether the newest comes first.

        ``?sort=`` takes asc, desc, or a field with or without ``-`` before it.
        """
        given = self.text("sort") or "asc"
        if given in ("asc", "desc"):
            return fields[0], given == "desc"
        field = given.removeprefix("-")
        if field not in fields:
            raise invalid(f"sort: must be asc, desc, or one of {', '.join(fields)}")
        return field, given.startswith("-")


def answer(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """JSON as an answer."""
    kept = {"cache-control": "no-store", "x-content-type-options": "nosniff", **(headers or {})}
    return Response(encode(content), status, kept, "application/json; charset=utf-8")


def refuse(refusal: WireError, status: int | None = None) -> Response:
    """The error envelope as an answer."""
    headers = {"www-authenticate": "Bearer"} if refusal.code is Code.UNAUTHORIZED else None
    return answer(refusal.envelope(), status or refusal.status, headers)


def page(items: list[Json], total: int, limit: int, offset: int, name: str) -> Json:
    """A page of something, with where the next one begins."""
    following = offset + len(items)
    more = following < total
    return {
        name: items,
        "count": len(items),
        "total": total,
        "limit": limit,
        "has_more": more,
        "next_offset": following if more else None,
    }


async def serve(agent: Agent, place: Endpoint, request: Request) -> ASGIApp:
    """Answer a request; whatever goes wrong becomes an error envelope."""
    try:
        call = Call(agent, place, request)
        _check_rights(call)
        return await place.endpoint(call)
    except WireError as refusal:
        return refuse(refusal)
    except ClientDisconnect:
        return Response(status_code=400)  # nobody is there to read it
    except sqlite3.Error as error:  # a full disk, most of the time
        logger.warning("the store failed: %s", error)
        why = guard.refusal(matters.obstacles(agent.store.path.parent, "")) or error
        return refuse(WireError(Code.INTERNAL, f"the agent's store failed: {why}"))
    except Exception:
        logger.exception("%s %s failed", request.method, request.url.path)
        return refuse(WireError(Code.INTERNAL, "internal error: see the agent's log"))


def _check_rights(call: Call) -> None:
    """Refuse who may not ask for a place.

    Raises:
        Refusal: a token is needed, or another one.
    """
    place, agent = call.place, call.agent
    if call.rights == ANYBODY and not place.public:
        own = f"acp wire token {shlex.quote(agent.config.name)}"
        raise WireError(
            Code.UNAUTHORIZED,
            f"{NO_TOKEN}: use the token that `{own}` prints, or the one of the link",
        )
    reader = place.readers and agent.bridge is not None
    if call.rights == PEER and not (place.peers or reader):
        raise WireError(Code.FORBIDDEN, "the token of the link only gives the rights of a peer")


LARGEST_NUMBER = 2**53

Handler = Callable[["Call"], Awaitable[ASGIApp]]


class Param(NamedTuple):
    """A value of the query.

    ``kind`` is ``text``, ``number`` (whole), ``time`` or ``seconds``; ``low`` and ``high`` bound a
    number: one that is too high counts as the highest. ``choices`` are all that is taken.
    """

    name: str
    kind: str = "text"
    default: Any = None
    low: int = 0
    high: int = LARGEST_NUMBER
    choices: tuple[str, ...] = ()
    required: bool = False


class Endpoint(NamedTuple):
    """An endpoint.

    Attributes:
        paths: spellings of the same; ``{id}`` is a part of the path.
        peers: the token of the link suffices.
        public: whoever is on this machine may ask, without any token.
        readers: at a bridge it does, whose link is given to those who shall see what it tells of.
        query: the values that the query may have.
        body: the fields that the body may have (see `bodies.FIELDS`); None: there is no body.
        needed: those of them that it must have.
        empty: no body at all is an empty one.
        lines: the body is lines of JSON objects.
        gives: the status of the answer where all is well.
        refuses: the further statuses that are possible, but for those of every endpoint.
        streams: it answers with events (SSE).
    """

    method: str
    paths: tuple[str, ...]
    endpoint: Handler
    peers: bool = False
    readers: bool = False
    query: tuple[Param, ...] = ()
    body: tuple[str, ...] | None = None
    needed: tuple[str, ...] = ()
    empty: bool = False
    gives: tuple[int, ...] = (200,)
    refuses: tuple[int, ...] = ()
    streams: bool = False
    lines: bool = False
    public: bool = False

    def param(self, name: str) -> Param:
        """A declared value of the query.

        Raises:
            KeyError: it is not declared.
        """
        for each in self.query:
            if each.name == name:
                return each
        raise KeyError(name)


def limit_params(usual: int) -> tuple[Param, Param]:
    """How pages are asked for: ``limit`` and ``offset``."""
    return Param("limit", "number", usual, 1, 1000), Param("offset", "number", 0)


class Guard:
    """Lets requests through that may be answered, and notes what rights they have."""

    def __init__(self, app: ASGIApp, agent: Agent) -> None:
        self._app = app
        self._agent = agent
        self._open = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            if self._open >= self._agent.config.limits.connections:
                raise WireError(Code.BUSY, "too many requests at once")
            scope[RIGHTS] = self._rights(Headers(scope=scope))
        except WireError as refusal:
            await refuse(refusal)(scope, receive, send)
            return
        self._open += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open -= 1

    def _rights(self, headers: Headers) -> str:
        host = headers.get("host", "")
        name = _host_of(f"//{host}")
        if name is None or not self._is_ours(name):
            raise WireError(Code.FORBIDDEN, "Host: this agent does not have that name")
        origin = headers.get("origin")
        if origin is not None and _netloc(origin) != host.lower():
            raise WireError(Code.FORBIDDEN, "Origin: this agent refuses requests of web pages")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise WireError(
                Code.FORBIDDEN, "Sec-Fetch-Site: this agent refuses requests of web pages"
            )
        return self._by_token(headers.get("authorization"))

    def _by_token(self, given: str | None) -> str:
        agent = self._agent
        if given is None:
            if agent.config.open:
                raise WireError(Code.UNAUTHORIZED, NO_TOKEN)
            return ANYBODY if agent.config.token_needed else OWNER
        scheme, _, token = given.partition(" ")
        shown = token.strip().encode("utf-8", "replace")
        owner = hmac.compare_digest(shown, agent.owner_token.encode())
        peer = hmac.compare_digest(shown, agent.token.encode())
        if scheme.lower() != "bearer" or not (owner or peer):
            raise WireError(Code.UNAUTHORIZED, "Authorization: not a token of this agent")
        return OWNER if owner else PEER

    def _is_ours(self, name: str) -> bool:
        config = self._agent.config
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            known = {"localhost", config.host.lower(), *(host.lower() for host in config.hosts)}
            return name in known
        return address.is_loopback or config.open or name == config.host


def _host_of(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        _ = parts.port
        return parts.hostname if parts.username is None and not parts.path else None
    except ValueError:
        return None


def _netloc(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


Protocol = type[H11Protocol]


def connections(limits: Limits) -> Protocol:
    """The class of an agent's connections, which are counted together."""
    open_now: Counter[str] = Counter()

    class Connection(Bounded):
        _limits = limits
        _open = open_now

    return Connection


class Bounded(H11Protocol):
    """A connection that is ended when it does not ask in time, or is one too many."""

    _limits: Limits
    _open: Counter[str]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._address = ""
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count it, and wait for its first request."""
        super().connection_made(transport)
        self._address = self.client[0] if self.client else ""
        self._open[self._address] += 1
        self._open[""] += 1
        most = self._limits.connections if _is_here(self._address) else self._limits.address
        if self._open[self._address] > most or self._open[""] > self._limits.connections:
            transport.abort()
            return
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count it no more."""
        self._forget()
        self._open[""] -= 1
        self._open[self._address] -= 1
        if self._open[self._address] <= 0:
            del self._open[self._address]
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take data; as long as no request is whole, the time for it runs."""
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect()
        else:
            self._forget()

    def on_response_complete(self) -> None:
        """An answer was given: from here on uvicorn's own time for an idle connection runs."""
        self._forget()
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP as everything else is refused."""
        body = encode(invalid(msg).envelope())
        headers = [
            (b"content-type", b"application/json; charset=utf-8"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        for event in (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect(self) -> None:
        if self._late is None:
            seconds = self._limits.head_seconds
            self._late = self.loop.call_later(seconds, self.transport.abort)

    def _forget(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def _is_here(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


KEEPALIVE = 15.0  # seconds; clients wait for 30

PADDING = b": " + b" " * 1021 + b"\n"
"""Behind the first event: clients that read in blocks of 256 or 512 bytes see that at once."""

BLOCK = 512

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    (b"x-content-type-options", b"nosniff"),
]

_ENDS = tuple(f'"state":"{state.value}"'.encode() for state in TERMINAL)


async def stream(call: Call) -> ASGIApp:
    """``GET /stream``: everything, from now on or from a place."""
    return await _follow(call, None)


async def subscribe(call: Call) -> ASGIApp:
    """``GET /tasks/{id}:subscribe``: what happens to one task, until it is over."""
    id = call.path("id")
    task = await call.agent.store.read(lambda db: store.find_task(db, id))
    if task is None:
        raise WireError(Code.NOT_FOUND, "no such task")
    return await _follow(call, task)


async def _follow(call: Call, task: Json | None) -> ASGIApp:
    agent = call.agent
    oldest, last = await agent.store.read(store.log_bounds)
    given = call.number("since")
    since = -1 if given is None else given
    if since < 0:
        since = last_event_id(call)
    if call.request.method == "HEAD":
        return Response(headers={"content-type": "text/event-stream; charset=utf-8"})
    if agent.hub.followers >= agent.config.limits.streams:
        raise WireError(Code.BUSY, "too many streams are open")
    place = last if since < 0 else min(since, last)
    ready = {
        "type": "acp.ready",
        "ts": now_text(),
        "agent": agent.config.name,
        "seq": last,
        "since": place,
        "missed": max(0, oldest - place - 1),
    }
    blocks = call.request.headers.get("user-agent", "").startswith("Python-urllib")
    return EventStream(agent, place, ready, task, blocks=blocks)


def last_event_id(call: Call) -> int:
    """The number of the event that a follower who comes back had last; -1 where it says none."""
    said = call.request.headers.get("last-event-id", "").strip()
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else -1


class EventStream:
    """An answer that does not end while the follower stays.

    Args:
        place: the number of the last entry that the follower has.
        task: only what happens to this task, until it is over.
        blocks: fill up each piece to whole blocks, for a client that reads such.
    """

    def __init__(
        self, agent: Agent, place: int, ready: Json, task: Json | None, *, blocks: bool
    ) -> None:
        self._agent = agent
        self._place = place
        self._ready = ready
        self._task = task
        self._blocks = blocks
        self._sent = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        self._agent.hub.followers += 1
        work = [asyncio.create_task(self._tell(send)), asyncio.create_task(gone(receive))]
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._agent.hub.followers -= 1
            for each in work:
                each.cancel()
            await asyncio.gather(*work, return_exceptions=True)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await self._send(send, event(self._place, "acp.ready", encode(self._ready)) + PADDING)
        hub, task = self._agent.hub, self._task
        over = task is not None and self._over(task)
        last = hub.last  # what became of a task that is over stands up to here
        going = not over or self._place < last
        while going and not hub.closed:
            if not await hub.grown(self._place, KEEPALIVE):
                await self._send(send, b": keepalive\n\n")
                continue
            entries = await hub.after(self._place, self._agent.store)
            if not entries:
                continue
            self._place = entries[-1].seq
            told = [entry for entry in entries if self._wanted(entry)]
            if told:
                data = b"".join(event(entry.seq, entry.kind, entry.body) for entry in told)
                await self._send(send, data)
            ended = task is not None and any(map(_ends, told))
            going = self._place < last if over else not ended
        await send({"type": "http.response.body", "body": b""})

    async def _send(self, send: Send, data: bytes) -> None:
        if self._blocks:
            lacking = -(self._sent + len(data)) % BLOCK
            if lacking:
                lacking += BLOCK if lacking < 3 else 0
                data += b":" + b" " * (lacking - 3) + b"\n\n"
        self._sent += len(data)
        await send({"type": "http.response.body", "body": data, "more_body": True})

    def _wanted(self, entry: LogEntry) -> bool:
        return self._task is None or entry.task_id == self._task["id"]

    def _over(self, task: Json) -> bool:
        return task["status"] in {state.value for state in TERMINAL}


def event(seq: int, kind: str, body: bytes) -> bytes:
    """One server-sent event."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (seq, kind.encode(), body)


def _ends(entry: LogEntry) -> bool:
    return entry.kind == "acp.status" and any(mark in entry.body for mark in _ENDS)


async def gone(receive: Receive) -> None:
    """Wait until nobody is there any more who reads the answer."""
    while (await receive())["type"] != "http.disconnect":
        pass


FRAME, END = "acp.frame", "acp.end"


async def begin(call: Call) -> ASGIApp:
    """``POST /channel``: be a peer over HTTP alone."""
    await call.body(empty=True)
    id = call.agent.visits.begin().id
    return answer({"ok": True, "channel": id, "stream": f"/channel/{id}/stream"}, 201)


async def take(call: Call) -> ASGIApp:
    """``POST /channel/{id}``: frames, one per line."""
    visit = call.agent.visits.get(call.path("id"))
    try:
        text = (await call.data()).decode()
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8 text") from None
    lines = [line for line in text.split("\n") if line.strip()]
    return answer(
        {"ok": True, "taken": await visit.take(lines, call.number("seq"), call.number("seen"))}
    )


async def end(call: Call) -> ASGIApp:
    """``DELETE /channel/{id}``: end it."""
    visit = call.agent.visits.get(call.path("id"))
    await visit.close("the other side closed the connection")
    return answer({"ok": True, "channel": visit.id})


async def follow(call: Call) -> ASGIApp:
    """``GET /channel/{id}/stream``: the frames for who opened it, as events."""
    visit = call.agent.visits.get(call.path("id"))
    since = call.number("since")
    place = last_event_id(call) if since is None else since
    return FrameStream(visit, max(place, 0))


class FrameStream:
    """The frames of a channel behind a place, as an answer that ends with the channel."""

    def __init__(self, visit: HttpChannel, place: int) -> None:
        self._visit = visit
        self._follower = visit.follow(place)
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        try:
            await until_one_ends(self._tell(send), gone(receive))
        finally:
            self._visit.left(self._follower)

    async def _tell(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await self._send(send, b": frames follow\n\n")
        visit = self._visit
        while visit.followed_by(self._follower):
            frames = await visit.after(self._place, self._follower, KEEPALIVE)
            if frames:
                self._place = frames[-1].number
                data = (event(each.number, FRAME, each.text.encode()) for each in frames)
                await self._send(send, b"".join(data))
            elif visit.why:
                await self._send(send, event(self._place, END, encode({"reason": visit.why})))
                break
            else:
                await self._send(send, b": keepalive\n\n")
        await asyncio.shield(send({"type": "http.response.body", "body": b""}))

    async def _send(self, send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})
