"""From an agent's HTTP address to the link under which its peers reach it."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import httpx

from acp_core.files.decode import text
from acp_core.protocols.wire.conduct.agent import place
from acp_core.protocols.wire.network import links, trust
from acp_core.protocols.wire.schema import Json, Refusal, invalid
from acp_core.protocols.wire.schema import agent_card as cards
from acp_core.protocols.wire.schema.decode import decode_object

SECONDS = 10.0
LARGEST = 1 << 20  # bytes of an answer
CARD, LINK = "/.well-known/acp.json", "/link"
_NOBODY = "no agent shows a card at this address: join by the acp:// link"
_NO_LINK = "the agent at this address shows no link: ask its owner for the acp:// link"


async def resolve(text: str) -> links.AnyLink:
    """The link that ``text`` spells, or that the agent at an HTTP address shows.

    An HTTP address with a token is a link itself, for a connection over HTTP alone. The port and
    the token are taken from the card, or from ``/link`` where the card has none, as with older
    agents; the host stays the one that was asked for. An agent of this user is shown its owner's
    token. What else is at an address is not told: nobody shall learn that by asking for it here.

    Raises:
        Refusal: it is no link, or nobody there shows one.
    """
    try:
        if links.has_token(text) or not text.startswith(("http://", "https://")):
            return links.parse_any(text)
        link = links.parse_any(await _link_at(text.rstrip("/")))
    except links.LinkError as error:
        raise invalid(str(error)) from None
    if isinstance(link, links.RelayLink):
        return link
    return link._replace(host=urlsplit(text).hostname or link.host)


async def _link_at(address: str) -> str:
    _check(address)
    own = await asyncio.to_thread(place.at, address)
    url = own.http_url if own else address
    headers = {"authorization": f"Bearer {own.owner_token}"} if own else {}
    verify = trust.context(url, own.tls_cert if own else "")
    async with httpx.AsyncClient(
        timeout=SECONDS, trust_env=False, headers=headers, verify=verify
    ) as http:
        card = await _object(http, url + CARD)
        told = cards.read(card)
        if told.name == cards.UNNAMED:
            raise links.LinkError(_NOBODY)
        link = told.link or text((await _object(http, url + LINK)).get("link"))
    if not link:
        raise links.LinkError(_NO_LINK)
    return link


def _check(address: str) -> None:
    try:
        parts = urlsplit(address)
        fine = parts.username is None and not parts.query and links.is_host(parts.hostname or "")
        _ = parts.port
    except ValueError:
        fine = False
    if not fine:
        raise links.LinkError("an agent's address is http://HOST:PORT")


async def _object(http: httpx.AsyncClient, url: str) -> Json:
    """The JSON object at an address; an empty one where there is none."""
    data = bytearray()
    try:
        async with http.stream("GET", url) as answer:
            async for chunk in answer.aiter_bytes():
                data += chunk
                if len(data) > LARGEST:
                    return {}
        return decode_object(bytes(data)) if answer.status_code == 200 else {}
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, Refusal):
        return {}
