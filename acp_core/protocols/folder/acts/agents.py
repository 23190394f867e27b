"""The commands that agents run: init, append, next, wait and validate.

Source: folder protocol specification, "Initialization", "Events", "Polling And Watchers" and
"Validation" for flags, output and exit codes. They are described in `table_agents`; what is written
plainly is read here without it. Standard library only; what only one command needs is imported there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from acp_core.files.journal import without_collector
from acp_core.model.action_field import PARTICIPANTS, Field, Kind
from acp_core.model.errors import Refused
from acp_core.model.light import TYPE_CHECKING, Any
from acp_core.protocols.folder.schema import records
from acp_core.protocols.kit.command_line import (
    DRY_RUN,
    JSON,
    NAMED_FOLDER,
    UNLOCKED,
    close_output,
    is_script,
    program,
    quick,
    run,
    say,
    say_json,
    warn,
)
from acp_core.protocols.registry import load

if TYPE_CHECKING:
    from acp_core.model.action import Preview
    from acp_core.protocols.folder.write.append import Appended, Request
    from acp_core.protocols.kit.values import Values

TABLE = "acp_core.protocols.folder.acts.table_agents"
_SESSION = "ACP_LIVE_SESSION"  # as `acp_core.agents.live.turn.MARK`, which would cost an import
_WHO = Field("participant", "Participant", "Name the participant that you act as.", Kind.CHOICE, required=True,
             metavar="ID", suggests=PARTICIPANTS)  # fmt: skip
NEXT = (NAMED_FOLDER, _WHO)
WAIT = (
    *NEXT,
    Field("interval", help="Time between two checks.", kind=Kind.DURATION, default=2.0),
    Field(
        "timeout", kind=Kind.DURATION,
        help="Time limit, 0 for none; defaults to 1800 seconds, and to 0 with deliverables.",
    ),
)  # fmt: skip
VALIDATE = (
    NAMED_FOLDER,
    Field("strict", help="Report advice as warnings.", kind=Kind.FLAG),
)
FORCED = UNLOCKED._replace(aliases=("--force",))
APPEND = (
    _WHO,
    Field(
        "event", "Event", f"Name the event: one of {', '.join(records.EVENTS_V2)}.", Kind.CHOICE, records.EVENTS_V2, required=True,
        metavar="EVENT",
    ),
    Field("summary", "Summary", "Summarize the event in one short sentence [required without --summary-file].",
          optional=True),
    Field("summary_file", help="Read the summary from this file (-: standard input).", kind=Kind.FILE,
          optional=True, form=False),
    Field("doc", "Document", "Name the document that the event is about, relative to the folder.",
          optional=True, metavar="FILE"),
    Field("reply_to", "Replies to", "Name the event that this event answers.", Kind.NUMBER, metavar="SEQ"),
    Field("role", "Role", "Role of the deliverable (deliverable events only).", Kind.CHOICE, ("primary", "supporting"),
          optional=True),
    Field("sha256", "SHA-256", "Digest of the deliverable (deliverable events only); computed for a freeze.", optional=True,
          metavar="DIGEST"),
    Field("review_file", help="Also write this text to review.md (-: standard input).",
          kind=Kind.FILE, optional=True, form=False),
    Field("review", "Review", "Also write this text to review.md.", Kind.LINES, optional=True),
    Field("expect_seq", "Expected", "Append only if the last event has this seq.", Kind.NUMBER, metavar="SEQ"),
    Field("key", "Key", "Append at most one event with this key, so that a retry is safe.", optional=True),
    Field("take", help="Let the participant act on this machine, wherever it acted before (shared collaborations).",
          kind=Kind.FLAG, form=False),
    FORCED,
)  # fmt: skip
PLAIN = {
    "next": (*NEXT, JSON),
    "wait": (*WAIT, JSON),
    "append": (NAMED_FOLDER, *APPEND, JSON, DRY_RUN),
    "validate": (*VALIDATE, JSON),
}
"""What is read without a parser where it is written plainly: what agents run at every turn."""


def _run(name: str, arguments: Sequence[str], body: Callable[[Any], int]) -> int:
    """Run a command; what is not written plainly is read by the parser of its description."""
    fields = PLAIN.get(name)

    def command() -> int:
        plain = quick(arguments, fields) if fields else None
        return body(plain or _parsed(name, arguments))

    return run(command, on_error=_say_error if "--json" in arguments else None)


def _parsed(name: str, arguments: Sequence[str]) -> Values:
    from acp_core.protocols.kit.parser import parse

    return parse(load(f"{TABLE}:SPECS")[name], program(name), arguments)


def _say_error(message: str, code: int) -> None:
    from acp_core.protocols.kit.parser import say_error

    say_error(message, code)


def init(arguments: Sequence[str]) -> int:
    """Start a collaboration."""
    return _run("init", arguments, start)


def start(values: Values) -> int:
    """Start a collaboration, as the arguments say; the exit code."""
    from acp_core.protocols.folder.acts.previewing import preview_init, wish
    from acp_core.protocols.folder.write.init import initialise

    if values.dry_run:
        return _show("init", preview_init(values, values.folder), values)
    started = initialise(values.folder, wish(values), resume=values.resume, force=values.unlocked)
    for warning in started.warnings:
        warn(warning)
    if values.json:
        say_json({"schema": "acp.init/1", **started._asdict()})
    elif started.existed:
        say(f"Collaboration folder already exists: {values.folder}")
        if started.created:
            say(f"created what was missing: {', '.join(started.created)}")
    else:
        title = "ACP schema v2" if started.dialect == records.V2 else "ACP"
        say(f"Initialized {title} collaboration folder: {values.folder}")
        if started.dialect == records.V1:
            say("state seq: 1")
        if started.kept:
            say(f"kept existing files: {', '.join(started.kept)}")
    return 0


@without_collector()  # here and below: the process ends before there is garbage worth a search
def append(arguments: Sequence[str]) -> int:
    """Append an event."""
    return _run("append", arguments, append_event)


def append_event(values: Values) -> int:
    """Append an event, as the arguments say; the exit code."""
    from acp_core.files.shield import Shield
    from acp_core.protocols.folder.write.append import RACED, refuse_another_participant
    from acp_core.protocols.folder.write.append import append as write

    if mark := os.environ.get(_SESSION):
        refuse_another_participant(mark, values.folder, values.participant)
    request = request_of(values)
    if values.dry_run:
        from acp_core.protocols.folder.acts.previewing import preview

        return _show("append", preview(request), values)
    with Shield() as shield:
        appended = write(request, before_write=shield.up)
        try:
            _report(appended, request, values.json)
            sys.stdout.flush()
        except OSError:  # the event is in the log, whether or not anybody reads so
            close_output()
    return RACED if appended.raced else 0


def request_of(values: Values) -> Request:
    """The event that the arguments ask for.

    Raises:
        Refused: a file that it names cannot be read, or there is no summary.
    """
    from acp_core.protocols.folder.write.append import Request

    return Request(
        folder=values.folder,
        participant=values.participant,
        event=values.event,
        summary=_summary(values.summary, values.summary_file),
        doc=values.doc,
        reply_to=values.reply_to,
        role=values.role,
        sha256=values.sha256,
        key=values.key,
        expect_seq=values.expect_seq,
        review=_review(values),
        force=values.unlocked,
        take=values.take,
    )


def _show(name: str, preview: Preview, values: Values) -> int:
    from acp_core.protocols.kit.parser import show

    return show(f"acp.{name}/1", name, preview, as_json=values.json)


def _report(appended: Appended, request: Request, as_json: bool) -> None:
    entry = appended.entry
    for warning in appended.warnings:
        warn(warning)
    if appended.raced:
        check = "validate_collaboration.py" if is_script() else "acp validate"
        warn(
            f"seq {entry.name} was appended, but a program without a lock wrote at the same moment: "
            f"do not repeat the command; run `{check}`"
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


def _summary(text: str | None, path: str | None) -> str:
    """The summary as one line, from the option or from the file, in which no shell reads it."""
    if path and text:
        raise Refused("give either --summary or --summary-file")
    if path:
        return " ".join(_text_of("--summary-file", path).split())
    if text is None:
        raise Refused("the following arguments are required: --summary")
    return text


def _review(values: Values) -> str | None:
    """The text for review.md, from the option or from the file; None where there is none."""
    text: str | None = values.review
    path = values.review_file
    if not (text or path):
        return None
    if text and path:
        raise Refused("give either --review or --review-file")
    if values.event != "review_submitted":
        option = "--review-file" if path else "--review"
        raise Refused(f"{option} requires --event review_submitted")
    return _text_of("--review-file", path) if path else text


def _text_of(option: str, path: str) -> str:
    """The text of a file; "-" reads the standard input."""
    if path == "-":
        data = sys.stdin.buffer.read(records.MAX_DOCUMENT + 1)
    else:
        from acp_core.files.reading import Unreadable, read_bounded

        try:
            data = read_bounded(path, records.MAX_DOCUMENT)
        except Unreadable as error:
            raise Refused(f"{option} {path}: {error}") from None
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{option} {path}: not UTF-8 at byte {error.start + 1}") from None


@without_collector()
def next_action(arguments: Sequence[str]) -> int:
    """Show what a participant should do now."""
    return _run("next", arguments, say_next)


def say_next(values: Values) -> int:
    """Say what a participant should do now; the exit code."""
    from acp_core.protocols.folder.conduct import waiting

    return waiting.tell_next(values.folder, values.participant, values.json)


def wait(arguments: Sequence[str]) -> int:
    """Wait until it is a participant's turn."""
    return _run("wait", arguments, wait_for_turn)


def wait_for_turn(values: Values) -> int:
    """Wait until it is a participant's turn; the exit code."""
    from acp_core.protocols.folder.conduct import waiting

    return waiting.wait_for_turn(
        values.folder,
        values.participant,
        interval=values.interval,
        timeout=values.timeout,
        as_json=values.json,
    )


@without_collector()
def validate(arguments: Sequence[str]) -> int:
    """Check a collaboration against the protocol."""
    return _run("validate", arguments, check)


def check(values: Values) -> int:
    """Check a collaboration against the protocol; the exit code."""
    from acp_core.protocols.folder.rules import checks

    report = checks.validate(values.folder)
    code = report.exit_code(values.strict)
    if values.json:
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
