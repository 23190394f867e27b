"""A relay over HTTP: its rooms, and ``/acp/new``, ``/acp/{token}/join | send | poll | status``.

Whoever knows a room's token may join it. A frame is carried as the text that it came as, to the
member that it is for. There is no list of rooms: a token is all that protects one.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import os
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.files.decode import text
from acp_core.protocols.wire.schema.basics import (
    MAX_MESSAGE,
    Code,
    Json,
    WireError,
    decode_object,
    invalid,
    is_name,
)
from acp_core.protocols.wire.serving.http import answer, refuse

LARGEST = MAX_MESSAGE + 65536  # bytes of a frame

PATIENCE = 30.0  # seconds for a body to arrive

LONGEST = 30.0  # seconds that a question waits for an answer

CONNECTIONS = 2000

PAGE = 200

LOOK = 3.0  # seconds between two looks at who has gone

RETURN = 5.0  # seconds that a member has to ask again when its connection broke


class Relay:
    """The relay. ``key``: who opens a room has to show it, where there is one."""

    def __init__(self, key: str | None = None, bounds: Bounds | None = None) -> None:
        self.rooms = Rooms(bounds or Bounds())
        self._key = key
        self._changed: dict[str, asyncio.Event] = {}  # by room: something is there to be taken
        self._open = 0

    def application(self) -> ASGIApp:
        """The relay as an ASGI application."""
        table: list[tuple[str, str, Callable[[Request], Awaitable[Json]]]] = [
            ("POST", "/acp/new", self._new),
            ("POST", "/acp/{token}/join", self._join),
            ("POST", "/acp/{token}/leave", self._leave),
            ("POST", "/acp/{token}/send", self._send),
            ("GET", "/acp/{token}/poll", self._poll),
            ("GET", "/acp/{token}/status", self._status),
            ("DELETE", "/acp/{token}", self._delete),
        ]
        routes = [Route(path, self._served(work), methods=[verb]) for verb, path, work in table]
        app = Starlette(routes=routes)

        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return
            headers = dict(scope["headers"])
            if b"origin" in headers:
                refusal = WireError(Code.FORBIDDEN, "this relay refuses requests of web pages")
                await refuse(refusal)(scope, receive, send)
            elif self._open >= CONNECTIONS:
                await refuse(WireError(Code.BUSY, "too many requests"))(scope, receive, send)
            else:
                self._open += 1
                try:
                    await app(scope, receive, send)
                finally:
                    self._open -= 1

        return guarded

    def _served(
        self, work: Callable[[Request], Awaitable[Json]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            try:
                return answer(await work(request))
            except WireError as refusal:
                return refuse(refusal)
            except ClientDisconnect:
                return Response(status_code=408)

        return serve

    async def _new(self, request: Request) -> Json:
        body = decode_object(await _body(request), empty=True)
        if self._key is not None:
            shown = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(shown.encode(), self._key.encode()):
                raise WireError(Code.UNAUTHORIZED, "this relay requires its key to open a room")
        token = request.query_params.get("token") or None
        room, existed = self.rooms.open(token, _key_of(body), time.monotonic())
        return {"ok": True, "token": room.token, "existed": existed}

    async def _join(self, request: Request) -> Json:
        body = decode_object(await _body(request), empty=True)
        name = body.get("name")
        if not is_name(name):
            raise invalid("name: must be 1 to 64 printable characters")
        room = self._room(request)
        member = room.join(str(name), _key_of(body), time.monotonic())
        self._stir(room)
        host = room.host
        return {
            "ok": True,
            "session_id": member.secret,
            "member": member.id,
            "host": host.id if host else None,
            "seq": room.seq,
            "agent_name": host.name if host else member.name,
        }

    async def _leave(self, request: Request) -> Json:
        room, member = self._member(request)
        other = request.query_params.get("member")
        if other is not None:
            if not member.host:
                raise WireError(Code.FORBIDDEN, "only the host of the room can remove others")
            known = room.members.get(other)
            if known:
                room.leave(known)
        else:
            room.leave(member)
        self._stir(room)
        return {"ok": True}

    async def _send(self, request: Request) -> Json:
        data = await _body(request)
        frame = decode_object(data)
        room, secret = self._room(request), request.query_params.get("session")
        sender = room.of(secret) if secret is not None else None
        to = request.query_params.get("to") if sender else None
        id = text(frame.get("id"))
        if id is not None and sender is None:
            if id in room.ids:
                return {"ok": True, "deduped": True, "id": id}
            room.ids.append(id)
        seq = room.send(sender, to, data.decode(), time.monotonic())
        self._stir(room)
        return {"ok": True, "id": f"f_{seq}" if id is None else id, "seq": seq}

    async def _poll(self, request: Request) -> Json:
        query = request.query_params
        if "session" not in query:
            return self._latest(self._room(request), request)
        room, member = self._member(request)
        after, wait = _number(query.get("after")), min(_number(query.get("wait")), LONGEST)
        member.turn += 1
        turn, ends = member.turn, time.monotonic() + wait
        gone = asyncio.create_task(_gone(request))
        try:
            while True:
                found = member.after(int(after), PAGE)
                left = ends - time.monotonic()
                here = room.members.get(member.id) is member
                if found or left <= 0 or member.turn != turn or not here:
                    break
                if gone.done():  # it may have been cut off only: it has a moment to come back
                    member.seen = time.monotonic() - room.bounds.silent + RETURN
                    raise ClientDisconnect
                member.seen = time.monotonic()
                await self._something(room, gone, min(left, LOOK))
        finally:
            gone.cancel()
        if not here and not found:
            raise WireError(Code.FORBIDDEN, "invalid_session")
        member.seen = time.monotonic()
        last = found[-1].seq if found else int(after)
        return {"ok": True, "messages": [_entry_json(each) for each in found], "last": last}

    async def _something(self, room: Room, gone: asyncio.Task[None], seconds: float) -> None:
        """Wait until something is there in a room, or who asks has gone, at most so long."""
        event = self._changed.setdefault(room.token, asyncio.Event())
        waiting = asyncio.create_task(event.wait())
        await asyncio.wait({waiting, gone}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        before = len(room.members)
        room.sweep(time.monotonic())
        if len(room.members) != before:
            self._stir(room)

    def _latest(self, room: Room, request: Request) -> Json:
        """For who has no place in the room: what went to all, as the objects that they are."""
        after = request.query_params.get("after_id") or ""
        place = int(after[2:]) if after.startswith("f_") and after[2:].isdigit() else 0
        found = [entry for entry in room.latest if entry.seq > place][:PAGE]
        last = f"f_{found[-1].seq}" if found else after
        messages = [decode_object(entry.text) for entry in found]
        return {"messages": messages, "count": len(found), "last_id": last, "server_seq": room.seq}

    async def _status(self, request: Request) -> Json:
        room = self._room(request)
        content: Json = {"ok": True, "members": len(room.members), "server_seq": room.seq,
                         "host": room.host is not None}  # fmt: skip
        to = room.members.get(request.query_params.get("to", ""))
        if to is not None:
            _, member = self._member(request)
            content["waiting"] = sum(entry.sender == member.id for entry in to.waiting)
        return content

    async def _delete(self, request: Request) -> Json:
        body = decode_object(await _body(request), empty=True)
        room = self._room(request)
        self.rooms.close(room, _key_of(body))
        self._stir(room)
        return {"ok": True}

    def _room(self, request: Request) -> Room:
        return self.rooms.get(str(request.path_params["token"]), time.monotonic())

    def _member(self, request: Request) -> tuple[Room, Member]:
        room = self._room(request)
        return room, room.of(request.query_params.get("session", ""))

    def _stir(self, room: Room) -> None:
        event = self._changed.pop(room.token, None)
        if event:
            event.set()


def _entry_json(entry: Entry) -> Json:
    told: Json = {"seq": entry.seq, "from": entry.sender}
    if entry.event:
        return {**told, "event": entry.event}
    return {**told, "text": entry.text, "shared": entry.shared}


async def _body(request: Request) -> bytes:
    data = bytearray()
    try:
        async with asyncio.timeout(PATIENCE):
            async for chunk in request.stream():
                data += chunk
                if len(data) > LARGEST:
                    raise WireError(Code.TOO_LARGE, "the frame is too large", max_bytes=LARGEST)
    except TimeoutError:
        raise WireError(Code.TIMEOUT, "the body did not arrive in time") from None
    return bytes(data)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _key_of(body: Json) -> str | None:
    key = body.get("key")
    if key is not None and not (isinstance(key, str) and 0 < len(key) <= 256):
        raise invalid("key: must be a text")
    return key


def _number(text: str | None) -> int:
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise invalid("must be a whole number")
    return int(text)


TOKEN = re.compile(r"[A-Za-z0-9_-]{6,64}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of everything a relay bears."""

    rooms: int = 500
    members: int = 64  # of one room
    frames: int = 512  # that wait for one member
    bytes: int = 4 << 20  # that wait for one member
    idle: float = 3600.0  # seconds after which a room without members goes
    silent: float = 60.0  # seconds without a question after which a member is gone
    rate: int = 2000  # frames a second of one room
    latest: int = 200  # frames for all that are kept for who has no place in the room


class Entry(NamedTuple):
    """What a member is told: a frame of ``sender``, or that ``sender`` came or went (``event``).

    ``shared``: it went to all. ``sender`` is "" where somebody without a place in the room spoke.
    """

    seq: int
    sender: str
    text: str = ""
    event: str = ""
    shared: bool = False


class Member:
    """A place in a room. ``secret`` is shown by who has it; ``id`` is what others are told."""

    def __init__(self, name: str, host: bool, now: float) -> None:
        self.id = f"m_{os.urandom(6).hex()}"
        self.secret = f"sess_{os.urandom(16).hex()}"
        self.name = name
        self.host = host
        self.seen = now
        self.waiting: deque[Entry] = deque()
        self.bytes = 0
        self.turn = 0  # of its questions; an older one is answered at once

    def put(self, entry: Entry) -> None:
        """Let an entry wait for it."""
        self.waiting.append(entry)
        self.bytes += len(entry.text)

    def after(self, seq: int, most: int) -> list[Entry]:
        """What follows a place; what does not is taken off."""
        while self.waiting and self.waiting[0].seq <= seq:
            self.bytes -= len(self.waiting.popleft().text)
        return [self.waiting[n] for n in range(min(most, len(self.waiting)))]


@dataclass
class Room:
    """A room. ``key``: the digest of what its host alone knows, where it has one."""

    token: str
    key: bytes | None
    bounds: Bounds
    used: float
    members: dict[str, Member] = field(default_factory=dict)
    latest: deque[Entry] = field(default_factory=deque)
    ids: deque[str] = field(default_factory=lambda: deque(maxlen=1000))
    seq: int = 0
    left: float = 0.0
    at: float = 0.0

    @property
    def host(self) -> Member | None:
        """Who opened it, while that one is here."""
        return next((member for member in self.members.values() if member.host), None)

    def join(self, name: str, key: str | None, now: float) -> Member:
        """A new member; a host takes the place of the one before.

        Raises:
            Refusal: the key is wrong, or the room is full.
        """
        host = key is not None
        if host and (self.key is None or not hmac.compare_digest(self.key, digest(key or ""))):
            raise WireError(Code.FORBIDDEN, "not the key of this room")
        if host and self.host:
            self.leave(self.host)
        if len(self.members) >= self.bounds.members:
            raise WireError(Code.BUSY, "the room is full")
        member = Member(name, host, now)
        self._tell(member, "joined")
        self.members[member.id] = member
        return member

    def leave(self, member: Member) -> None:
        """A member goes; the others are told."""
        if self.members.pop(member.id, None):
            self._tell(member, "left")

    def of(self, secret: str) -> Member:
        """The member who shows this.

        Raises:
            Refusal: nobody here has it.
        """
        for member in self.members.values():
            if hmac.compare_digest(member.secret.encode(), secret.encode("utf-8", "replace")):
                return member
        raise WireError(Code.FORBIDDEN, "invalid_session")

    def send(self, sender: Member | None, to: str | None, text: str, now: float) -> int:
        """Let a frame wait for a member, or for all; its number.

        Raises:
            Refusal: no such member, too fast, or too many frames are waiting for the receiver.
        """
        if to is None:
            fitting = [member for member in self.members.values() if member is not sender]
        elif to in self.members:
            fitting = [self.members[to]]
        else:
            raise WireError(Code.NOT_FOUND, "no such member")
        self.left = min(self.bounds.rate, self.left + (now - self.at) * self.bounds.rate)
        self.at = now
        if self.left < 1:
            raise WireError(Code.BUSY, "too many frames a second")
        for member in fitting:
            if not self._has_room(member, text):
                raise WireError(Code.BUSY, "too many frames are waiting for the receiver")
        self.left -= 1
        self.seq += 1
        entry = Entry(self.seq, sender.id if sender else "", text, shared=to is None)
        for member in fitting:
            member.put(entry)
        if to is None:
            self.latest.append(entry)
            while len(self.latest) > self.bounds.latest or _size(self.latest) > self.bounds.bytes:
                self.latest.popleft()
        return self.seq

    def sweep(self, now: float) -> None:
        """Let those go who asked for nothing for too long."""
        for member in list(self.members.values()):
            if now - member.seen > self.bounds.silent:
                self.leave(member)

    def _has_room(self, member: Member, text: str) -> bool:
        few = len(member.waiting) < self.bounds.frames
        return few and (not member.waiting or member.bytes + len(text) <= self.bounds.bytes)

    def _tell(self, about: Member, event: str) -> None:
        self.seq += 1
        for member in self.members.values():
            if member is not about and (member.host or about.host):
                member.put(Entry(self.seq, about.id, event=event))


class Rooms:
    """All rooms of a relay."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self._rooms: dict[str, Room] = {}

    def open(self, token: str | None, key: str | None, now: float) -> tuple[Room, bool]:
        """The room of a token, a new one where there is none; says whether it was there.

        Raises:
            Refusal: no token, another's room, or too many rooms.
        """
        token = token or f"tok_{os.urandom(12).hex()}"
        if not TOKEN.fullmatch(token):
            raise invalid("token: must be 6 to 64 letters, digits, _ and -")
        known = self._rooms.get(token)
        if known:
            given = digest(key) if key is not None else b""
            if known.key is not None and not hmac.compare_digest(known.key, given):
                raise WireError(Code.FORBIDDEN, "not the key of this room")
            known.used = now
            return known, True
        self.sweep(now)
        if len(self._rooms) >= self.bounds.rooms:
            raise WireError(Code.BUSY, "too many rooms")
        room = Room(token, digest(key) if key is not None else None, self.bounds, now)
        room.left, room.at = self.bounds.rate, now
        self._rooms[token] = room
        return room, False

    def get(self, token: str, now: float) -> Room:
        """The room of a token.

        Raises:
            Refusal: there is none.
        """
        room = self._rooms.get(token)
        if room is None:
            raise WireError(Code.FORBIDDEN, "invalid_token")
        room.used = now
        room.sweep(now)
        return room

    def close(self, room: Room, key: str | None) -> None:
        """Close a room: its host alone can.

        Raises:
            Refusal: somebody else asked.
        """
        if room.key is None or not hmac.compare_digest(room.key, digest(key or "")):
            raise WireError(Code.FORBIDDEN, "not the key of this room")
        self._rooms.pop(room.token, None)
        room.members.clear()

    def sweep(self, now: float) -> None:
        """Let rooms go that nobody uses."""
        for room in list(self._rooms.values()):
            room.sweep(now)
            if not room.members and now - room.used > self.bounds.idle:
                del self._rooms[room.token]

    def __len__(self) -> int:
        return len(self._rooms)


def digest(key: str) -> bytes:
    """What is kept of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()


def _size(entries: deque[Entry]) -> int:
    return sum(len(entry.text) for entry in entries)
