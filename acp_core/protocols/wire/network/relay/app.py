"""The relay's HTTP interface: ``/acp/new`` and ``/acp/{token}/join | send | poll | status``.

Whoever knows a room's token may join it. A frame is carried as the text that it came as, to the
member that it is for. There is no list of rooms: a token is all that protects one.
"""

from __future__ import annotations

import asyncio
import hmac
import time
from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from acp_core.files.decode import text
from acp_core.protocols.wire.network.http.calls import answer, refuse
from acp_core.protocols.wire.network.relay.rooms import Bounds, Entry, Member, Room, Rooms
from acp_core.protocols.wire.schema import MAX_MESSAGE, Code, Json, Refusal, invalid, is_name
from acp_core.protocols.wire.schema.decode import decode_object

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
                refusal = Refusal(Code.FORBIDDEN, "this relay refuses requests of web pages")
                await refuse(refusal)(scope, receive, send)
            elif self._open >= CONNECTIONS:
                await refuse(Refusal(Code.BUSY, "too many requests"))(scope, receive, send)
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
            except Refusal as refusal:
                return refuse(refusal)
            except ClientDisconnect:
                return Response(status_code=408)

        return serve

    async def _new(self, request: Request) -> Json:
        body = decode_object(await _body(request), empty=True)
        if self._key is not None:
            shown = request.headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(shown.encode(), self._key.encode()):
                raise Refusal(Code.UNAUTHORIZED, "this relay requires its key to open a room")
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
                raise Refusal(Code.FORBIDDEN, "only the host of the room can remove others")
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
            raise Refusal(Code.FORBIDDEN, "invalid_session")
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
                    raise Refusal(Code.TOO_LARGE, "the frame is too large", max_bytes=LARGEST)
    except TimeoutError:
        raise Refusal(Code.TIMEOUT, "the body did not arrive in time") from None
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
