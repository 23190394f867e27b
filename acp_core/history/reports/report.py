"""What a report tells of a collaboration, as plain data of which each form is made; and its forms for programs.

With it what documents held at each event, for the replay in a report. The CSV file has a line for
each turn, for spreadsheets. The trace is the JSON form of OTLP: the trace is the run; every stay in a
phase is a span of it, every turn a span of its phase, and a turn links to the one that it answers.
Source: OpenTelemetry protocol, "JSON Protobuf Encoding", and the semantic conventions for generative
AI agents.
"""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from typing import Any

from acp_core import __version__
from acp_core.files.secrets import mask
from acp_core.history.chart import Chart
from acp_core.history.metrics import Change, Metrics, Point
from acp_core.history.moments import EVENT
from acp_core.history.past import Past
from acp_core.history.store import BadRecording
from acp_core.history.versions import Known
from acp_core.model import Panel, Phase, Row, Severity, Snapshot, Status, Visit, format
from acp_core.model.format import names_in, sentence_case
from acp_core.model.past import PastTurn
from acp_core.model.text import clean

REMOVED = "[removed]"

_MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")

_HEADER = re.compile(
    r"(?i)\b(authorization|proxy-authorization|cookie|set-cookie)(\s*:\s*)[^\n]{1,4000}"
)


@dataclass(frozen=True, slots=True)
class Text:
    """A document's text as it is now, and since when, as far as known; ``kind`` as in `Document`."""

    document: str
    title: str
    text: str
    changed: datetime | None
    kind: str = "markdown"

    @property
    def has_title(self) -> bool:
        """Whether it begins with its title as a heading."""
        return self.text.lstrip().partition("\n")[0].strip() == f"# {self.title}"


@dataclass(frozen=True, slots=True)
class Version:
    """What a document held from an event on, until its next version.

    Attributes:
        document: its id.
        event: the id of the first event at which it is known to have held that.
        since: when it was written, as far as known; ``source`` says where that is known from.
        text: safe to show; None where ``note`` says why there is none.
    """

    document: str
    event: str
    since: datetime | None
    source: str
    text: str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a report may tell.

    Attributes:
        snapshot: the collaboration as it was read at ``made``.
        turns: whose turn it was when, oldest first.
        metrics: the figures.
        texts: the documents.
        known: how much of the past is known, in sentences.
        made: when the report was made.
        versions: of the documents, by document and then oldest first; for a replay.
        drawn: who did what when; None where no times are recorded.
        findings, counts: how many there were when.
        tool_uses: what agents did in live turns, as far as recorded.
    """

    snapshot: Snapshot
    turns: tuple[PastTurn, ...]
    metrics: Metrics
    texts: tuple[Text, ...]
    known: tuple[str, ...]
    made: datetime
    versions: tuple[Version, ...] = ()
    drawn: Chart | None = None
    findings: tuple[Point, ...] = ()
    counts: tuple[Change, ...] = ()
    tool_uses: Panel | None = None

    @property
    def outcome(self) -> tuple[Panel | Text, ...]:
        """What came out and what was decided; of an unfinished one without the final document."""
        snapshot = self.snapshot
        texts = {each.document: each for each in self.texts}
        names = list(snapshot.outcome)
        if snapshot.status is not Status.COMPLETED and names and snapshot.panel(names[0]) is None:
            del names[0]
        named = (snapshot.panel(name) or texts.get(name) for name in names)
        return tuple(
            each for each in named if isinstance(each, Text) or (each is not None and each.rows)
        )

    @property
    def other_texts(self) -> tuple[Text, ...]:
        """The documents that the outcome does not hold."""
        told = {each.document for each in self.outcome if isinstance(each, Text)}
        return tuple(each for each in self.texts if each.document not in told)

    @property
    def status_sentences(self) -> tuple[str, ...]:
        """Where it stands, in sentences: the headline, who it waits for, what the validator found."""
        snapshot = self.snapshot
        found = [sentence_case(snapshot.headline, names_in(snapshot))]
        if snapshot.turns:
            names = dict.fromkeys(turn.participant for turn in snapshot.turns)
            found.append(f"Waiting for {', '.join(names)}.")
        if errors := snapshot.count(Severity.ERROR):
            found.append(f"Validation found {format.count(errors, 'error')}: see Findings.")
        return tuple(filter(None, found))

    @property
    def disagreements(self) -> tuple[Panel, ...]:
        """Which points were raised by whom, and how each was answered, beyond those of the outcome."""
        panels = (each for each in self.snapshot.panels if each.disagreement and each.rows)
        return tuple(each for each in panels if each not in self.outcome)

    @property
    def panels(self) -> tuple[Panel, ...]:
        """The tables that follow the events: disagreements, and what agents did."""
        return (*self.disagreements, *((self.tool_uses,) if self.tool_uses else ()))


def redacted(report: Report) -> Report:
    """The same without keys, passwords, headers of authorisation and mail addresses, wherever."""
    hidden: Report = _redact_value(report)
    return hidden


def _redact_value(value: Any) -> Any:
    """A value of the model with every text in it as `redact_text` leaves it."""
    if isinstance(value, Enum):
        return value
    if isinstance(value, str):
        return redact_text(value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: _redact_value(getattr(value, each.name)) for each in fields(value)}
        return replace(value, **changed)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(_redact_value, value))
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return tuple(map(_redact_value, value))
    return value


def redact_text(text: str) -> str:
    """A text without what looks like a secret or a mail address."""
    text = _HEADER.sub(lambda found: f"{found[1]}{found[2]}{REMOVED}", text)
    return _MAIL.sub(REMOVED, mask(text))


def texts(snapshot: Snapshot, load: Callable[[str], Any]) -> tuple[Text, ...]:
    """The documents that people read, as they are now; those that are not there are left out.

    Args:
        snapshot: of the collaboration.
        load: gives a document's `acp_core.model.DocumentText` by its id.
    """
    found: list[Text] = []
    for document in snapshot.documents:
        if document.group == "state" or document.state != "present":
            continue
        loaded = load(document.id)
        if loaded.text:
            text = clean(loaded.text)
            found.append(Text(document.id, document.title, text, document.changed, document.kind))
    return tuple(found)


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a panel's row, with a sign before the first one where the row is checked or not."""
    sign = {True: "✓ ", False: "○ ", None: ""}[row.checked]
    return (sign + row.cells[0], *row.cells[1:]) if row.cells else ()


def of_events(events: Sequence[Any]) -> dict[str, str]:
    """From an event's id to the one that it replies to."""
    return {event.id: event.reply_to for event in events if event.reply_to}


MOST = 4_000_000  # characters of all versions together


def replay_versions(past: Past, documents: Sequence[Text], most: int = MOST) -> tuple[Version, ...]:
    """The versions of these documents, as far as they are known; only changes are told.

    Args:
        past: of the collaboration.
        documents: which.
        most: characters of all of them together; a version that would be more is left out.
    """
    events = [
        (place, moment.name) for place, moment in enumerate(past.moments) if moment.kind == EVENT
    ]
    found: list[Version] = []
    for document in documents:
        before: str | None = None
        for place, event in events:
            try:
                _, known = past.between(document.document, place, place)
            except KeyError:  # its file is not one of those that are kept
                break
            key = "" if known is None else f"{known.since} {known.key}"
            if key == before:
                continue
            before = key
            version = _version(document.document, event, known, most)
            most -= len(version.text or "")
            found.append(version)
    return tuple(found)


def _version(document: str, event: str, known: Known | None, most: int) -> Version:
    if known is None:
        return Version(document, event, None, "", None, "not recorded")
    since = datetime.fromtimestamp(known.since, UTC)
    if known.size is None:
        return Version(document, event, since, known.source, None, "not there")
    try:
        text = clean(known.read().decode("utf-8", "replace"))
    except (OSError, KeyError, BadRecording):
        return Version(document, event, since, known.source, None, "cannot be read")
    if len(text) > most:
        return Version(document, event, since, known.source, None, "left out: too long")
    return Version(document, event, since, known.source, text)


COLUMNS = (
    "participant", "since", "since_event", "ended", "event", "kind", "phase", "round", "seconds",
)  # fmt: skip

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def turns_csv(report: Report) -> str:
    """The lines. Times are ISO 8601 in UTC; what is not recorded is empty.

    A cell that a spreadsheet would take for a formula begins with an apostrophe.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for turn in report.turns:
        seconds = ""
        if turn.since and turn.ended and turn.ended >= turn.since:
            seconds = f"{(turn.ended - turn.since).total_seconds():g}"
        cells = (
            turn.participant, _time(turn.since), turn.since_event or "", _time(turn.ended),
            turn.event or "", turn.kind, turn.phase, str(turn.round), seconds,
        )  # fmt: skip
        writer.writerow([_safe_cell(cell) for cell in cells])
    return out.getvalue()


def _time(at: datetime | None) -> str:
    return at.isoformat().replace("+00:00", "Z") if at else ""


def _safe_cell(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell


_INTERNAL = 1  # SPAN_KIND_INTERNAL

_OK, _ERROR = 1, 2  # STATUS_CODE_OK, STATUS_CODE_ERROR

Json = dict[str, Any]


def trace(report: Report) -> Json:
    """The whole trace. Ids follow from the collaboration, so that a second export is the same.

    What has no recorded time has no span: the root says how many were left out.
    """
    snapshot = report.snapshot
    trace_id = _id(16, snapshot.key, snapshot.started)
    start = snapshot.started
    if start is None:
        return _resource(report, [])
    end = max(filter(None, (snapshot.changed, start, *(turn.ended for turn in report.turns))))
    root = _span(trace_id, _id(8, trace_id, "run"), None, snapshot.name, start, end)
    spans, left_out = [root], 0
    stays: list[tuple[Phase, Visit, str]] = []
    listed = [(phase, visit) for phase in snapshot.phases for visit in phase.visits]
    for number, (phase, visit) in enumerate(listed):
        if visit.entered is None or visit.entered > (visit.left or end):
            left_out += 1
            continue
        name = _id(8, trace_id, "phase", number)
        stays.append((phase, visit, name))
        until = visit.left or end
        span = _span(trace_id, name, root["spanId"], phase.label, visit.entered, until)
        span["attributes"] = _attributes({"acp.phase": phase.id, "acp.round": visit.round})
        spans.append(span)
    answers = of_events(snapshot.events)
    ids = {turn.event: _id(8, trace_id, "turn", turn.event) for turn in report.turns if turn.event}
    for turn in report.turns:
        if turn.since is None or turn.ended is None or turn.event is None:
            left_out += 1
            continue
        parent = next(
            (
                name
                for phase, visit, name in reversed(stays)
                if phase.id == turn.phase and visit.entered and visit.entered <= turn.since
            ),
            root["spanId"],
        )
        name = f"invoke_agent {turn.participant}"
        span = _span(trace_id, ids[turn.event], parent, name, turn.since, turn.ended)
        span["attributes"] = _attributes(
            {
                "gen_ai.operation.name": "invoke_agent",
                "gen_ai.agent.name": turn.participant,
                "acp.phase": turn.phase,
                "acp.round": turn.round,
                "acp.event": turn.event,
                "acp.event.kind": turn.kind,
            }
        )
        answered = ids.get(answers.get(turn.event, ""))
        if answered:
            span["links"] = [{"traceId": trace_id, "spanId": answered}]
        spans.append(span)
    root["attributes"] = _attributes(
        {
            "acp.protocol": snapshot.protocol,
            "acp.status": snapshot.status.value,
            "acp.objective": snapshot.objective,
            "acp.events": len(snapshot.events),
            "acp.spans_without_time": left_out,
        }
    )
    failed = snapshot.status is Status.BLOCKED
    if snapshot.status in (Status.COMPLETED, Status.BLOCKED):
        root["status"] = {"code": _ERROR if failed else _OK}
    return _resource(report, spans)


def _resource(report: Report, spans: list[Json]) -> Json:
    about = {"service.name": "acp", "service.version": __version__}
    about["acp.collaboration"] = report.snapshot.name
    scope = {"name": "acp", "version": __version__}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(about)},
                "scopeSpans": [{"scope": scope, "spans": spans}],
            }
        ]
    }


def _span(
    trace_id: str, span_id: str, parent: str | None, name: str, start: datetime, end: datetime
) -> Json:
    span: Json = {"traceId": trace_id, "spanId": span_id, "name": name, "kind": _INTERNAL}
    if parent is not None:
        span["parentSpanId"] = parent
    span["startTimeUnixNano"] = _nanoseconds(start)
    span["endTimeUnixNano"] = _nanoseconds(end)
    return span


def _attributes(values: Json) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in values.items() if value != ""]


def _value(value: object) -> Json:
    if isinstance(value, int):  # 64-bit integers are strings in this encoding
        return {"intValue": str(value)}
    return {"stringValue": str(value)}


def _nanoseconds(at: datetime) -> str:
    whole = int(at.replace(microsecond=0).timestamp())
    return str(whole * 1_000_000_000 + at.microsecond * 1_000)


def _id(octets: int, *parts: object) -> str:
    joined = "\0".join(map(str, parts)).encode(errors="surrogateescape")
    return hashlib.sha256(joined).hexdigest()[: 2 * octets]
