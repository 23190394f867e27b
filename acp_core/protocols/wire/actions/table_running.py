"""What runs until it is interrupted: an agent, a bridge, a relay."""

from __future__ import annotations

from acp_core.model.action_field import PRESETS
from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind
from acp_core.protocols.kit import fast_args
from acp_core.protocols.wire.actions import table_fields as given
from acp_core.protocols.wire.network import secrets

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
        given.HOST,
        given.PORT,
        given.HTTP_PORT,
        given.ALLOW_HOST,
        *given.TLS,
        given.CA,
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
        *secrets.fields("relay_key", secrets.RELAY_KEY, "The key for the relay."),
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
        *secrets.fields("secret", secrets.SECRET, "Shared secret for signing messages."),
        Field("identity", "Identity", f"Sign messages with the agent's own key (in {IDENTITY}).",
              metavar="PATH", bare=IDENTITY, optional=True),
        Field("on_message", "Program that answers", "Answer messages and tasks with this program: a "
              "preset (claude, codex, ...) or a command; never through a shell.",
              metavar="COMMAND", optional=True, suggests=PRESETS),
        Field("workdir", "Working folder", "Working folder of that program [default: here].", Kind.FOLDER,
              optional=True),
        fast_args.MODEL,
        fast_args.JOBS._replace(help="Maximum number of answers in progress at the same time.",
                              default=4, least=1, most=999_999, aliases=("--at-once",)),
        fast_args.TIMEOUT._replace(help="Time limit per answer.", default=1800.0, least=1,
                                 most=999_999, aliases=("--time-limit",)),
        fast_args.PERMISSIONS._replace(help="Decide what a live session of that program may do without asking. "
                                     "Others' messages make it ask.", default="none"),
        fast_args.ONCE._replace(help="Start the program for each answer, even if it can hold a live session."),
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
    run="acp_core.protocols.wire.conduct.agent.command:run",
)  # fmt: skip
BRIDGE = ActionSpec(
    "bridge",
    "Serve a folder",
    "Serve the collaboration in a folder as an ACP agent, until interrupted. Everyone with the link sees "
    "it live (acp LINK), but can only run the actions that --allow names.",
    fields=(
        Field("name", "Name", "The agent's name [default: the folder's name].", metavar="NAME"),
        given.HOST._replace(help="Address to listen on. Only this machine can reach the default; clients "
                            "elsewhere need the token of the link."),
        given.PORT,
        given.HTTP_PORT,
        given.ALLOW_HOST,
        *given.TLS,
        Field("allow", "Allowed actions", "Allow others this action (see `acp act FOLDER`).",
              Kind.LIST, metavar="ACTION"),
    ),
    intent=Intent.START,
    command="bridge",
    examples=("acp bridge checkout", "acp bridge checkout --allow block"),
    exits=_ENDS,
    place=fast_args.FOLDER._replace(default=None, required=True),
    dry_run=False,
    run="acp_core.protocols.wire.bridge.command:run",
)  # fmt: skip
RELAY = ActionSpec(
    "relay",
    "Run a relay",
    "Connect agents that cannot reach each other (ACP v0.8, binding C), until interrupted. "
    "The relay stores nothing: undelivered messages wait at their sender.",
    fields=(
        given.HOST,
        given.PORT._replace(help="Port to listen on (0: any).", default=7700),
        *given.TLS,
        *secrets.fields("key", secrets.RELAY_KEY, "Key required to open a room."),
    ),
    intent=Intent.START,
    command="relay",
    examples=("acp relay", "acp relay --port 7700 --key-file relay.key"),
    exits=_ENDS,
    place=None,
    dry_run=False,
    run="acp_core.protocols.wire.network.relay.command:run",
)  # fmt: skip
