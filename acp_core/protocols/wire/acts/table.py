"""Every act and query about agents on the network: what forms offer, and the commands made of them."""

from __future__ import annotations

from acp_core.model.action_field import PRESETS
from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.kit import command_line
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.wire.network import links
from acp_core.protocols.wire.network.links import TOKEN_VARIABLE, warning_of
from acp_core.protocols.wire.schema.basics import (
    ANSWER,
    CANCEL,
    CONNECT,
    FORGET,
    ITSELF,
    MOVE,
    SCHEMA,
    SEND,
)

ASKED = (
    (0, "done"),
    (1, "the agent refused; the error says why"),
    (2, "invalid input, or the agent cannot be reached; the error says why"),
    (130, "interrupted"),
)
"""Exit codes of a command that asks an agent."""

WHOM = Field(
    "agent", "Agent", "The agent: its name on this machine, http://HOST:PORT, or acp://HOST:PORT/TOKEN.",
    required=True, position=True, form=False,
)  # fmt: skip

TOKEN = Field(
    "token", "Token",
    f"The owner's token, if the agent requires one. {warning_of(TOKEN_VARIABLE)}",
    form=False,
)  # fmt: skip

CA = Field(
    "ca", "Authority", "Also trust the certificates in this file.", Kind.FILE,
    form=False, optional=True,
)  # fmt: skip

TLS = (
    Field("tls_cert", "Certificate", "Certificate file for HTTPS.",
          Kind.FILE, optional=True),
    Field("tls_key", "Its key", "Key file of the certificate.", Kind.FILE,
          optional=True),
)  # fmt: skip

TASK = Field(
    "task", "Task", "The task's id.", Kind.CHOICE, required=True, position=True,
    metavar="TASK",
)  # fmt: skip

HOST = Field(
    "host", "Host", "Address to listen on; the default is reachable only from this machine.",
    default="127.0.0.1",
)  # fmt: skip

PORT = Field(
    "port", "Port", "Port for peers (0: any free port) [default: the last one, or 7801].",
    Kind.NUMBER, least=0, most=65535,
)  # fmt: skip

HTTP_PORT = Field(
    "http_port", "Port for HTTP", "Port for HTTP (0: any free port) [default: 100 above the other].",
    Kind.NUMBER, least=0, most=65535,
)  # fmt: skip

ALLOW_HOST = Field(
    "allow_host", "Further names", "Further host name to accept.", Kind.LIST,
    metavar="NAME",
)  # fmt: skip

IDENTITY = "~/.acp/identity.json"

_ENDS = ((0, "ended on request"), (2, "it cannot start; the error says why"))

AGENT = ActionSpec(
    "agent",
    "Run an agent",
    "Run a network agent (ACP v0.8) until interrupted.",
    fields=(
        Field("config", "Configuration", "TOML file with options by name; options on "
              "the command line have precedence.", Kind.FILE),
        Field("name", "Name", "The agent's name; its state is stored under it.", metavar="NAME"),
        Field("description", "Description", "One sentence about what the agent does."),
        Field("skills", "Skills", "The agent's skills.", metavar="A,B"),
        HOST,
        PORT,
        HTTP_PORT,
        ALLOW_HOST,
        *TLS,
        CA,
        Field("open_loopback", "Open to this machine", "Let every account of this machine do what its "
              "owner can, without a token: for programs that cannot send one.", Kind.FLAG),
        Field("webhook_host", "Hosts of webhooks", "Allow webhooks to this host, besides "
              "this machine.", Kind.LIST, metavar="HOST"),
        Field("join", "Join", "Link of an agent to stay connected to.", Kind.LIST,
              metavar="LINK"),
        Field("tcp_port", "Port for TCP", "Also accept peers over TCP on this port (0: any).",
              Kind.NUMBER, least=0, most=65535),
        Field("relay", "Relay", "Also accept peers through this relay (see `acp relay`).",
              metavar="URL", optional=True),
        *links.secret_fields("relay_key", links.RELAY_KEY, "The key for the relay."),
        Field("advertise_mdns", "Advertise", "Announce the agent on the local network, without its "
              "token.", Kind.FLAG),
        Field("advertise_token", "Advertise its token", "Announce the token, too, so that anyone "
              "on the network can connect.", Kind.FLAG),
        Field("mdns_interface", "Interface", "Address of the network interface for announcements.",
              metavar="ADDRESS"),
        Field("stdio", "Standard input and output", "Accept the parent process as a peer, over standard "
              "input and output.", Kind.FLAG),
        Field("run_peer", "Peers to run", "Program to run as a peer, over its standard input and "
              "output.", Kind.LIST, metavar="COMMAND"),
        *links.secret_fields("secret", links.SECRET, "Shared secret for signing messages."),
        Field("identity", "Identity", f"Sign messages with the agent's own key (in {IDENTITY}).",
              metavar="PATH", bare=IDENTITY, optional=True),
        Field("on_message", "Program that answers", "Answer messages and tasks with this program: a "
              "preset (claude, codex, ...) or a command; never through a shell.",
              metavar="COMMAND", optional=True, suggests=PRESETS),
        Field("workdir", "Working folder", "Working folder of that program [default: here].", Kind.FOLDER,
              optional=True),
        command_line.MODEL,
        command_line.JOBS._replace(help="Maximum number of answers in progress at the same time.",
                              default=4, least=1, most=999_999, aliases=("--at-once",)),
        command_line.TIMEOUT._replace(help="Time limit per answer.", default=1800.0, least=1,
                                 most=999_999, aliases=("--time-limit",)),
        command_line.PERMISSIONS._replace(help="Decide what a live session of that program may do without asking. "
                                     "Others' messages make it ask.", default="none"),
        command_line.ONCE._replace(help="Start the program for each answer, even if it can hold a live session."),
        Field("sync", "Durability", "Make acknowledged messages survive a power loss (full) or only "
              "a crash (normal).", Kind.CHOICE, ("full", "normal"), default="full"),
    ),
    intent=Intent.START,
    command="agent",
    examples=(
        "acp agent --name A --skills summarize",
        "acp agent --name B --join acp://127.0.0.1:7801/TOKEN",
    ),
    exits=_ENDS,
    place=None,
    dry_run=False,
    run="acp_core.protocols.wire.acts.serve:run_agent",
)  # fmt: skip

BRIDGE = ActionSpec(
    "bridge",
    "Serve a folder",
    "Serve the collaboration in a folder as an ACP agent, until interrupted. Everyone with the link sees "
    "it live (acp LINK), but can only run the actions that --allow names.",
    fields=(
        Field("name", "Name", "The agent's name [default: the folder's name].", metavar="NAME"),
        HOST._replace(help="Address to listen on. Only this machine can reach the default; clients "
                            "elsewhere need the token of the link."),
        PORT,
        HTTP_PORT,
        ALLOW_HOST,
        *TLS,
        Field("allow", "Allowed actions", "Allow others this action (see `acp act FOLDER`).",
              Kind.LIST, metavar="ACTION"),
    ),
    intent=Intent.START,
    command="bridge",
    examples=("acp bridge checkout", "acp bridge checkout --allow block"),
    exits=_ENDS,
    place=command_line.FOLDER._replace(default=None, required=True),
    dry_run=False,
    run="acp_core.protocols.wire.acts.serve:run_bridge",
)  # fmt: skip

RELAY = ActionSpec(
    "relay",
    "Run a relay",
    "Connect agents that cannot reach each other (ACP v0.8, binding C), until interrupted. "
    "The relay stores nothing: undelivered messages wait at their sender.",
    fields=(
        HOST,
        PORT._replace(help="Port to listen on (0: any).", default=7700),
        *TLS,
        *links.secret_fields("key", links.RELAY_KEY, "Key required to open a room."),
    ),
    intent=Intent.START,
    command="relay",
    examples=("acp relay", "acp relay --port 7700 --key-file relay.key"),
    exits=_ENDS,
    place=None,
    dry_run=False,
    run="acp_core.protocols.wire.acts.serve:run_relay",
)  # fmt: skip

_ACTS = "acp_core.protocols.wire.acts.offered"

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
    run=f"{_ACTS}:send",
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
    run=f"{_ACTS}:answer",
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
    run=f"{_ACTS}:cancel",
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
    run=f"{_ACTS}:connect",
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
    run=f"{_ACTS}:forget",
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
    run=f"{_ACTS}:move",
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
