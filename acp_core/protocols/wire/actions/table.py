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
    "Send a text, a file or data; a peer that is away gets it when it returns.",
    f"{_ACTS}:sending",
    (
        Field("peer", "To", f"Send it to this peer, by its id or name (the only one), or to {ITSELF!r}.",
              Kind.CHOICE, flag="--to", metavar="PEER"),
        Field("text", "Text", "Say this.", Kind.LINES, position=True, metavar="TEXT"),
        Field("file", "File", "Attach the file at this http:// or https:// address.", Kind.LIST,
              metavar="URL"),
        Field("data", "Data", "Attach this JSON.", Kind.LIST, metavar="JSON"),
        Field("context", "Context", "Name the conversation that it belongs to.", metavar="ID"),
        Field("new_task", "As a task", "Make a task of it, whose state is told back.", Kind.FLAG,
              aliases=("--task",)),
        Field("task", "Task", "Name the task that it belongs to.", metavar="ID", form=False),
        Field("id", "Id", "Give it this id: sent again, it arrives once.", metavar="ID", form=False),
        Field("sender", "From", "Say it to the agent itself, in this name.", flag="--from",
              metavar="NAME", form=False),
        Field("wait", "Wait", "Wait so long for a reply, or, with --new-task, for the end of the task.",
              Kind.DURATION, form=False),
        TOKEN,
        CA,
    ),
    Intent.MESSAGE,
    command="wire send",
    examples=('acp wire send A "Summarize the report" --new-task',),
    exits=(*ASKED[:1], (1, "refused; or what --wait waits for failed, needs input or is not over"), *ASKED[2:]),
    place=WHOM,
    run=f"{_RUN}:send",
)  # fmt: skip
ANSWERING = ActionSpec(
    ANSWER,
    "Answer a task",
    "Give a task the input for which it waits.",
    f"{_ACTS}:answering",
    (
        TASK,
        Field("text", "Answer", "Answer this.", Kind.LINES, required=True, position=True),
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
    "Cancel a task: nothing can follow then.",
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
    "Drop a peer: its key, its connection, and what waits for it.",
    f"{_ACTS}:forgetting",
    (
        Field(
            "peer",
            "Peer",
            "Name the peer by its id, or by its name.",
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
    "Move what waits",
    "Let another peer get what waits for one that is away: the same agent, back with a new link.",
    f"{_ACTS}:moving",
    (
        Field("peer", "From", "Name the peer that is away.", Kind.CHOICE, required=True,
              position=True, metavar="PEER"),
        Field("to", "To", "Name the peer that it is now.", Kind.CHOICE, required=True,
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
    "List the agents of yours that run here.",
    f"{_QUERIES}:agents",
    (),
    "wire agents",
    examples=("acp wire agents",),
)
OWNERS_TOKEN = QuerySpec(
    "token",
    "Print the owner's token of an agent of yours that runs: who shows it can do everything with it.",
    f"{_QUERIES}:token",
    (WHOM._replace(help="Name the agent."),),
    "wire token",
    examples=("acp wire token A",),
    exits=ASKED,
)
DISCOVER = QuerySpec(
    "discover",
    "List the agents that say on the local network that they are there.",
    fields=(
        Field("seconds", "How long", "Listen so long; each agent says it every 30 seconds.",
              Kind.DURATION, default=35.0),
        Field("interface", "Interface", "Listen at the interface of this address.",
              metavar="ADDRESS"),
    ),
    command="wire discover",
    examples=("acp wire discover --seconds 35",),
    run=f"{_QUERIES}:discover",
)  # fmt: skip
STREAM = QuerySpec(
    "stream",
    "Print a line for everything that happens, until interrupted.",
    fields=(
        WHOM,
        Field("since", "Since", "Begin after this place of the log.", Kind.NUMBER),
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
    (WHOM, Field("status", "Status", "List only those in this state."), TOKEN, CA),
    "wire tasks",
    examples=("acp wire tasks A",),
    exits=ASKED,
)
PEERS = QuerySpec(
    "peers",
    "List the peers that an agent knows.",
    f"{_QUERIES}:peers",
    (WHOM, TOKEN, CA),
    "wire peers",
    examples=("acp wire peers A",),
    exits=ASKED,
)
CARD = QuerySpec(
    "card",
    "Print an agent's card: what it says of itself.",
    f"{_QUERIES}:card",
    (WHOM, TOKEN, CA),
    "wire card",
    examples=("acp wire card A",),
    exits=ASKED,
)
SKILLS = QuerySpec(
    "skills",
    "List what an agent can do.",
    f"{_QUERIES}:skills",
    (WHOM, Field("query", "Query", "List only what fits this.", position=True), TOKEN, CA),
    "wire skills",
    examples=("acp wire skills A",),
    exits=ASKED,
)

COMMANDS = Commands(
    "wire",
    "Ask an agent that runs (ACP v0.8), here or elsewhere.",
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
