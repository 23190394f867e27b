"""What runs until it is interrupted: an agent, a bridge, a relay."""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind
from acp_core.protocols.kit import options
from acp_core.protocols.wire.actions import table_fields as given
from acp_core.protocols.wire.network import secrets

IDENTITY = "~/.acp/identity.json"
_ENDS = ((0, "ended as it was asked to"), (2, "it cannot be started: one line says why"))

AGENT = ActionSpec(
    "agent",
    "Run an agent",
    "Run an agent that others reach over the network (ACP v0.8), until interrupted.",
    fields=(
        Field("config", "Configuration", "Take options by their names from this TOML file; those on "
              "the command line count more.", Kind.FILE),
        Field("name", "Name", "Call it so; its state is kept under that name.", metavar="NAME"),
        Field("description", "Description", "Say in a sentence what it does."),
        Field("skills", "Skills", "Say what it can do.", metavar="A,B"),
        given.HOST,
        given.PORT,
        given.HTTP_PORT,
        given.ALLOW_HOST,
        *given.TLS,
        given.CA,
        Field("open_loopback", "Open to this machine", "Let every account of this machine do what its "
              "owner can, without a token: for programs that have none to show.", Kind.FLAG),
        Field("webhook_host", "Hosts of webhooks", "Let events be posted to this host, other than "
              "this machine.", Kind.LIST, metavar="HOST"),
        Field("join", "Join", "Keep a connection to the agent behind this link.", Kind.LIST,
              metavar="LINK"),
        Field("tcp_port", "Port for TCP", "Take peers over TCP at this port, too (0: any).",
              Kind.NUMBER, least=0, most=65535),
        Field("relay", "Relay", "Be reached by this relay, too (`acp relay` runs one).",
              metavar="URL", optional=True),
        *secrets.fields("relay_key", secrets.RELAY_KEY, "Show this key to the relay."),
        Field("advertise_mdns", "Advertise", "Say on the local network that it is there, without its "
              "token.", Kind.FLAG),
        Field("advertise_token", "Advertise its token", "Say it with its token, so that everybody "
              "there can connect.", Kind.FLAG),
        Field("mdns_interface", "Interface", "Use the interface of this address for that.",
              metavar="ADDRESS"),
        Field("stdio", "Standard input and output", "Take whoever starts it as a peer, over standard "
              "input and output.", Kind.FLAG),
        Field("run_peer", "Peers to run", "Run this program as a peer, over its standard input and "
              "output.", Kind.LIST, metavar="COMMAND"),
        *secrets.fields("secret", secrets.SECRET, "Sign with a secret that all peers share."),
        Field("identity", "Identity", f"Sign with a key of its own (in {IDENTITY}).",
              metavar="PATH", bare=IDENTITY, optional=True),
        Field("on_message", "Program that answers", "Answer messages and tasks by this program: a "
              "preset (claude, codex, ...) or a command; never through a shell.",
              metavar="COMMAND", optional=True),
        Field("workdir", "Working folder", "Run that program in this folder (here).", Kind.FOLDER,
              optional=True),
        options.MODEL,
        options.JOBS._replace(help="Limit how many answers are worked on at the same time.",
                              default=4, least=1, most=999_999, aliases=("--at-once",)),
        options.TIMEOUT._replace(help="Limit of one answer.", default=1800.0, least=1,
                                 most=999_999, aliases=("--time-limit",)),
        Field("sync", "Durability", "Let what is acknowledged survive a loss of power (full), or only "
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
    "Serve the collaboration in a folder as an ACP agent, until interrupted: whoever has the link sees "
    "it live (acp LINK), and can do nothing that --allow does not name.",
    fields=(
        Field("name", "Name", "Call the agent so (after the folder).", metavar="NAME"),
        given.HOST._replace(help="Listen at this address; the usual one is reached from this machine "
                            "alone, elsewhere the link's token is asked for."),
        given.PORT,
        given.HTTP_PORT,
        given.ALLOW_HOST,
        *given.TLS,
        Field("allow", "Allowed actions", "Let others do this (`acp act FOLDER` lists what there is).",
              Kind.LIST, metavar="ACTION"),
    ),
    intent=Intent.START,
    command="bridge",
    examples=("acp bridge checkout", "acp bridge checkout --allow block"),
    exits=_ENDS,
    place=options.FOLDER._replace(default=None, required=True),
    dry_run=False,
    run="acp_core.protocols.wire.bridge.command:run",
)  # fmt: skip
RELAY = ActionSpec(
    "relay",
    "Run a relay",
    "Let agents meet that cannot reach each other (ACP v0.8, binding C), until interrupted. Nothing is "
    "kept: what is on its way waits at its sender.",
    fields=(
        given.HOST,
        given.PORT._replace(help="Listen at this port (0: any).", default=7700),
        *given.TLS,
        *secrets.fields("key", secrets.RELAY_KEY, "Ask who opens a room for this key."),
    ),
    intent=Intent.START,
    command="relay",
    examples=("acp relay", "acp relay --port 7700 --key-file relay.key"),
    exits=_ENDS,
    place=None,
    dry_run=False,
    run="acp_core.protocols.wire.network.relay.command:run",
)  # fmt: skip
