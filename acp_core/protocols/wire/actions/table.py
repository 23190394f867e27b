"""Every act and query about agents on the network: what forms offer, and the commands made of them."""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.wire.actions.names import (
    ANSWER,
    CANCEL,
    CONNECT,
    FORGET,
    ITSELF,
    MOVE,
    SCHEMA,
    SEND,
)
from acp_core.protocols.wire.actions.table_fields import ASKED, CA, TASK, TOKEN, WHOM
from acp_core.protocols.wire.actions.table_running import AGENT, BRIDGE, RELAY

_ACTS = "acp_core.protocols.wire.actions.steering"
_RUN = "acp_core.protocols.wire.actions.commands"
_QUERIES = "acp_core.protocols.wire.queries"

SENDING = ActionSpec(
    SEND,
    "Send a message",
    "Send a text, a file or data; acp delivers it when an absent peer returns.",
    f"{_ACTS}:sending",
    (
        Field("peer", "To", f"The receiving peer, by id or name [default: the only one], or {ITSELF!r}.",
              Kind.CHOICE, flag="--to", metavar="PEER"),
        Field("text", "Text", "The text.", Kind.LINES, position=True, metavar="TEXT"),
        Field("file", "File", "An http:// or https:// address of a file to attach.", Kind.LIST,
              metavar="URL"),
        Field("data", "Data", "JSON to attach.", Kind.LIST, metavar="JSON"),
        Field("context", "Context", "The conversation of the message.", metavar="ID"),
        Field("new_task", "Create a task", "Create a task and follow its state.", Kind.FLAG,
              aliases=("--task",)),
        Field("task", "Task", "The task of the message.", metavar="ID", form=False),
        Field("id", "Id", "The message's id; a repeated id is delivered once.", metavar="ID", form=False),
        Field("sender", "From", "Message the agent itself, under this name.", flag="--from",
              metavar="NAME", form=False),
        Field("wait", "Wait", "Time to wait for a reply, or, with --new-task, for the end of the task.",
              Kind.DURATION, form=False),
        TOKEN,
        CA,
    ),
    Intent.MESSAGE,
    command="wire send",
    examples=('acp wire send A "Summarize the report" --new-task',),
    exits=(*ASKED[:1], (1, "refused; or with --wait: failed, needs input or is not finished"), *ASKED[2:]),
    place=WHOM,
    run=f"{_RUN}:send",
)  # fmt: skip
ANSWERING = ActionSpec(
    ANSWER,
    "Answer a task",
    "Give a task the input it is waiting for.",
    f"{_ACTS}:answering",
    (
        TASK,
        Field("text", "Answer", "The answer.", Kind.LINES, required=True, position=True),
        TOKEN,
        CA,
    ),
    Intent.ANSWER,
    command="wire answer",
    examples=('acp wire answer A TASK "The one of May"',),
    exits=ASKED,
    place=WHOM,
    run=f"{_RUN}:answer",
)
CANCELING = ActionSpec(
    CANCEL,
    "Cancel a task",
    "Cancel a task for good.",
    f"{_ACTS}:canceling",
    (TASK, TOKEN, CA),
    Intent.STOP,
    risky=True,
    command="wire cancel",
    examples=("acp wire cancel A TASK",),
    exits=ASKED,
    place=WHOM,
    run=f"{_RUN}:cancel",
)
CONNECTING = ActionSpec(
    CONNECT,
    "Connect a peer",
    "Keep a connection to the agent behind a link.",
    f"{_ACTS}:connecting",
    (
        Field(
            "link",
            "Link",
            "acp://HOST:PORT/TOKEN, tcp://, acp+wss:// (a relay), or the agent's http:// address.",
            required=True,
            position=True,
        ),
        TOKEN,
        CA,
    ),
    command="wire connect",
    examples=("acp wire connect A acp://127.0.0.1:7802/TOKEN",),
    exits=ASKED,
    place=WHOM,
    run=f"{_RUN}:connect",
)
FORGETTING = ActionSpec(
    FORGET,
    "Forget a peer",
    "Remove a peer with its key, connection and waiting messages.",
    f"{_ACTS}:forgetting",
    (
        Field(
            "peer",
            "Peer",
            "The peer's id or name.",
            Kind.CHOICE,
            required=True,
            position=True,
            metavar="PEER",
        ),
        TOKEN,
        CA,
    ),
    risky=True,
    command="wire forget",
    examples=("acp wire forget A peer_001",),
    exits=ASKED,
    place=WHOM,
    run=f"{_RUN}:forget",
)
MOVING = ActionSpec(
    MOVE,
    "Move waiting messages",
    "Move the waiting messages of an absent peer to another: the same agent with a new link.",
    f"{_ACTS}:moving",
    (
        Field("peer", "From", "The peer that does not return.", Kind.CHOICE, required=True,
              position=True, metavar="PEER"),
        Field("to", "To", "The peer that replaces it.", Kind.CHOICE, required=True,
              position=True, metavar="PEER"),
        TOKEN,
        CA,
    ),
    risky=True,
    command="wire move",
    examples=("acp wire move A peer_001 peer_002",),
    exits=ASKED,
    place=WHOM,
    run=f"{_RUN}:move",
)  # fmt: skip
OFFERED = (ANSWERING, SENDING, CANCELING, CONNECTING, MOVING, FORGETTING)
"""What a person can do through an agent that runs, most wanted first."""

AGENTS = QuerySpec(
    "agents",
    "List your running agents on this machine.",
    f"{_QUERIES}:agents",
    (),
    "wire agents",
    examples=("acp wire agents",),
)
OWNERS_TOKEN = QuerySpec(
    "token",
    "Print the owner's token of one of your running agents. The token gives full control.",
    f"{_QUERIES}:token",
    (WHOM._replace(help="The agent's name."),),
    "wire token",
    examples=("acp wire token A",),
    exits=ASKED,
)
DISCOVER = QuerySpec(
    "discover",
    "List the agents that announce themselves on the local network.",
    fields=(
        Field("seconds", "How long", "How long to listen; agents announce themselves every 30 seconds.",
              Kind.DURATION, default=35.0),
        Field("interface", "Interface", "Address of the network interface to listen on.",
              metavar="ADDRESS"),
    ),
    command="wire discover",
    examples=("acp wire discover --seconds 35",),
    run=f"{_QUERIES}:discover",
)  # fmt: skip
STREAM = QuerySpec(
    "stream",
    "Print one line per event until interrupted.",
    fields=(
        WHOM,
        Field("since", "Since", "Start after this position in the log.", Kind.NUMBER),
        TOKEN,
        CA,
    ),
    command="wire stream",
    examples=("acp wire stream A",),
    exits=ASKED,
    run=f"{_QUERIES}:stream",
)
TASKS = QuerySpec(
    "tasks",
    "List an agent's tasks.",
    f"{_QUERIES}:tasks",
    (WHOM, Field("status", "Status", "List only tasks in this state."), TOKEN, CA),
    "wire tasks",
    examples=("acp wire tasks A",),
    exits=ASKED,
)
PEERS = QuerySpec(
    "peers",
    "List an agent's peers.",
    f"{_QUERIES}:peers",
    (WHOM, TOKEN, CA),
    "wire peers",
    examples=("acp wire peers A",),
    exits=ASKED,
)
CARD = QuerySpec(
    "card",
    "Print an agent's card.",
    f"{_QUERIES}:card",
    (WHOM, TOKEN, CA),
    "wire card",
    examples=("acp wire card A",),
    exits=ASKED,
)
SKILLS = QuerySpec(
    "skills",
    "List an agent's skills.",
    f"{_QUERIES}:skills",
    (WHOM, Field("query", "Query", "List only matching skills.", position=True), TOKEN, CA),
    "wire skills",
    examples=("acp wire skills A",),
    exits=ASKED,
)

COMMANDS = Commands(
    "wire",
    "Talk to a running agent (ACP v0.8), here or elsewhere.",
    (
        AGENTS,
        OWNERS_TOKEN,
        DISCOVER,
        SENDING,
        STREAM,
        TASKS,
        PEERS,
        CONNECTING,
        MOVING,
        FORGETTING,
        CARD,
        SKILLS,
        ANSWERING,
        CANCELING,
    ),
    SCHEMA,
)
RUN_AGENT = Commands("agent", AGENT.sentence, (AGENT,), SCHEMA)
RUN_BRIDGE = Commands("bridge", BRIDGE.sentence, (BRIDGE,), SCHEMA)
RUN_RELAY = Commands("relay", RELAY.sentence, (RELAY,), SCHEMA)
MANUAL = {**RUN_AGENT.manual, **RUN_BRIDGE.manual, **RUN_RELAY.manual, **COMMANDS.manual}
"""Examples and exit codes of all of them."""
