"""Every command that holds for every protocol, described: options, help, examples, exit codes.

By the headings of `acp --help`: options that several commands share, then what is now, what was,
participants' loops, acts and notes of a person, stores of shared collaborations. What runs a command
is named here, and imported when it runs (see `acp_core.cli.table`).
"""

from __future__ import annotations

from acp_core.diagnosis import personal_table
from acp_core.loops.acts import table
from acp_core.loops.acts.table import RUN
from acp_core.model.action_field import (
    DOCUMENTS,
    PARTICIPANTS,
    PLACE,
    PRESETS,
    STORIES,
    VIEWS,
    Field,
    Kind,
)
from acp_core.model.action_spec import ActionSpec, QuerySpec, Spec
from acp_core.person.views import GROUPS, SORTS
from acp_core.protocols.kit.command import Commands

FOLDER = PLACE._replace(default=None, required=True)
"""The collaboration, which must be named."""
FOLDERS = Field(
    "folders", help="Folders of the collaborations.", kind=Kind.LIST, items=Kind.FOLDER,
    position=True, flag="--folder", metavar="FOLDER", form=False,
)  # fmt: skip
PATHS = Field(
    "paths", help=("Folder to search, with all folders below it (default: here, or `paths` in "
                   "config.toml)."),
    kind=Kind.LIST, items=Kind.FOLDER, position=True, flag="--path", aliases=("--folder",),
    metavar="PATH", form=False,
)  # fmt: skip
UTC = Field("utc", help="Show times in UTC.", kind=Kind.FLAG)
THEME = Field("theme", help="Theme to use instead of the one in config.toml.", metavar="NAME")
CHAIN = Field(
    "chain", help="Include the collaborations that FOLDER continues, and those that continue FOLDER.",
    kind=Kind.FLAG,
)  # fmt: skip
OUTPUT = Field(
    "output", help="Output file, written completely or not at all (default: standard output).",
    kind=Kind.FILE, short="-o",
)  # fmt: skip


def command_of(spec: Spec) -> Commands:
    """The command `acp NAME` of an act or a query."""
    return Commands(spec.name, spec.sentence, (spec,), f"acp.{spec.name}/1")


_HERE = "Without PATH, acp uses `paths` from config.toml, or the current folder."

DASHBOARD = command_of(
    QuerySpec(
        "dashboard",
        "Open the live dashboard on the collaborations in and below each PATH.",
        fields=(PATHS, THEME, UTC),
        command="dashboard",
        help=_HERE,
        examples=("acp ~/work", "acp dashboard ~/work ~/other --theme ansi-dark --utc"),
        run="acp_core.cli.start:dashboard",
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
            "The most important problem comes first: what refuses writes, what a person must decide, "
            "other damage, what failed, what does not run. Each problem is printed with its evidence, "
            "whether acp saw or inferred it, and the command that fixes it; what cannot be solved "
            "before another problem says from which it follows."
        ),
        examples=("acp why checkout", "acp why ~/work/checkout --json"),
        exits=(
            (0, "nothing that you have not acknowledged needs you"),
            (1, "something needs you"),
            (2, "FOLDER cannot be read, or invalid input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.matters:why",
    )
)
CARD = command_of(
    QuerySpec(
        "card",
        "Show what waits for your decision in FOLDER, and the command of each verdict.",
        fields=(FOLDER,),
        command="card",
        help="A card shows the facts that a decision depends on: the claim, objections, gate items, tests, "
        "files. A problem that can be fixed has a card, too. The commands refuse if any of these has "
        "changed since (--matter).",
        examples=("acp card checkout", "acp card ~/work/checkout --json"),
        exits=(
            (0, "nothing that you can decide or fix needs you"),
            (1, "a decision or a fix waits for you"),
            (2, "FOLDER cannot be read, or invalid input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.matters:card",
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

RECORD = command_of(
    ActionSpec(
        "record",
        "Record",
        "Record every version of the files of the collaborations in and below each PATH.",
        fields=(
            PATHS,
            Field("once", help="Record the present state once, and exit.", kind=Kind.FLAG),
            Field(
                "until_over",
                help="Exit when all collaborations are completed or blocked.",
                kind=Kind.FLAG,
            ),
        ),
        command="record",
        help=(
            "Runs until interrupted. The dashboard and `acp watch` record too. Recordings are "
            "stored in your own state folder (see `acp recordings`), never in the "
            "collaboration."
        ),
        examples=("acp record ~/work", "acp record --once checkout"),
        exits=(
            (0, "success"),
            (2, "a PATH cannot be read, or contains no collaboration"),
            (130, "interrupted"),
        ),
        place=None,
        dry_run=False,
        run="acp_core.cli.watch:record",
        json=False,
    )
)
RECORDINGS = command_of(
    QuerySpec(
        "recordings",
        "List the recordings: collaboration, last change and size.",
        fields=(
            Field(
                "prune", help="Delete recordings that exceed the limits in config.toml.",
                kind=Kind.FLAG,
            ),
            Field(
                "forget", help="Delete the recording of this folder.", kind=Kind.FOLDER
            ),
        ),
        command="recordings",
        help=("`[recording] days` and `megabytes` in config.toml limit the recordings; `on = "
              "false` turns them off. Deleted recordings cannot be restored."),
        examples=("acp recordings", "acp recordings --forget checkout"),
        run="acp_core.cli.recordings:recordings",
    )
)  # fmt: skip
REPLAY = command_of(
    QuerySpec(
        "replay",
        "Print the history of FOLDER step by step, or its state at one point in time (--at).",
        fields=(
            FOLDER,
            Field("at", help="Show the state at this point in time.", metavar="EVENT|TIME"),
            CHAIN,
            UTC,
        ),
        command="replay",
        help=(
            "acp knows the events, the recording (see `acp record`), the commits in git and the "
            'present files. Everything else is marked "not recorded".'
        ),
        examples=("acp replay checkout", "acp replay checkout --at 12 --json"),
        run="acp_core.cli.replay:replay",
    )
)
DIFF = command_of(
    QuerySpec(
        "diff",
        "Compare two versions of DOCUMENT (such as proposal.md) word by word.",
        fields=(
            FOLDER,
            Field(
                "document", help="Name of the document, or the end of its name if that is unique.", position=True, required=True,
                suggests=DOCUMENTS,
            ),
            Field(
                "since", help=("Earlier version: an event or a time (default: the version before "
                               "the later one)."), flag="--from", metavar="EVENT|TIME",
            ),
            Field(
                "until", help="Later version: an event or a time (default: now).",
                flag="--to", metavar="EVENT|TIME",
            ),
            Field("versions", help="List the known versions, and exit.", kind=Kind.FLAG),
            UTC,
        ),
        command="diff",
        help="Added words are marked {+ +}, removed words [- -].",
        examples=("acp diff checkout proposal.md", "acp diff checkout proposal.md --from 2 --to 7"),
        exits=(
            (0, "the same"),
            (1, "different"),
            (2, "unknown FOLDER, DOCUMENT or point in time, or invalid input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.replay:diff",
    )
)  # fmt: skip
STATS = command_of(
    QuerySpec(
        "stats",
        "Print how much time the phases, turns and waits of each FOLDER took, side by side.",
        fields=(FOLDERS._replace(required=True), CHAIN, UTC),
        command="stats",
        help="If config.toml sets `[working] hours` or `days`, waits for people are also given in "
        'working hours. Unknown values are marked "not recorded".',
        examples=("acp stats checkout", "acp stats checkout checkout-2 --json"),
        run="acp_core.cli.stats:stats",
    )
)
CHART = command_of(
    QuerySpec(
        "chart",
        "Draw a timeline chart of FOLDER: phases, turns, hand-overs, findings and waits.",
        fields=(FOLDER, OUTPUT._replace(help=("SVG file to write (default: draw the chart in the "
                                              "terminal).")), CHAIN, UTC),
        command="chart",
        examples=("acp chart checkout", "acp chart checkout -o chart.svg"),
        run="acp_core.cli.stats:chart",
        json=False,
    )
)  # fmt: skip
REPORT = command_of(
    QuerySpec(
        "report",
        "Write a report on FOLDER: the outcome, the decisions, what happened, and how long it took.",
        fields=(
            FOLDER._replace(required=False),
            OUTPUT,
            Field(
                "format", help=("Format: Markdown for a pull request, one HTML file with a chart "
                                "and a replay, JSON (acp.report/1), CSV of the turns, or an "
                                "OpenTelemetry trace (default: by the suffix of the file, else "
                                "md)."), kind=Kind.CHOICE,
                choices=("md", "html", "json", "csv", "otlp"), metavar="FORMAT",
            ),
            Field(
                "no_redact", help="Keep text that looks like a secret or a mail address.",
                kind=Kind.FLAG,
            ),
            UTC,
            Field(
                "schema", help="Print the JSON Schema of acp.report/1, and exit.", kind=Kind.FLAG
            ),
        ),
        command="report",
        help=("Text that looks like a key, a password or a mail address is removed unless "
              '--no-redact is given. Unknown values are marked "not recorded".'),
        examples=("acp report checkout -o report.html", "acp report checkout -o report.json"),
        run="acp_core.cli.report:report",
    )
)  # fmt: skip
EXPORT = command_of(
    ActionSpec(
        "export",
        "Export",
        "Write the collaboration in FOLDER and its recording into one archive file.",
        fields=(
            OUTPUT._replace(help="Archive file to write (default: the name of FOLDER with .acp.zip)."),
            Field("no_recording", help="Do not include the recording.", kind=Kind.FLAG),
        ),
        command="export",
        help=("The archive contains the complete documents; to share a redacted summary, use `acp "
              "report`."),
        examples=("acp export checkout", "acp export checkout -o /tmp/checkout.acp.zip"),
        place=FOLDER,
        dry_run=False,
        run="acp_core.cli.recordings:export",
    )
)  # fmt: skip
IMPORT = command_of(
    ActionSpec(
        "import",
        "Import",
        "Unpack an archive into FOLDER, which must be new or empty, and import its recording.",
        fields=(
            Field("file", help="The archive.", kind=Kind.FILE, position=True, required=True),
            Field("folder", help="Folder to create (default: the name of the collaboration).",
                  kind=Kind.FOLDER, position=True),
        ),
        command="import",
        help="acp writes nothing outside FOLDER.",
        examples=("acp import checkout.acp.zip",),
        place=None,
        dry_run=False,
        run="acp_core.cli.recordings:import_",
    )
)  # fmt: skip

_PARTICIPANTS = Field(
    "participant", help="Name the participants (default: all).", kind=Kind.LIST, position=True,
    metavar="PARTICIPANT", suggests=PARTICIPANTS,
)  # fmt: skip

LOOP = command_of(
    ActionSpec(
        "loop",
        "Loop",
        "Wait for a participant's turns and run an agent for each.",
        fields=(
            Field("participant", help="Participant whose turns the agent takes.", metavar="ID", required=True,
                  position=True, suggests=PARTICIPANTS),
            Field(
                "agent", help="Use the preset of a known agent in place of a COMMAND.", metavar="PRESET",
                aliases=("--preset",), suggests=PRESETS,
            ),
            *RUN,
            Field("interval", help="Time between two checks.", kind=Kind.DURATION, default=1.0),
            Field("leave", help="Exit instead of waiting for help from a person.", kind=Kind.FLAG),
        ),
        command="loop",
        help=("COMMAND gets the turn's prompt on its standard input, or in place of {prompt} or "
              "{prompt_file} among its arguments. The exit code does not decide: a turn counts as "
              "done when the participant's event appears. Otherwise acp runs another attempt, and "
              "its prompt says what was refused."),
        examples=(
            "acp loop --folder checkout --participant reviewer -- my-agent --task {prompt}",
        ),
        exits=(
            (0, "completed"),
            (1, "gave up (only with --leave), or the deadline passed"),
            (2, "no collaboration, no such program, another loop runs, or invalid input"),
            (5, "blocked"),
            (130, "interrupted"),
        ),
        place=FOLDER,
        dry_run=False,
        run="acp_core.cli.loops:loop",
        words="COMMAND",
        json=False,
    )
)  # fmt: skip
LAUNCH = command_of(table.LAUNCH)
PS = command_of(
    QuerySpec(
        "ps",
        "List the loops on this machine, or the loops of the collaborations in each FOLDER.",
        fields=(
            FOLDERS,
            Field("all", help="Also list loops that ended or were stopped.", kind=Kind.FLAG),
        ),
        command="ps",
        examples=("acp ps", "acp ps checkout --all --json"),
        run="acp_core.cli.loops:ps",
    )
)
LOGS = command_of(
    QuerySpec(
        "logs",
        "Show what the loops of the collaboration in FOLDER did, and what their agents printed.",
        fields=(
            FOLDER,
            _PARTICIPANTS,
            Field("follow", help="Keep printing new lines until interrupted.", kind=Kind.FLAG,
                  short="-f"),
            Field("lines", help="Show this many lines.", kind=Kind.NUMBER, default=40, least=0,
                  short="-n"),
            Field("raw", help="Show the output of the last attempt, unchanged.",
                  kind=Kind.FLAG),
        ),
        command="logs",
        examples=(
            "acp logs checkout",
            "acp logs -f checkout reviewer",
            "acp logs --raw -n 200 checkout reviewer",
        ),
        run="acp_core.cli.loops:logs",
        json=False,
    )
)  # fmt: skip
STOP = command_of(table.STOP_LOOP)
CANCEL = command_of(table.CANCEL)
NUDGE = command_of(table.NUDGE)
ANSWER = Commands("answer", table.ANSWER.sentence, (table.ANSWER,), "acp.answer/1")
MCP = command_of(
    QuerySpec(
        "mcp",
        "Serve a participant's tools to its agent, over the Model Context Protocol.",
        fields=(
            FOLDER,
            Field("participant", help="Participant as which the agent acts.", metavar="ID", required=True,
                  position=True, suggests=PARTICIPANTS),
            Field("wait", help="Offer the tool that waits for a turn.", kind=Kind.FLAG, default=True),
        ),
        command="mcp",
        help=("The agent's program starts this command and talks to it on its standard input and output. "
              "The tools do what the participant itself can do, never what a person decides; the agent "
              "cannot change who it is or where."),
        examples=(
            "acp mcp --folder checkout --participant reviewer",
            "acp mcp --folder checkout --participant reviewer --no-wait",
        ),
        exits=((0, "the input ended"), (2, "no collaboration, no such participant, or the extra is missing")),
        run="acp_core.cli.tool_server:serve",
        json=False,
    )
)  # fmt: skip

ACT_LIST = QuerySpec(
    "act",
    "List the actions that are possible in the collaboration in FOLDER, or run one.",
    fields=(FOLDER, Field("action", help=("Action to run: acp shows what it would do, asks, and "
                                          "does it. Its options follow; `--help` lists them."), position=True, listed=False)),
    command="act",
    help="Run `acp act FOLDER ACTION --help` to see the options of an action.",
    examples=(
        "acp act checkout",
        "acp act checkout block --help",
        'acp act checkout block --reason "No access" --dry-run',
    ),
    exits=(
        (0, "success, or queued for the process that runs the collaboration"),
        (1, "the result is unknown"),
        (2, "refused, nothing done"),
        (130, "interrupted"),
    ),
)  # fmt: skip
"""`acp act` as far as it does not depend on the collaboration; its module does the rest."""
ACK = command_of(personal_table.ACK)
UNACK = command_of(personal_table.UNACK)
ARCHIVE = command_of(personal_table.ARCHIVE)
UNARCHIVE = command_of(personal_table.UNARCHIVE)
DOCTOR = command_of(
    QuerySpec(
        "doctor",
        "Check versions, folders, the terminal and optional parts.",
        fields=(PATHS._replace(help=("Folder whose file system is checked for working locks and "
                                     "change notifications (default: here), or the address of a "
                                     "PostgreSQL store.")),),
        command="doctor",
        examples=("acp doctor", "acp doctor ~/work --json",
                  "acp doctor postgresql://anna@db.example.org/team"),
        exits=(
            (0, "all is well"),
            (1, "a required part is missing"),
            (2, "refused, or invalid input"),
        ),
        run="acp_core.cli.doctor:doctor",
    )
)  # fmt: skip
COMPLETION = command_of(
    QuerySpec(
        "completion",
        "Print the completion script for SHELL.",
        fields=(
            Field("shell", help="Shell to complete for.", kind=Kind.CHOICE,
                  choices=("bash", "zsh", "fish"), position=True, required=True),
        ),
        command="completion",
        help=("Save the script as ~/.local/share/bash-completion/completions/acp (bash 4.4 or "
              'newer), "${fpath[1]}/_acp" (zsh) or ~/.config/fish/completions/acp.fish (fish). '
              "The script asks acp for completions, so it never goes out of date."),
        examples=("acp completion bash",),
        run="acp_core.cli.group:completion",
        json=False,
    )
)  # fmt: skip

_URL = Field(
    "url", help="Address of the database, without a password: postgresql://USER@HOST/DATABASE.",
    position=True, required=True, metavar="URL",
)  # fmt: skip
_EXITS = (
    (0, "done"),
    (2, "refused, or invalid input"),
    (6, "the database cannot be reached"),
    (8, "the database refused it"),
    (130, "interrupted"),
)

INIT = ActionSpec(
    "init",
    "Prepare a database",
    "Prepare a PostgreSQL database as a store of shared collaborations.",
    fields=(_URL,),
    command="store init",
    help=("Creates the schema acp with its tables, and the roles acp_reader and acp_writer; brings tables "
          "of an earlier acp up to date. What exists already stays as it is: you can run this again. "
          "The password belongs into a service file, into ~/.pgpass or into PGPASSWORD."),
    examples=(
        "acp store init postgresql://admin@db.example.org/team",
        "acp store init postgresql://admin@db.example.org/team --json",
    ),
    exits=_EXITS,
    place=None,
    dry_run=False,
    run="acp_core.cli.store:init",
)  # fmt: skip
LIST = QuerySpec(
    "list",
    "List the collaborations in a PostgreSQL store: phase, waiting for, hosts, last change.",
    fields=(
        _URL,
        Field("phase", help="List only collaborations in this phase.", metavar="PHASE"),
        Field("limit", help="List at most this many.", kind=Kind.NUMBER, default=100, least=1, short="-n"),
    ),
    command="store list",
    help="The most recent change first. Reads no logs and no documents.",
    examples=("acp store list postgresql://anna@db.example.org/team --phase reviewing",),
    exits=_EXITS,
    run="acp_core.cli.store:listing",
)  # fmt: skip
STORE = Commands(
    "store", "Prepare and list stores of shared collaborations.", (INIT, LIST), "acp.store/1"
)
