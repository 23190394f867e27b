"""Commands about what was: recording, replay, figures, reports, archives."""

from __future__ import annotations

from acp_core.cli.specs.fields import CHAIN, FOLDER, FOLDERS, OUTPUT, PATHS, UTC, command_of
from acp_core.model.action_spec import ActionSpec, Field, Kind, QuerySpec

RECORD = command_of(
    ActionSpec(
        "record",
        "Record",
        "Keep every version of the files of the collaborations in and below each PATH.",
        fields=(
            PATHS,
            Field("once", help="Keep what stands there now, and end.", kind=Kind.FLAG),
            Field(
                "until_over", help="End when everything is completed or blocked.", kind=Kind.FLAG
            ),
        ),
        command="record",
        help="The dashboard and `acp watch` do so too; this does nothing else, and goes on until "
        "it is interrupted. What is kept lies in your own state folder (see `acp recordings`), "
        "never in the collaboration's.",
        examples=("acp record ~/work", "acp record --once checkout"),
        exits=(
            (0, "ended as asked"),
            (2, "a PATH cannot be read, or it holds no collaboration"),
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
        "List what was recorded: of which collaborations, until when, how large.",
        fields=(
            Field(
                "prune", help="Throw away what is older or more than the settings say.",
                kind=Kind.FLAG,
            ),
            Field(
                "forget", help="Throw away what was recorded of this folder.", kind=Kind.FOLDER
            ),
        ),
        command="recordings",
        help="Recordings are bounded by `[recording] days` and `megabytes` in config.toml; "
        "`on = false` there turns them off. What is thrown away cannot be had back.",
        examples=("acp recordings", "acp recordings --forget checkout"),
        run="acp_core.cli.recordings:recordings",
    )
)  # fmt: skip
REPLAY = command_of(
    QuerySpec(
        "replay",
        "Print what happened in FOLDER, moment by moment; with --at, how it stood then.",
        fields=(
            FOLDER,
            Field("at", help="Show how it stood then.", metavar="EVENT|TIME"),
            CHAIN,
            UTC,
        ),
        command="replay",
        help="Known are the events, what was recorded (see `acp record`), what was committed in "
        "git, and what stands there now. What is not known is said: not recorded.",
        examples=("acp replay checkout", "acp replay checkout --at 12 --json"),
        run="acp_core.cli.replay:replay",
    )
)
DIFF = command_of(
    QuerySpec(
        "diff",
        "Print what became of DOCUMENT (such as proposal.md) between two moments, word by word.",
        fields=(
            FOLDER,
            Field(
                "document", help="Name the document; the end of its name is enough where no other "
                "one ends so.", position=True, required=True,
            ),
            Field(
                "since", help="Take the version of this moment as the earlier one (default: the "
                "version before).", flag="--from", metavar="EVENT|TIME",
            ),
            Field(
                "until", help="Take the version of this moment as the later one (default: now).",
                flag="--to", metavar="EVENT|TIME",
            ),
            Field("versions", help="List the known versions, and end.", kind=Kind.FLAG),
            UTC,
        ),
        command="diff",
        help="Words that came stand between {+ and +}, those that went between [- and -].",
        examples=("acp diff checkout proposal.md", "acp diff checkout proposal.md --from 2 --to 7"),
        exits=(
            (0, "the same"),
            (1, "different"),
            (2, "FOLDER, DOCUMENT or a moment is not known, or bad input"),
            (130, "interrupted"),
        ),
        run="acp_core.cli.diff:diff",
    )
)  # fmt: skip
STATS = command_of(
    QuerySpec(
        "stats",
        "Print where the time went in each FOLDER; several stand side by side.",
        fields=(FOLDERS._replace(required=True), CHAIN, UTC),
        command="stats",
        help="Spans are given whole, and in working time (`[working] hours` and `days` in "
        'config.toml). What nothing tells of is "not recorded".',
        examples=("acp stats checkout", "acp stats checkout checkout-2 --json"),
        run="acp_core.cli.stats:stats",
    )
)
CHART = command_of(
    QuerySpec(
        "chart",
        "Draw who did what when in FOLDER: phases, turns, hand-overs, findings, who was waited "
        "for.",
        fields=(FOLDER, OUTPUT._replace(help="Write it to this file as SVG, whole or not at all "
                                        "(default: draw it here)."), CHAIN, UTC),
        command="chart",
        examples=("acp chart checkout", "acp chart checkout -o chart.svg"),
        run="acp_core.cli.chart:chart",
        json=False,
    )
)  # fmt: skip
REPORT = command_of(
    QuerySpec(
        "report",
        "Tell what happened in FOLDER, where the time went, and what was decided.",
        fields=(
            FOLDER._replace(required=False),
            OUTPUT,
            Field(
                "format", help="Markdown for a pull request, one HTML file with a chart and a "
                "replay, JSON (acp.report/1), CSV of the turns, or an OpenTelemetry trace "
                "(default: by the file's ending, else md).", kind=Kind.CHOICE,
                choices=("md", "html", "json", "csv", "otlp"), metavar="FORMAT",
            ),
            Field(
                "no_redact", help="Keep what looks like a secret or a mail address.",
                kind=Kind.FLAG,
            ),
            UTC,
            Field(
                "schema", help="Print the JSON Schema of acp.report/1, and end.", kind=Kind.FLAG
            ),
        ),
        command="report",
        help="What looks like a key, a password or a mail address is left out unless --no-redact "
        "is given. What is not recorded is said.",
        examples=("acp report checkout -o report.html", "acp report checkout -o report.json"),
        run="acp_core.cli.report:report",
    )
)  # fmt: skip
EXPORT = command_of(
    ActionSpec(
        "export",
        "Export",
        "Write the collaboration in FOLDER, with what was recorded of it, into one file.",
        fields=(
            OUTPUT._replace(help="Write the archive to this file (default: FOLDER's name with "
                            ".acp.zip)."),
            Field("no_recording", help="Leave the recording out.", kind=Kind.FLAG),
        ),
        command="export",
        help="Nothing is left out of the documents: see `acp report` for something to show to "
        "others.",
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
        "Unpack an archive into FOLDER, which must be new or empty, and take over its recording.",
        fields=(
            Field("file", help="The archive.", kind=Kind.FILE, position=True, required=True),
            Field("folder", help="Where to (default: named as the collaboration was).",
                  kind=Kind.FOLDER, position=True),
        ),
        command="import",
        help="Nothing is unpacked outside of FOLDER.",
        examples=("acp import checkout.acp.zip",),
        place=None,
        dry_run=False,
        run="acp_core.cli.archives:import_",
    )
)  # fmt: skip
