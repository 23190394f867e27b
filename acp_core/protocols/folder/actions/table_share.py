"""The acts by which a collaboration is shared with other hosts, described once."""

from __future__ import annotations

from acp_core.model.action_field import PARTICIPANTS
from acp_core.model.action_spec import PLACE, ActionSpec, Exits, Field, Kind, QuerySpec
from acp_core.protocols.kit import fast_args

_ACTIONS = "acp_core.protocols.folder.actions.sharing"
_EXITS: Exits = (
    (0, "done"),
    (1, "not confirmed"),
    (2, "refused, or invalid input"),
    (6, "the store cannot be reached"),
    (7, "another host acts for the participant"),
    (8, "the store refused it"),
    (9, "the history in the store was rewritten"),
    (130, "interrupted"),
)
VERBS = ("start", "stop", "nudge", "take", "allow", "reject")
"""What a host can be asked for."""
_STORE = Field("url", "Store", "Name the store: a git repository by ssh, https or path, or a PostgreSQL database.",
               required=True, position=True, metavar="URL", owner=True)  # fmt: skip
SHARING = ActionSpec(
    "share",
    "Share",
    "Share a collaboration with other hosts, over a git repository or a PostgreSQL database.",
    f"{_ACTIONS}:sharing",
    (
        _STORE._replace(required=False),
        Field("id", "Name in the store", "Choose the collaboration's name in the store [default: the folder's name].",
              metavar="ID"),
        Field("group", "Group", "Let the accounts of this group on this machine write in the folder, too.",
              metavar="GROUP", asked=False),
        Field("exclusive", "Only acp appends", "Make log and protocol.json read-only for scripts that append "
              "without acp.", Kind.FLAG, asked=False),
        fast_args.YES,
    ),
    risky=True,
    command="share",
    help="acp lists first which files leave this machine: the protocol's documents, README.md, declared "
    "deliverables and attachments. Nothing else does. Without URL, --group and --exclusive change the folder alone.",
    examples=(
        "acp share checkout git@forge.example:team/coordination.git",
        "acp share checkout git+ssh://anna@server/srv/acp.git#checkout",
        "acp share checkout --group agents",
    ),
    exits=_EXITS,
    run=f"{_ACTIONS}:share",
    owner=True,
)  # fmt: skip
JOINING = ActionSpec(
    "join",
    "Join",
    "Bring a shared collaboration into a new folder of this machine.",
    fields=(
        _STORE._replace(help="Name the collaboration: the store's address with #ID."),
        Field("folder", "Folder", "Name the new folder.", Kind.FOLDER, required=True, position=True),
    ),
    command="join",
    help="acp judges everything that the store holds before it writes a file.",
    examples=("acp join git@forge.example:team/coordination.git#checkout checkout",),
    exits=_EXITS,
    place=None,
    dry_run=False,
    run=f"{_ACTIONS}:join",
)  # fmt: skip
_NAME = Field("mine", "Take mine", "Take your text of this document, which was changed on both sides.",
              metavar="NAME", optional=True)  # fmt: skip
SYNCING = ActionSpec(
    "sync",
    "Synchronize",
    "Bring what is new in the store, and publish documents that participants here may change.",
    f"{_ACTIONS}:syncing",
    (
        Field("once", help="Look once, and end.", kind=Kind.FLAG, form=False),
        _NAME,
        _NAME._replace(name="theirs", title="Take theirs", help="Keep the store's text of this document."),
        _NAME._replace(name="merge", title="Merge", help="Merge both texts of this document in your editor.",
                       form=False),
        Field("again", "Append again", "Append the events again that a script appended here without acp, and "
              "that acp moved to .acp/kept.", Kind.FLAG),
        _NAME._replace(name="delete", title="Delete", help="Delete this document on all hosts."),
        _NAME._replace(name="release", title="Give back", help="Let other hosts act for this participant.",
                       metavar="ID", suggests=PARTICIPANTS),
        _NAME._replace(name="take", title="Move here", help="Let this participant act on this host, wherever it "
                       "acts now.", metavar="ID", suggests=PARTICIPANTS),
    ),
    command="sync",
    help="Without an option, acp synchronizes until it is interrupted. Programs that cannot reach the store, "
    "such as agents in a sandbox, append through it.",
    examples=("acp sync checkout", "acp sync checkout --once", "acp sync checkout --mine review.md"),
    exits=_EXITS,
    run=f"{_ACTIONS}:sync",
)  # fmt: skip
UNSHARING = ActionSpec(
    "unshare",
    "End sharing",
    "End the sharing of this folder; the folder and the store stay as they are.",
    f"{_ACTIONS}:unsharing",
    (fast_args.YES,),
    risky=True,
    command="unshare",
    examples=("acp unshare checkout --yes",),
    exits=_EXITS,
    run=f"{_ACTIONS}:unshare",
)
ASKING = ActionSpec(
    "ask",
    "Ask another host",
    "Ask another host of a shared collaboration to start, stop or message a participant's loop there.",
    "acp_core.protocols.folder.actions.asking:ask_host",
    (
        Field("host", "Host", "Name the host, as `acp hosts` does.", required=True, position=True,
              metavar="HOST"),
        Field("verb", "Request", "Choose what the host is to do: start, stop or nudge (message) the loop, "
              "take the participant over from the host where it acts, or allow or reject what an agent asks for.", Kind.CHOICE, VERBS, required=True,
              position=True, metavar="VERB"),
        Field("participant", "Participant", "Name the participant; with allow or reject: the request's id, as "
              "`acp hosts` shows it.", required=True, position=True,
              metavar="ID", suggests=PARTICIPANTS),
        Field("text", "Message", "With nudge, or reject: the message to the participant's agent.", Kind.LINES,
              position=True, metavar="TEXT", most=2_000),
        Field("expires", help="Let the request expire after this time.", kind=Kind.DURATION,
              default=600.0, form=False),
        Field("wait", help="Wait this long for the answer.", kind=Kind.DURATION,
              default=30.0, form=False),
    ),
    command="ask",
    help="The host follows a request only if its owner accepts such requests: accept = [...] below [share] in "
    "its config.toml. It starts a loop only as its owner launched it there before. It answers while "
    "`acp sync` or a loop of the collaboration runs there.",
    examples=(
        "acp ask checkout server stop reader",
        'acp ask checkout server nudge reader "Look at question 3"',
        "acp ask checkout server allow 0123456789abcdef",
    ),
    exits=(
        (0, "done, or the host has not answered yet"),
        (1, "the host does not know how it ended"),
        (2, "refused or expired, or invalid input"),
        *_EXITS[3:4],
        *_EXITS[5:],
    ),
    place=PLACE._replace(default=None, required=True),
    run="acp_core.protocols.folder.actions.asking:ask",
)  # fmt: skip
HOSTS = QuerySpec(
    "hosts",
    "List the hosts of a shared collaboration, who acts where, and what the hosts were asked for.",
    "acp_core.protocols.folder.queries:hosts",
    command="hosts",
    help="Hosts report this themselves: over git, every account that can push can report it.",
    examples=("acp hosts checkout", "acp hosts checkout --json"),
    exits=_EXITS,
)
SPECS = (SHARING, SYNCING, ASKING, UNSHARING)
"""Those about a collaboration that is there."""
