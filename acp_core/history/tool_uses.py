"""What agents did in live turns, as far as their loops were recorded: each use of a tool."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from acp_core.history.schema import LoopChange
from acp_core.model import Panel, Row
from acp_core.model.format import exact
from acp_core.model.text import clean_line

_MOST = 200  # uses in a report, the newest
_LONGEST = 200  # characters of one


class RecordedUse(NamedTuple):
    """A use of a tool: when (seconds since 1970), whose agent, on what, and how it ended."""

    at: float
    participant: str
    what: str
    status: str


def tool_uses(loops: Sequence[LoopChange]) -> Iterator[RecordedUse]:
    """Every use of a tool, run by run.

    Args:
        loops: the recorded states of participants' loops, oldest first.
    """
    known: set[tuple[str, str]] = set()
    for change in loops:
        run = json.loads(change.content).get("run")
        calls = run.get("calls") if isinstance(run, dict) else None
        if not calls or (change.participant, str(run.get("started"))) in known:
            continue
        known.add((change.participant, str(run.get("started"))))
        for at, what, status in calls:
            yield RecordedUse(at, change.participant, what, status)


def panel(loops: Sequence[LoopChange], utc: bool) -> Panel | None:
    """The newest of them as a table; None where none is known.

    Args:
        loops: see `tool_uses`.
        utc: show times in UTC rather than in local time.
    """
    found = sorted(tool_uses(loops))[-_MOST:]
    rows = tuple(
        Row(
            (
                exact(datetime.fromtimestamp(each.at, UTC), utc),
                clean_line(each.participant, _LONGEST),
                clean_line(each.what, _LONGEST),
                clean_line(each.status, _LONGEST),
            )
        )
        for each in found
    )
    columns = ("when", "agent of", "what it did", "how it ended")
    return Panel("tool_uses", "What agents did", "table", columns, rows) if rows else None
