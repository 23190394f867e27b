"""Commands about what is now: the dashboard, the fleet, one collaboration."""

from __future__ import annotations

from acp_core.cli.specs.fields import FOLDER, PATHS, THEME, UTC, command_of
from acp_core.model.action_field import STORIES, VIEWS
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec
from acp_core.person.views import GROUPS, SORTS

_HERE = "Without PATH, acp uses `paths` from config.toml, or the current folder."


DASHBOARD = command_of(
    QuerySpec(
        "dashboard",
        "Open the live dashboard on the collaborations in and below each PATH.",
        fields=(PATHS, THEME, UTC),
        command="dashboard",
        help=_HERE,
        examples=("acp ~/work", "acp dashboard ~/work ~/other --theme ansi-dark --utc"),
        run="acp_core.cli.dashboard:dashboard",
        json=False,
    )
)
SERVE = command_of(
    QuerySpec(
        "serve",
        "Serve the dashboard of the collaborations in and below each PATH to a web browser.",
        fields=(
            PATHS,
            Field(
                "host", help=("Address to listen on. Other machines can reach any address but the "
                              "loopback ones, without encryption."), metavar="ADDRESS", default="127.0.0.1",
            ),
            Field(
                "port", help="Port to listen on; 0 picks a free port.", kind=Kind.NUMBER,
                default=8000, least=0, most=65_535,
            ),
            THEME,
            UTC,
        ),
        command="serve",
        help=("Prints an address with a key: anyone who has the address can do what you can do in "
              "the dashboard. Every visit starts a dashboard of its own, which ends when the page "
              f"is closed. Needs the extra `web` (pip install 'acp-tui[web]'). {_HERE}"),
        examples=("acp serve ~/work", "acp serve ~/work --port 9000"),
        run="acp_core.cli.serve:serve",
        json=False,
    )
)  # fmt: skip
DEMO = command_of(
    ActionSpec(
        "demo",
        "Demo",
        "Run a scripted demo: three participants decide a small design question.",
        fields=(
            Field(
                "headless", help=("Run to the end without a dashboard, and print a line for each "
                                  "event."),
                kind=Kind.FLAG,
            ),
            Field(
                "speed", help=("Speed factor; at 1 the demo takes about a minute and a half "
                               "(default: 1, with --stuck 20)."), kind=Kind.DECIMAL, least=0.1, most=1000,
            ),
            Field(
                "folder", help=("New or empty folder for the demo (default: a new temporary "
                                "folder, which stays)."), kind=Kind.FOLDER, position=True,
            ),
            Field(
                "scenario", help="Story to play; an unknown name lists all stories.", metavar="NAME"
            ),
            Field(
                "stuck", help=("Play a collaboration that gets stuck for this CAUSE; an unknown "
                               "CAUSE lists all causes."), metavar="CAUSE", bare="all", suggests=STORIES,
            ),
        ),
        command="demo",
        help=("The participants are real processes that run the same commands as agents, and edit "
              "real files; only their texts are scripted. They end when you quit. With --stuck "
              "CAUSE, two participants run in real loops and something goes wrong: find the "
              "problem on the dashboard, and fix it with one key. With --headless, the demo also "
              "plays your part; without a CAUSE, it plays every story in turn."),
        examples=("acp demo", "acp demo --headless --speed 100", "acp demo --stuck idle"),
        exits=(
            (0, "completed and valid, or you quit the dashboard"),
            (1, "with --headless: the collaboration did not complete"),
            (2, "refused, or invalid input"),
            (130, "interrupted"),
        ),
        place=None,
        dry_run=False,
        run="acp_core.cli.demo:demo",
        json=False,
    )
)  # fmt: skip
STATUS = command_of(
    QuerySpec(
        "status",
        "Print the collaborations in and below each PATH; those that need you come first.",
        fields=(
            PATHS,
            Field("all", help="Also list archived collaborations.", kind=Kind.FLAG),
            Field(
                "view", help="Use a saved view of config.toml ([fleet.views.NAME]).",
                metavar="NAME", suggests=VIEWS,
            ),
            Field(
                "group", help="Group the list [default: state].", kind=Kind.CHOICE,
                choices=tuple(GROUPS), metavar="BY",
            ),
            Field(
                "sort", help="Sort the list [default: attention].", kind=Kind.CHOICE,
                choices=tuple(SORTS), metavar="BY",
            ),
            Field(
                "changed", help="List only what changed since your last visit.", kind=Kind.FLAG,
            ),
        ),
        command="status",
        help="Active collaborations follow, the latest change first, then finished ones. --group, "
        "--sort and --changed override the view.",
        examples=(
            "acp status ~/work",
            "acp status --json --all",
            "acp status ~/work --group folder --sort waiting",
        ),
        exits=(
            (0, "printed"),
            (2, "a PATH cannot be read (the others are printed), or invalid input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.status:status",
    )
)  # fmt: skip
WATCH = command_of(
    QuerySpec(
        "watch",
        "Print a line for each change of the collaborations in and below each PATH.",
        fields=(
            PATHS._replace(help="Folder to watch, with all folders below it.", required=True),
            Field(
                "once",
                help="Print the present state of each collaboration, and exit.",
                kind=Kind.FLAG,
            ),
            UTC,
        ),
        command="watch",
        help=(
            "acp reports new events, changes of phase, status and documents, who is waited for, "
            "findings and attention items. The command exits when every collaboration is "
            "completed, blocked or unreadable. With --json, each line is a JSON object."
        ),
        examples=(
            "acp watch ~/work",
            "acp watch checkout --json",
            "acp watch checkout --once",
        ),
        exits=(
            (0, "completed (of several collaborations, the worst result counts)"),
            (1, "still running (only with --once)"),
            (2, "unreadable, or no collaboration, or invalid input"),
            (5, "blocked"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.watch:watch",
    )
)
SHOW = command_of(
    QuerySpec(
        "show",
        "Print the collaboration in FOLDER: its state, what happened, and what is next.",
        fields=(
            FOLDER,
            Field("all", help="Print all events, not only the last 15.", kind=Kind.FLAG),
            UTC,
        ),
        command="show",
        examples=("acp show checkout", "acp show checkout --json --all"),
        run="acp_core.cli.show:show",
    )
)
WHY = command_of(
    QuerySpec(
        "why",
        "Explain why the collaboration in FOLDER is stuck, and how to fix it.",
        fields=(FOLDER,),
        command="why",
        help=(
            "The most important problem comes first. Each problem is printed with its evidence, "
            "whether acp saw or inferred it, and the command that fixes it."
        ),
        examples=("acp why checkout", "acp why ~/work/checkout --json"),
        exits=(
            (0, "not stuck, or the problem will pass by itself"),
            (1, "a problem needs you"),
            (2, "FOLDER cannot be read, or invalid input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.why:why",
    )
)
CARD = command_of(
    QuerySpec(
        "card",
        "Show what waits for your decision in FOLDER, and the command of each verdict.",
        fields=(FOLDER,),
        command="card",
        help="A card shows the facts that a decision depends on: the claim, objections, gate items, tests, "
        "files. The commands refuse if any of these has changed since (--matter).",
        examples=("acp card checkout", "acp card ~/work/checkout --json"),
        exits=(
            (0, "no decision waits"),
            (1, "a decision waits for you"),
            (2, "FOLDER cannot be read, or invalid input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.card:card",
    )
)
FIND = command_of(
    QuerySpec(
        "find",
        "Find collaborations whose name, objective or documents contain all WORDS.",
        fields=(
            Field(
                "terms", help="Words to search for.", kind=Kind.LIST, position=True, required=True,
                metavar="WORDS",
            ),
            PATHS._replace(position=False),
        ),
        command="find",
        help=("The search ignores case and accents. Matches in names, decisions and conclusions "
              "rank first. Archived collaborations are included."),
        examples=("acp find rate limit", "acp find retry --json"),
        exits=(
            (0, "found"),
            (1, "nothing found"),
            (2, "a PATH cannot be read, or invalid input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.find:find",
    )
)  # fmt: skip
