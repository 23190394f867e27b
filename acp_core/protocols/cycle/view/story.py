"""What a cycle tells of its past: the agents' runs as turns, and what can be counted.

Source: development cycle specification, "Iteration Flow with Communication".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from acp_core.model import Event
from acp_core.model.story import Count, PastTurn, Story
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.schema import AGENTS, Cycle

_ENDS = ("completed", "failed")
_RUN = re.compile(r"\brun (\d{1,9})-")


def story(cycle: Cycle, events: Sequence[Event]) -> Story:
    """The agents' runs, oldest first, and counts of the whole.

    Args:
        cycle: the cycle.
        events: its timeline, oldest first.
    """
    return Story(tuple(_turns(events)), tuple(_counts(cycle)))


def _turns(events: Sequence[Event]) -> Iterator[PastTurn]:
    began: dict[str, Event] = {}
    for event in events:
        if event.actor not in AGENTS:
            continue
        if event.kind == "started":
            began[event.actor] = event
        elif event.kind in _ENDS and event.actor in began:
            yield _turn(began.pop(event.actor), event)
    for event in began.values():
        yield _turn(event, None)


def _turn(start: Event, end: Event | None) -> PastTurn:
    named = _RUN.search(start.summary)
    return PastTurn(
        start.actor,
        start.at,
        start.id,
        end.at if end else None,
        end.id if end else None,
        end.kind if end else "",
        start.actor,
        int(named[1]) if named else 1,
    )


def _counts(cycle: Cycle) -> Iterator[Count]:
    yield Count("iterations", cycle.iteration)
    yield Count("blockers", len(cycle.coordination("blockers")))
    yield Count("decisions", len(cycle.coordination("pending_decisions")))
    yield Count("pieces of feedback", len(cycle.coordination("feedback_log")))
    yield Count("failed runs", len(schema.objects(cycle.value.get("phase_errors"))))
    yield Count("failing tests", state.tests(cycle).failed)


def durations(turns: Sequence[PastTurn], participant: str) -> list[float]:
    """How many seconds an agent's runs took, oldest first."""
    return [
        (each.ended - each.since).total_seconds()
        for each in turns
        if each.participant == participant and each.since and each.ended
    ]
