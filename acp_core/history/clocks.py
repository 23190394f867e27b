"""Clocks that go backward: times of events that are earlier than those of events before them.

Such a log is not lawful, and it is told of nevertheless. Whatever bears such a time is taken to have
happened when the latest event before it did: no span is negative then, and none reaches back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from acp_core.model import Event, Phase, Snapshot
from acp_core.model.past import PastTurn, marks


def forward(
    snapshot: Snapshot, turns: Sequence[PastTurn]
) -> tuple[Snapshot, tuple[PastTurn, ...], str]:
    """A collaboration and its turns with times that never go back, and what is uncertain by that.

    The very same, and "", where they never did.
    """
    late, first = _backward(snapshot.events)
    if not late:
        return snapshot, tuple(turns), ""

    def moved(at: datetime | None) -> datetime | None:
        return late.get(at, at) if at is not None else None

    events = tuple(each._replace(at=moved(each.at)) for each in snapshot.events)
    phases = tuple(_phase(each, late) for each in snapshot.phases)
    taken = tuple(each._replace(since=moved(each.since), ended=moved(each.ended)) for each in turns)
    doubt = f"event times go backward at event {first}: durations are uncertain"
    return replace(snapshot, events=events, phases=phases), taken, doubt


def _phase(phase: Phase, late: Mapping[datetime, datetime]) -> Phase:
    visits = tuple(
        replace(
            each,
            entered=late.get(each.entered, each.entered) if each.entered else None,
            left=late.get(each.left, each.left) if each.left else None,
        )
        for each in phase.visits
    )
    return replace(phase, visits=visits)


def _backward(events: Sequence[Event]) -> tuple[dict[datetime, datetime], str]:
    """For each time that goes back, the one that is taken instead; and the first such event's id.

    Each source has a clock of its own.
    """
    latest: dict[str, datetime] = {}
    found: dict[datetime, datetime] = {}
    first = ""
    for event in marks(events):
        if event.at is None:
            continue
        before = latest.get(event.source, event.at)
        if event.at < before:
            found[event.at] = before
            first = first or event.id
        latest[event.source] = max(before, event.at)
    return found, first
