"""A relay of another make, which knows no places: whoever is in the room gets everything.

Such a relay is asked again and again, overwrites the time of each frame and adds fields of its
own; so a signature that does not fit means nothing here. Two agents can meet in a room of it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import TYPE_CHECKING

from acp_core.files.decode import text
from acp_core.protocols.wire.conduct.agent.channel import ChannelClosed
from acp_core.protocols.wire.schema import CARD, Json
from acp_core.protocols.wire.schema.decode import decode_object, encode
from acp_core.protocols.wire.schema.lenient import objects

if TYPE_CHECKING:
    from acp_core.protocols.wire.conduct.agent.relay import Place

EVERY = 1.0  # seconds between two questions while nothing comes
REMEMBERED = 4096  # frames of our own, which come back too
PAGE = 200
_JOINED = "acp.agent_joined"


class PlainChannel:
    """All others in a room as one `Channel`."""

    rewrites = True

    def __init__(self, place: Place) -> None:
        self._place = place
        self._last = ""
        self._came: list[Json] = []
        self._own: OrderedDict[tuple[str, str], None] = OrderedDict()
        self._greeted = False
        self._closed = ""

    async def skip(self) -> None:
        """Pass over what was said before we came.

        Raises:
            ChannelClosed: the relay is lost.
        """
        while await self._ask():
            pass
        self._came.clear()

    async def heard(self) -> None:
        """Wait until somebody says something.

        Raises:
            ChannelClosed: the relay is lost.
        """
        while not self._came:
            if not await self._ask():
                await asyncio.sleep(EVERY)

    def begin(self) -> None:
        """Be there for a new session; what has come belongs to it."""
        self._greeted, self._closed = False, ""

    async def send(self, text: str) -> None:
        """See `Channel.send`."""
        if self._closed:
            raise ChannelClosed(self._closed)
        self._own[_key(decode_object(text))] = None
        while len(self._own) > REMEMBERED:
            self._own.popitem(last=False)
        await self._place.post(text)

    async def receive(self) -> str:
        """See `Channel.receive`. A second card is the beginning of another session."""
        while True:
            if self._closed:
                raise ChannelClosed(self._closed)
            if self._came:
                is_card = self._came[0].get("type") == CARD
                if is_card and self._greeted:
                    self._closed = "the peer joined again"
                    continue
                self._greeted = self._greeted or is_card
                return encode(self._came.pop(0)).decode()
            if not await self._ask():
                await asyncio.sleep(EVERY)

    async def flushed(self) -> None:
        """See `Channel.flushed`: such a relay does not say; it has taken everything."""

    async def close(self, reason: str) -> None:
        """See `Channel.close`."""
        self._closed = self._closed or reason or "closed"

    async def _ask(self) -> int:
        """Ask once; how much there was."""
        query = {"since": "0", "limit": str(PAGE)}
        if self._last:
            query["after_id"] = self._last
        told = await self._place.ask("GET", "poll", params=query)
        found, last = objects(told.get("messages")), text(told.get("last_id"))
        if not found or last is None or last == self._last:
            return 0
        self._last = last
        self._came += [
            each for each in found if each.get("type") != _JOINED and _key(each) not in self._own
        ]
        return len(found)


class LeavingChannel(PlainChannel):
    """The same for who joined: the room is left with the session."""

    async def close(self, reason: str) -> None:
        """See `Channel.close`."""
        await super().close(reason)
        await self._place.close()


def _key(frame: Json) -> tuple[str, str]:
    return str(frame.get("type")), str(frame.get("message_id"))
