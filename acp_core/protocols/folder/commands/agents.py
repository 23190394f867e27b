"""The commands that agents run: init, append, next, wait and validate.

Source: folder protocol specification, "Initialization", "Events", "Polling And Watchers" and
"Validation" for flags, output and exit codes. Each function takes the arguments after the
command's name and returns the exit code. Standard library only; what only one command needs
is imported there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from acp_core.files.journal import without_collector
from acp_core.model.action_field import Field, Kind
from acp_core.model.light import TYPE_CHECKING, Any
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.write import Refused
from acp_core.protocols.kit.command_line import close_output, program, run, say, say_json, warn
from acp_core.protocols.kit.quick import quick

if TYPE_CHECKING:
    from acp_core.protocols.folder.write.append import Appended, Request
    from acp_core.protocols.kit.argparse_parser import Parser

_FOLDER = Field("folder", kind=Kind.FOLDER, required=True)
_PARTICIPANT = Field("participant", required=True)
_JSON = Field("json", kind=Kind.FLAG)
NEXT = (_FOLDER, _PARTICIPANT, _JSON)
APPEND = (
    _FOLDER,
    _PARTICIPANT,
    Field("event", kind=Kind.CHOICE, choices=schema.EVENTS_V2, required=True),
    Field("summary", required=True),
    Field("doc", optional=True),
    Field("reply_to", kind=Kind.NUMBER),
    Field("role", kind=Kind.CHOICE, choices=("primary", "supporting"), optional=True),
    Field("sha256", optional=True),
    Field("review_file", kind=Kind.FILE, optional=True),
    Field("expect_seq", kind=Kind.NUMBER),
    Field("key", optional=True),
    Field("force", kind=Kind.FLAG),
    _JSON,
)
VALIDATE = (_FOLDER, Field("strict", kind=Kind.FLAG), _JSON)
FORCE = "write although the file system is one on which locks protect nothing"


def init_parser() -> Parser:
    """The arguments of `acp init`."""
    from acp_core.protocols.kit.argparse_parser import Parser

    parser = Parser(
        prog=program("init"),
        description="Start a collaboration in a folder. Exit codes: 0 started, 2 refused.",
    )
    add = parser.add_argument
    add("--folder", required=True, help="where; made if it does not exist")
    add("--participant", action="append", default=[], metavar="ID", help="repeat; owner first")
    add("--objective", default="", help="what is to be decided or produced")
    add("--completion", action="append", default=[], metavar="GATE", help="repeat for each gate")
    add("--resume", action="store_true", help="finish a start that was interrupted")
    deliverable = parser.add_argument_group("a collaboration with a deliverable (schema 2)")
    add = deliverable.add_argument
    add(
        "--primary-deliverable-type", metavar="TYPE",
        help="adr, design-spec, implementation-plan, decision-memo, review-report, test-plan, or "
        "custom",
    )  # fmt: skip
    add("--primary-deliverable-file", metavar="FILE", help="a Markdown file's relative path")
    add(
        "--primary-deliverable-check", action="append", default=[], metavar="SECTION",
        help="a section that it must have; may be repeated",
    )  # fmt: skip
    add(
        "--deliverables-mode", choices=("internal", "external"),
        help="whether deliverables lie in the folder, or beside it in the repository",
    )  # fmt: skip
    add("--deliverables-dir", metavar="DIR", help="default: deliverables")
    add("--repo-root", metavar="DIR", help="relative to the folder; only when external")
    parser.add_argument("--force", action="store_true", help=FORCE)
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser


def init(arguments: Sequence[str]) -> int:
    """Start a collaboration."""
    return run(lambda: _init(arguments))


def _init(arguments: Sequence[str]) -> int:
    options = init_parser().parse_args(arguments)
    from acp_core.protocols.folder.write.init import initialise
    from acp_core.protocols.folder.write.init_checks import Wish

    wish = Wish(
        objective=options.objective,
        participants=options.participant,
        gates=options.completion,
        type=options.primary_deliverable_type,
        file=options.primary_deliverable_file,
        checklist=options.primary_deliverable_check,
        mode=options.deliverables_mode,
        folder=options.deliverables_dir,
        repo_root=options.repo_root,
    )
    started = initialise(options.folder, wish, resume=options.resume, force=options.force)
    for warning in started.warnings:
        warn(warning)
    if options.json:
        say_json({"schema": "acp.init/1", **started._asdict()})
    elif started.existed:
        say(f"Collaboration folder already exists: {options.folder}")
        if started.created:
            say(f"created what was missing: {', '.join(started.created)}")
    else:
        title = "ACP schema v2" if started.dialect == schema.V2 else "ACP"
        say(f"Initialized {title} collaboration folder: {options.folder}")
        if started.dialect == schema.V1:
            say("state seq: 1")
        if started.kept:
            say(f"kept what was there: {', '.join(started.kept)}")
    return 0


def append_parser() -> Parser:
    """The arguments of `acp append`."""
    from acp_core.protocols.kit.argparse_parser import Parser

    parser = Parser(
        prog=program("append"),
        description="Append an event. Exit codes: 0 appended; 2 refused, nothing written; 3 not "
        "appended, the log had moved on (--expect-seq); 4 appended, but a writer that takes no "
        "lock slipped in: do not repeat, validate.",
    )
    add = parser.add_argument
    add("--folder", required=True, help="the collaboration")
    add("--participant", required=True, metavar="ID", help="who you are")
    events = ", ".join(schema.EVENTS_V2)
    add("--event", required=True, choices=schema.EVENTS_V2, metavar="EVENT",
        help=f"what you did: one of {events}")  # fmt: skip
    add("--summary", required=True, help="one short sentence")
    add("--doc", help="the document it speaks of, relative to the folder")
    add("--reply-to", type=int, metavar="SEQ", help="the event that it answers")
    add("--role", choices=("primary", "supporting"), help="of a deliverable event")
    add("--sha256", help="of a deliverable event; worked out when frozen")
    add("--review-file", metavar="FILE", help="write this text into review.md together with it")
    add("--expect-seq", type=int, metavar="SEQ", help="append only if this is the last seq")
    add("--key", help="makes it safe to run again: the same key is appended once")
    add("--force", action="store_true", help=FORCE)
    add("--json", action="store_true", help="print the outcome as JSON")
    return parser


@without_collector()  # here and below: the process ends before there is garbage worth a search
def append(arguments: Sequence[str]) -> int:
    """Append an event."""
    return run(lambda: _append(arguments))


def _append(arguments: Sequence[str]) -> int:
    options = quick(arguments, APPEND) or append_parser().parse_args(arguments)
    from acp_core.files.shield import Shield
    from acp_core.protocols.folder.write.append import RACED, Request
    from acp_core.protocols.folder.write.append import append as append_event

    review = _review_text(options.review_file, options.event) if options.review_file else None
    request = Request(
        folder=options.folder,
        participant=options.participant,
        event=options.event,
        summary=options.summary,
        doc=options.doc,
        reply_to=options.reply_to,
        role=options.role,
        sha256=options.sha256,
        key=options.key,
        expect_seq=options.expect_seq,
        review=review,
        force=options.force,
    )
    with Shield() as shield:
        appended = append_event(request, before_write=shield.up)
        try:
            _report(appended, request, options.json)
            sys.stdout.flush()
        except OSError:  # the event is in the log, whether or not anybody reads so
            close_output()
    return RACED if appended.raced else 0


def _report(appended: Appended, request: Request, as_json: bool) -> None:
    entry = appended.entry
    for warning in appended.warnings:
        warn(warning)
    if appended.raced:
        warn(
            f"seq {entry.name} was appended, but a writer that takes no lock slipped in: "
            "do not repeat the command; run `acp validate`"
        )
    if appended.existing and (entry.event, entry.summary) != (request.event, request.summary):
        warn(f"the key {request.key!r} was used for another event: {entry.event}")
    if as_json:
        say_json(
            {
                "schema": "acp.append/1",
                "seq": entry.seq,
                "event": entry.event,
                "at": entry.at,
                "existing": appended.existing,
                "raced": appended.raced,
                "phase": appended.phase,
                "waitingFor": list(appended.waiting),
                "warnings": list(appended.warnings),
            }
        )
    elif appended.existing:
        say(f"already appended seq {entry.name}: {entry.event}")
    else:
        say(f"appended seq {entry.name}: {entry.event}")


def _review_text(path: str, event: str) -> str:
    """The text for review.md; "-" reads it from the standard input."""
    if event != "review_submitted":
        raise Refused("--review-file goes with --event review_submitted")
    if path == "-":
        data = sys.stdin.buffer.read(schema.MAX_DOCUMENT + 1)
    else:
        from acp_core.files.reading import Unreadable, read_bounded

        try:
            data = read_bounded(path, schema.MAX_DOCUMENT)
        except Unreadable as error:
            raise Refused(f"--review-file {path}: {error}") from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"--review-file {path}: not UTF-8 at byte {error.start + 1}") from None


def next_parser() -> Parser:
    """The arguments of `acp next`."""
    from acp_core.protocols.kit.argparse_parser import Parser

    parser = Parser(
        prog=program("next"),
        description="Say what a participant should do now. Exit codes: 0; 1 unknown phase; "
        "2 the collaboration cannot be read.",
    )
    parser.add_argument("--folder", required=True, help="the collaboration")
    parser.add_argument("--participant", required=True, metavar="ID", help="who you are")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    return parser


@without_collector()
def next_action(arguments: Sequence[str]) -> int:
    """Say what a participant should do now."""
    options = quick(arguments, NEXT) or next_parser().parse_args(arguments)
    from acp_core.protocols.folder.conduct import waiting

    return run(lambda: waiting.tell_next(options.folder, options.participant, options.json))


def wait_parser() -> Parser:
    """The arguments of `acp wait`."""
    from acp_core.protocols.kit.argparse_parser import Parser

    parser = Parser(
        prog=program("wait"),
        description="Wait until it is a participant's turn, or the collaboration has ended. "
        "Exit codes: 0 ready; 1 timeout; 2 the collaboration cannot be read.",
    )
    parser.add_argument("--folder", required=True, help="the collaboration")
    parser.add_argument("--participant", required=True, metavar="ID", help="who you are")
    parser.add_argument(
        "--interval", type=float, default=2.0, metavar="S", help="seconds between looks (2)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=None,
        metavar="S",
        help="seconds; 0 waits for ever (1800, with deliverables 0)",
    )
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser


def wait(arguments: Sequence[str]) -> int:
    """Wait until it is a participant's turn."""
    options = wait_parser().parse_args(arguments)
    from acp_core.protocols.folder.conduct import waiting

    return run(
        lambda: waiting.wait_for_turn(
            options.folder,
            options.participant,
            interval=options.interval,
            timeout=options.timeout,
            as_json=options.json,
        )
    )


def validate_parser() -> Parser:
    """The arguments of `acp validate`."""
    from acp_core.protocols.kit.argparse_parser import Parser

    parser = Parser(
        prog=program("validate"),
        description="Check a collaboration against the protocol. Exit codes: 0 valid; 1 valid "
        "with warnings; 2 invalid.",
    )
    parser.add_argument("path", metavar="FOLDER", nargs="?", help="the collaboration")
    parser.add_argument("--folder", help="the same")
    parser.add_argument("--strict", action="store_true", help="advice counts as a warning")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    return parser


@without_collector()
def validate(arguments: Sequence[str]) -> int:
    """Check a collaboration against the protocol."""
    return run(lambda: _validate(arguments))


def _validate(arguments: Sequence[str]) -> int:
    options: Any = quick(arguments, VALIDATE)
    folder = options and options.folder
    if not folder:
        parser = validate_parser()
        options = parser.parse_args(arguments)
        folder = options.folder or options.path
        if folder is None:
            parser.error("the following arguments are required: --folder")
    from acp_core.protocols.folder import rules

    report = rules.validate(folder)
    code = report.exit_code(options.strict)
    if options.json:
        findings = [
            {
                "code": finding.code,
                "severity": finding.severity,
                "message": finding.message,
                "file": finding.file,
                "line": finding.line,
                "seq": finding.seq,
            }
            for finding in report.findings
        ]
        verdict = ("valid", "warnings", "invalid")[report.verdict]
        say_json({"schema": "acp.validate/1", "verdict": verdict, "findings": findings})
        return code
    for line in (*report.lines(), *report.advice_lines()):
        say(line)
    return code
