"""Commands about what is now: the dashboard, the fleet, one collaboration."""

from __future__ import annotations

from acp_core.cli.specs.fields import FOLDER, PATHS, THEME, UTC, command_of
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec

_HERE = "Without PATH: those of `paths` in config.toml, or else the present folder."


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
        "Show the dashboard of the collaborations in and below each PATH in a web browser.",
        fields=(
            PATHS,
            Field(
                "host", help="Listen on this address. Any but this machine's own is reached by "
                "others, unencrypted.", metavar="ADDRESS", default="127.0.0.1",
            ),
            Field(
                "port", help="Listen on this port; 0 takes a free one.", kind=Kind.NUMBER,
                default=8000, least=0, most=65_535,
            ),
            THEME,
            UTC,
        ),
        command="serve",
        help="Prints an address with a key: whoever has it can do what you can do in the "
        "dashboard. Every visit gets a dashboard of its own; it ends when the page is closed. "
        f"Needs the extra `web` (pip install 'acp-tui[web]'). {_HERE}",
        examples=("acp serve ~/work", "acp serve ~/work --port 9000"),
        run="acp_core.cli.serve:serve",
        json=False,
    )
)  # fmt: skip
DEMO = command_of(
    ActionSpec(
        "demo",
        "Demo",
        "Watch a collaboration happen: three participants settle a small design question.",
        fields=(
            Field(
                "headless", help="Open no dashboard: run to the end, a line per event.",
                kind=Kind.FLAG,
            ),
            Field(
                "speed", help="How many times as fast; at 1 it takes about a minute and a half "
                "(default: 1, with --stuck 20).", kind=Kind.DECIMAL, least=0.1, most=1000,
            ),
            Field(
                "folder", help="Make it in this folder, new or empty (default: a new temporary "
                "folder, which is kept).", kind=Kind.FOLDER, position=True,
            ),
            Field(
                "scenario", help="Play another story; an unknown name lists them.", metavar="NAME"
            ),
            Field(
                "stuck", help="Play one that gets stuck, and what gets it going; an unknown CAUSE "
                "lists them.", metavar="CAUSE", bare="all",
            ),
        ),
        command="demo",
        help="They are real processes that use the same commands as agents do, and edit real "
        "files; only what they write was written beforehand. They end when you leave. With "
        "--stuck CAUSE two participants run in real loops, and something goes wrong: find out "
        "why on the dashboard, and mend it with a key. With --headless the demo does what you "
        "would; without a CAUSE, for one after the other.",
        examples=("acp demo", "acp demo --headless --speed 100", "acp demo --stuck idle"),
        exits=(
            (0, "completed, and valid; or the dashboard was left"),
            (1, "--headless: it did not complete; says why"),
            (2, "refused, or bad input: one line says why"),
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
        "Print the collaborations in and below each PATH, what needs you on top.",
        fields=(
            PATHS,
            Field("all", help="List archived collaborations too.", kind=Kind.FLAG),
        ),
        command="status",
        help="Then comes what is live, the latest change first, then what is over.",
        examples=("acp status ~/work", "acp status --json --all"),
        exits=(
            (0, "printed"),
            (2, "a PATH cannot be read (the others are printed), or bad input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.status:status",
    )
)
WATCH = command_of(
    QuerySpec(
        "watch",
        "Print one line for every change of the collaborations in and below each PATH.",
        fields=(
            PATHS._replace(help="Look in and below this folder.", required=True),
            Field("once", help="Print how each stands now, and end.", kind=Kind.FLAG),
            UTC,
        ),
        command="watch",
        help="Changes are: an event, another phase, other participants waited for, a document, a "
        "finding, a need, the status. It ends when everything watched is completed, blocked or "
        "unreadable. With --json each line is an object.",
        examples=(
            "acp watch ~/work",
            "acp watch checkout --json",
            "acp watch checkout --once",
        ),
        exits=(
            (0, "completed; of several collaborations the worst counts"),
            (1, "still running (only with --once)"),
            (2, "unreadable, or no collaboration, or bad input"),
            (5, "blocked"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.watch:watch",
    )
)
SHOW = command_of(
    QuerySpec(
        "show",
        "Print the collaboration in FOLDER: how it stands, what happened, what is next.",
        fields=(
            FOLDER,
            Field("all", help="Print every event, not only the last 15.", kind=Kind.FLAG),
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
        "Say why the collaboration in FOLDER does not go on, and what you can do about it.",
        fields=(FOLDER,),
        command="why",
        help="The first cause counts most; each has its evidence, whether it was seen or only "
        "inferred, and the command that mends it.",
        examples=("acp why checkout", "acp why ~/work/checkout --json"),
        exits=(
            (0, "nothing keeps it from going on, or it will pass by itself"),
            (1, "you are wanted"),
            (2, "it cannot be read, or bad input"),
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
            (2, "FOLDER cannot be read, or bad input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.card:card",
    )
)
FIND = command_of(
    QuerySpec(
        "find",
        "Find collaborations that hold all WORDS in their name, objective or documents.",
        fields=(
            Field(
                "terms", help="What to look for.", kind=Kind.LIST, position=True, required=True,
                metavar="WORDS",
            ),
            PATHS._replace(position=False),
        ),
        command="find",
        help="Upper and lower case and accents do not matter. What was named, decided or "
        "concluded counts for more than what was said along the way. Archived ones are found too.",
        examples=("acp find rate limit", "acp find retry --json"),
        exits=(
            (0, "found"),
            (1, "nothing found"),
            (2, "a PATH cannot be read, or bad input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.find:find",
    )
)  # fmt: skip
