"""``acp wire discover``: which agents say on the local network that they are there."""

from __future__ import annotations

import asyncio
import time

from acp_core.model.errors import CommandError
from acp_core.protocols.wire.network.lan.datagram import Heard, Neighbour
from acp_core.protocols.wire.network.lan.network import Listener, NoMulticast, listening
from acp_core.protocols.wire.schema import Json


def discover(seconds: float, interface: str, said: bool) -> list[Json]:
    """Listen for some seconds; what was heard, as ``GET /discover`` tells it.

    Args:
        said: print a line for each agent at once.

    Raises:
        CommandError: the network cannot be used.
    """
    heard = Heard()

    async def work() -> None:
        listener = Listener(heard, _say if said else None)
        async with listening(listener, interface):
            await asyncio.sleep(seconds)

    try:
        asyncio.run(work())
    except NoMulticast as error:
        raise CommandError(str(error)) from None
    return heard.told(time.time())


def _say(found: Neighbour) -> None:
    from acp_core.cli.output import say
    from acp_core.files.text import clean_line

    where = found.link or f"{found.told()['http_url']} (it keeps its token to itself)"
    say(clean_line(f"{found.said.name}  {where}", limit=1000), now=True)
