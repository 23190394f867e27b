"""A run in forms that other programs read: a CSV file of its turns, and an OpenTelemetry trace.

The CSV file has a line for each turn, for spreadsheets. The trace is the JSON form of OTLP: the
trace is the run; every stay in a phase is a span of it, every turn a span of its phase, and a turn
links to the one that it answers. Source: OpenTelemetry protocol, "JSON Protobuf Encoding", and the
semantic conventions for generative AI agents.
"""

from __future__ import annotations

import csv
import hashlib
import io
from datetime import datetime
from typing import Any

from acp_core import __version__
from acp_core.history.reports.report import Report, of_events
from acp_core.model import Phase, Status, Visit

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
