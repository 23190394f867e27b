"""The tools of a network agent's program: to see the agent's peers, and to send them messages."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action
from acp_core.model.action_spec import PLACE, Answer, By
from acp_core.model.errors import Refused
from acp_core.model.text import clean_name
from acp_core.protocols.kit.binding import Context, Location
from acp_core.protocols.kit.tools import WHO
from acp_core.protocols.kit.values import Values, completed
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.wire import queries
from acp_core.protocols.wire.acts import offered, table
from acp_core.protocols.wire.acts import sending as acts_sending
from acp_core.protocols.wire.network.client import Client

_HERE = "acp_core.protocols.wire.acts.tools"

_TOLD = frozenset({"peer", "text", "context", "new_task"})

PEERS = table.PEERS._replace(
    sentence="List your peers: their ids, names, and whether they are connected.",
    answer=f"{_HERE}:peers",
    fields=(PLACE, WHO),
    by=By.PARTICIPANT,
)

SEND_MESSAGE = table.SENDING._replace(
    name="send_message",
    sentence="Send a text to one of your peers; it is delivered when an absent peer returns.",
    bind=f"{_HERE}:sending",
    fields=(WHO, *(each for each in table.SENDING.fields if each.name in _TOLD)),
    by=By.PARTICIPANT,
    run="",
)

TOOLS = (PEERS, SEND_MESSAGE)


def peers(values: Values) -> Answer:
    """The peers of the agent."""
    reach = offered.open_agent(Location(values.folder)).reach
    return queries.peers(Values(agent=reach.url, token=reach.token, ca=None))


def sending(context: Context, now: datetime) -> Action:
    """Send a text to a peer, as the agent itself."""
    opened = offered.open_agent(context)
    own = opened.owned
    met = tuple(each.id for each in own.peers if each.met)

    async def work(client: Client, values: Values) -> str:
        if values.participant != clean_name(own.name, 64):
            raise Refused(f"{safe(values.participant)} is a peer: you can only send as {own.name}")
        given = {name: getattr(values, name) for name in _TOLD}
        sent = await acts_sending.send_message(client, completed(table.SENDING.fields, given))
        return f"{'Waiting for its receiver' if sent.queued else 'Sent'}: {sent.message_id}."

    return offered.through(
        SEND_MESSAGE,
        opened,
        lambda values: acts_sending.sending(values, values.peer),
        work,
        {"peer": {"choices": met, "default": met[0] if len(met) == 1 else None}},
    )
