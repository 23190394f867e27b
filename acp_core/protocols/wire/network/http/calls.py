"""A request and its answer, for the functions that serve the endpoints."""

from __future__ import annotations

import asyncio
import logging
import shlex
import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp

from acp_core.protocols.kit import guard
from acp_core.protocols.wire.conduct.agent.core import Agent
from acp_core.protocols.wire.network.http.place import Place
from acp_core.protocols.wire.schema import Code, Json, Refusal, invalid, time_of, time_text
from acp_core.protocols.wire.schema.decode import decode_object, encode
from acp_core.protocols.wire.write import guard as wire_guard

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

    def __init__(self, agent: Agent, place: Place, request: Request) -> None:
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
                        raise Refusal(
                            Code.TOO_LARGE, "the body is too large", max_bytes=limits.message
                        )
        except TimeoutError:
            raise Refusal(Code.TIMEOUT, "the body did not arrive in time") from None
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


def refuse(refusal: Refusal, status: int | None = None) -> Response:
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


async def serve(agent: Agent, place: Place, request: Request) -> ASGIApp:
    """Answer a request; whatever goes wrong becomes an error envelope."""
    try:
        call = Call(agent, place, request)
        _check_rights(call)
        return await place.endpoint(call)
    except Refusal as refusal:
        return refuse(refusal)
    except ClientDisconnect:
        return Response(status_code=400)  # nobody is there to read it
    except sqlite3.Error as error:  # a full disk, most of the time
        logger.warning("the store failed: %s", error)
        why = guard.refusal(wire_guard.obstacles(agent.store.path.parent, "")) or error
        return refuse(Refusal(Code.INTERNAL, f"the agent's store failed: {why}"))
    except Exception:
        logger.exception("%s %s failed", request.method, request.url.path)
        return refuse(Refusal(Code.INTERNAL, "internal error: see the agent's log"))


def _check_rights(call: Call) -> None:
    """Refuse who may not ask for a place.

    Raises:
        Refusal: a token is needed, or another one.
    """
    place, agent = call.place, call.agent
    if call.rights == ANYBODY and not place.public:
        own = f"acp wire token {shlex.quote(agent.config.name)}"
        raise Refusal(
            Code.UNAUTHORIZED,
            f"{NO_TOKEN}: use the token that `{own}` prints, or the one of the link",
        )
    reader = place.readers and agent.bridge is not None
    if call.rights == PEER and not (place.peers or reader):
        raise Refusal(Code.FORBIDDEN, "the token of the link only gives the rights of a peer")
