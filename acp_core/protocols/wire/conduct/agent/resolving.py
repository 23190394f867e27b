"""From an agent's HTTP address to the link under which its peers reach it."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx

from acp_core.protocols.wire.network import links
from acp_core.protocols.wire.schema import Refusal, invalid
from acp_core.protocols.wire.schema import agent_card as cards
from acp_core.protocols.wire.schema.decode import decode_object

SECONDS = 10.0
LARGEST = 1 << 20  # bytes of an answer
CARD = "/.well-known/acp.json"


async def resolve(text: str) -> links.AnyLink:
    """The link that ``text`` spells, or that stands in the card of the agent at an HTTP address.

    An HTTP address with a token is a link itself, for a connection over HTTP alone. The port and the token are taken from the card; the host stays the one that was asked for.

    Raises:
        Refusal: it is no link, or there is no card with one.
    """
    try:
        if links.has_token(text) or not text.startswith(("http://", "https://")):
            return links.parse_any(text)
        told = await _card(text)
        link = links.parse_any(str(told.link))
    except links.LinkError as error:
        raise invalid(str(error)) from None
    if isinstance(link, links.RelayLink):
        return link
    return link._replace(host=urlsplit(text).hostname or link.host)


async def _card(address: str) -> cards.PeerCard:
    data = bytearray()
    try:
        parts = urlsplit(address)
        if parts.username is not None or parts.query or not links.is_host(parts.hostname or ""):
            raise links.LinkError("an agent's address is http://HOST:PORT")
        async with (
            httpx.AsyncClient(timeout=SECONDS, trust_env=False) as http,
            http.stream("GET", address.rstrip("/") + CARD) as answer,
        ):
            async for chunk in answer.aiter_bytes():
                data += chunk
                if len(data) > LARGEST:
                    raise links.LinkError("the card at this address is too large")
        content = decode_object(bytes(data)) if answer.status_code == 200 else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, Refusal) as error:
        if isinstance(error, links.LinkError):
            raise
        raise links.LinkError(
            f"no card can be read at this address ({error}): join by the acp:// link"
        ) from None
    if answer.status_code != 200:
        raise links.LinkError(
            f"this address shows no card (status {answer.status_code}): join by the acp:// link"
        )
    return cards.read(content)
