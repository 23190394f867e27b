"""What would be done through an agent, in words; from what is given alone, whoever asks."""

from __future__ import annotations

from acp_core.model.action import Preview
from acp_core.model.errors import Refused
from acp_core.model.format import count
from acp_core.protocols.kit.values import Values
from acp_core.protocols.wire.actions import message
from acp_core.protocols.wire.network.links import LinkError, has_token, parse_any
from acp_core.protocols.wire.schema.parts import is_web_address

_WORDS = {"text": "a text", "file": "a file", "data": "data"}


def sending(values: Values, name: str) -> Preview:
    """A message to whoever is called so.

    Raises:
        Refused: there is nothing to send, or it cannot be sent.
    """
    words = [_WORDS[str(part["type"])] for part in message.parts(values)]
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
