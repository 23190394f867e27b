"""What a cycle tells of its past: the agents' runs as turns, and what can be counted.

Source: development cycle specification, "Iteration Flow with Communication".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from acp_core.model import Event
from acp_core.model.past import Count, PastTurn, Story
from acp_core.protocols.cycle import state
from acp_core.protocols.cycle.schema import AGENTS, Cycle
from acp_core.protocols.cycle.view.timeline import OVER

_RUN = re.compile(r"\brun (\d{1,9})-")
_ONLY = re.compile(r"[a-z_]{1,40} in iteration (\d{1,9})")


def story(cycle: Cycle, events: Sequence[Event]) -> Story:
    """The agents' runs, oldest first, and counts of the whole.

    Args:
        cycle: the cycle.
        events: its timeline, oldest first.
    """
    return Story(tuple(_turns(cycle, events)), tuple(_counts(cycle)))


def _turns(cycle: Cycle, events: Sequence[Event]) -> Iterator[PastTurn]:
    began: dict[str, Event] = {}
    for event in events:
        if event.actor not in AGENTS:
            continue
        if event.kind == "started":
            began[event.actor] = event
        elif event.kind in OVER and event.actor in began:
            yield _turn(cycle, began.pop(event.actor), event)
        elif event.line is None and (only := _ONLY.fullmatch(event.summary)):
            who, number = event.actor, int(only[1])
            yield PastTurn(who, None, None, event.at, event.id, event.kind, who, number)
    for event in began.values():
        yield _turn(cycle, event, None)


def _round(cycle: Cycle, start: Event) -> int:
    """The iteration in which a run began: as it says, else by the records of the iterations."""
    named = _RUN.search(start.summary)
    if named:
        return int(named[1])
    found = 1
    for record in cycle.state.iterations:
        at, number = record.started_at, record.number
        if at and start.at and at <= start.at and number:
            found = max(found, number)
    return found


def _turn(cycle: Cycle, start: Event, end: Event | None) -> PastTurn:
    return PastTurn(
        start.actor,
        start.at,
        start.id,
        end.at if end else None,
        end.id if end else None,
        end.kind if end else "",
        start.actor,
        _round(cycle, start),
    )


def _counts(cycle: Cycle) -> Iterator[Count]:
    yield Count("iterations", cycle.iteration)
    yield Count("blockers", len(cycle.state.blockers))
    yield Count("decisions", len(cycle.state.decisions))
    yield Count("pieces of feedback", len(cycle.state.feedback))
    yield Count("failed runs", len(cycle.state.phase_errors))
    yield Count("failing tests", state.tests(cycle).failed)


def durations(turns: Sequence[PastTurn], participant: str) -> list[float]:
    """How many seconds an agent's runs took, oldest first."""
    return [
        (each.ended - each.since).total_seconds()
        for each in turns
        if each.participant == participant and each.since and each.ended
    ]
