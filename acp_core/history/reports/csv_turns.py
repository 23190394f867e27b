"""The turns of a collaboration as CSV: one line each, for spreadsheets."""

from __future__ import annotations

import csv
import io
from datetime import datetime

from acp_core.history.reports.report import Report

COLUMNS = (
    "participant", "since", "since_event", "ended", "event", "kind", "phase", "round", "seconds",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def render(report: Report) -> str:
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
        writer.writerow([_safe(cell) for cell in cells])
    return out.getvalue()


def _time(at: datetime | None) -> str:
    return at.isoformat().replace("+00:00", "Z") if at else ""


def _safe(cell: str) -> str:
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
