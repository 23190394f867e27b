"""An endpoint as data: its paths, who may use it, and what it takes and gives.

Requests are read by these declarations (see `Call`), and ``/openapi.json`` is made from them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.types import ASGIApp

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.http.calls import Call

LARGEST_NUMBER = 2**53
Endpoint = Callable[["Call"], Awaitable[ASGIApp]]


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


class Place(NamedTuple):
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
    endpoint: Endpoint
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


def limit(usual: int, high: int = 1000) -> tuple[Param, Param]:
    """How pages are asked for: ``limit`` and ``offset``."""
    return Param("limit", "number", usual, 1, high), Param("offset", "number", 0)
