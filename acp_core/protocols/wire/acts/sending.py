"""A message to be sent: its parts, whom it is for, and how it is sent. For forms and the command."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from acp_core.model.action import Preview
from acp_core.model.errors import Refused
from acp_core.model.format import count
from acp_core.protocols.kit.values import Values
from acp_core.protocols.wire.network.links import LinkError, has_token, parse_any
from acp_core.protocols.wire.schema import untrusted_json
from acp_core.protocols.wire.schema.basics import ITSELF, MAX_ID, Json
from acp_core.protocols.wire.schema.bodies import data_part, file_at, is_web_address, text_part
from acp_core.protocols.wire.schema.people import PERSON, PeerSeen

if TYPE_CHECKING:
    from acp_core.protocols.wire.network.client import Client, Receipt

_AS_SAID = -1.0


async def send_message(client: Client, values: Values, *, wait: float | None = _AS_SAID) -> Receipt:
    """Send it, and wait for the reply where that is wanted.

    Args:
        client: asks the agent that sends.
        values: those of the act.
        wait: seconds to wait for a reply; None: not at all. By default what ``values`` say.

    Raises:
        Refused: there is nothing to send, or it cannot be sent.
        WireError: the agent does not take it.
    """
    content, itself = message_parts(values), values.peer == ITSELF
    return await client.send(
        content,
        to=None if itself else await resolve_peer(client, values.peer),
        message_id=values.id or None,
        context_id=values.context or None,
        task_id=values.task or None,
        sender=values.sender or (PERSON if itself else None),
        create_task=values.new_task,
        wait=values.wait if wait is _AS_SAID else wait,
    )


def message_parts(values: Values) -> list[Json]:
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


async def resolve_peer(client: Client, named: str) -> str | None:
    """The id of the peer that is meant, which may be called by its name where only one has it.

    Raises:
        Refused: several have that name.
    """
    if not named:
        return None
    known = [untrusted_json.read_as(PeerSeen, peer) for peer in await client.peers()]
    fitting = [peer.id for peer in known if peer.name == named]
    if not fitting or any(peer.id == named for peer in known):
        return named
    if len(fitting) > 1:
        raise Refused(f"{named} is ambiguous ({', '.join(fitting)}): give the id")
    return fitting[0]


_WORDS = {"text": "a text", "file": "a file", "data": "data"}


def sending(values: Values, name: str) -> Preview:
    """A message to whoever is called so.

    Raises:
        Refused: there is nothing to send, or it cannot be sent.
    """
    words = [_WORDS[str(part["type"])] for part in message_parts(values)]
    what = " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    return Preview(f"Send {what} to {name}.")


def answering(values: Values, question: str = "") -> Preview:
    """An answer to a task."""
    notes = (question,) if question else ()
    return Preview(f"Give {values.task} the input it is waiting for.", notes=notes)


def canceling(values: Values, about: str = "") -> Preview:
    """The end of a task."""
    sentence = f"Cancel {values.task}, here and at the peer that shares it."
    return Preview(sentence, notes=(about,) if about else ())


def connecting(values: Values) -> Preview:
    """A connection that is kept; tokens are left out.

    Raises:
        Refused: the link is none.
    """
    text = values.link.strip()
    try:
        if text.startswith(("http://", "https://")) and not has_token(text):
            if not is_web_address(text):
                raise Refused("an agent's address is http://HOST:PORT")
            return Preview(f"Keep a connection to the agent whose card is at {text}.")
        return Preview(f"Keep a connection to {parse_any(text).safe}.")
    except LinkError as error:
        raise Refused(str(error)) from None


def moving(name: str, to: str, waiting: int = 0) -> Preview:
    """Another receiver of what waits for a peer."""
    what = count(waiting, "message") if waiting else "what waits"
    doubt = f"acp cannot verify that {to} is the same agent; it will read the messages for {name}"
    return Preview(f"Send {to} {what} for {name}, and its open tasks.", warnings=(doubt,))


def forgetting(name: str, waiting: int = 0) -> Preview:
    """The end of what is known of a peer, and of the messages that wait for it."""
    lost = f"{count(waiting, 'message')} it has not acknowledged will be lost"
    sentence = f"Forget {name} and close the connection."
    return Preview(sentence, warnings=(lost,) if waiting else ())
