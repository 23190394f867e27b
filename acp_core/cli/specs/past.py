"""Commands about what was: recording, replay, figures, reports, archives."""

from __future__ import annotations

from acp_core.cli.specs.fields import CHAIN, FOLDER, FOLDERS, OUTPUT, PATHS, UTC, command_of
from acp_core.model.action_field import DOCUMENTS
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec

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
        run="acp_core.cli.record:record",
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
        run="acp_core.cli.diff:diff",
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
        run="acp_core.cli.chart:chart",
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
        run="acp_core.cli.archives:export",
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
        run="acp_core.cli.archives:import_",
    )
)  # fmt: skip
