"""A message to be sent: its parts, whom it is for, and how it is sent. For forms and the command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from acp_core.model.errors import Refused
from acp_core.protocols.kit.values import Values
from acp_core.protocols.wire.actions.names import ITSELF
from acp_core.protocols.wire.schema import MAX_ID, Json, lenient
from acp_core.protocols.wire.schema.parts import data_part, file_at, is_web_address, text_part
from acp_core.protocols.wire.schema.peers import PeerSeen
from acp_core.protocols.wire.schema.senders import PERSON

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.answers import Receipt
    from acp_core.protocols.wire.network.client import Client

_AS_SAID = -1.0


async def send(client: Client, values: Values, *, wait: float | None = _AS_SAID) -> Receipt:
    """Send it, and wait for the reply where that is wanted.

    Args:
        client: asks the agent that sends.
        values: those of the act.
        wait: seconds to wait for a reply; None: not at all. By default what ``values`` say.

    Raises:
        Refused: there is nothing to send, or it cannot be sent.
        WireError: the agent does not take it.
    """
    content, itself = parts(values), values.peer == ITSELF
    return await client.send(
        content,
        to=None if itself else await peer_id(client, values.peer),
        message_id=values.id or None,
        context_id=values.context or None,
        task_id=values.task or None,
        sender=values.sender or (PERSON if itself else None),
        create_task=values.new_task,
        wait=values.wait if wait is _AS_SAID else wait,
    )


def parts(values: Values) -> list[Json]:
    """The parts of the message.

    Raises:
        Refused: there are none, or they cannot be sent.
    """
    if len(values.context) > MAX_ID:
        raise Refused(f"--context: at most {MAX_ID} characters")
    content = [text_part(values.text)] if values.text else []
    content += [_file(each) for each in values.file] + [_data(each) for each in values.data]
    if not content:
        raise Refused("nothing to send: give a text, --file or --data")
    return content


def _file(url: str) -> Json:
    if not is_web_address(url):
        raise Refused("--file: must be an http:// or https:// address")
    return file_at(url)


def _data(text: str) -> Json:
    try:
        return data_part(json.loads(text))
    except (ValueError, RecursionError):
        raise Refused(f"--data: not JSON: {text[:100]}") from None


async def peer_id(client: Client, named: str) -> str | None:
    """The id of the peer that is meant, which may be called by its name where only one has it.

    Raises:
        Refused: several have that name.
    """
    if not named:
        return None
    known = [lenient.read(PeerSeen, peer) for peer in await client.peers()]
    fitting = [peer.id for peer in known if peer.name == named]
    if not fitting or any(peer.id == named for peer in known):
        return named
    if len(fitting) > 1:
        raise Refused(f"{named} is ambiguous ({', '.join(fitting)}): give the id")
    return fitting[0]
