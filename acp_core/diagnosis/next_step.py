"""What a person would do next in a collaboration: meet its first need, or start what runs it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from acp_core.diagnosis import actions
from acp_core.diagnosis.observer import Observer
from acp_core.loops.acts.names import LAUNCH, NAMES
from acp_core.model import Action, Intent, Snapshot, SourceState, Status
from acp_core.person.attention import Attention
from acp_core.protocols.contract import Collaboration

IDLE = "acp runs no agent here"
"""What is said of a collaboration that goes on only if somebody acts by hand."""


class NextStep(NamedTuple):
    """An act that is the next thing to do.

    Attributes:
        reason: Why, as a sentence without its full stop.
        action: The act's name.
        label: What it is called.
        given: Inputs of it, by name.
    """

    reason: str
    action: str
    label: str
    given: tuple[tuple[str, str], ...] = ()


def is_idle(snapshot: Snapshot) -> bool:
    """Whether no process at work is known here, though an agent is waited for, or nobody."""
    people = {each.id for each in snapshot.participants if each.kind == "human"}
    by_hand = snapshot.turns and all(turn.participant in people for turn in snapshot.turns)
    live = snapshot.status is Status.ACTIVE and snapshot.source.state is SourceState.LIVE
    return live and not snapshot.runners and not by_hand


def starting(offered: Iterable[Action]) -> Action | None:
    """The act that starts what runs a collaboration: loops where it has turns, else the first one."""
    names = NAMES - {LAUNCH}
    starts = [each for each in offered if each.intent is Intent.START and each.name not in names]
    return next((each for each in starts if each.name == LAUNCH), next(iter(starts), None))


def next_step(collaboration: Collaboration, attention: Attention, now: datetime) -> NextStep | None:
    """Read a collaboration anew, and say what is to be done next; None where there is nothing.

    Args:
        collaboration: As it was opened.
        attention: What the person acknowledged.
        now: The time (aware, UTC).

    Raises:
        OSError: It cannot be read.
    """
    observer = Observer()
    seen = observer.diagnosed(observer.diagnosis(), collaboration, collaboration.refresh(now), now)
    offered = actions.actions(collaboration, seen, now, attention)
    labels = {each.name: each.label for each in offered}
    for need in attention.open_needs(seen):
        if need.action in labels:
            return NextStep(need.text, need.action, labels[need.action], need.given)
    start = starting(offered) if is_idle(seen) else None
    return NextStep(IDLE, start.name, start.label) if start is not None else None
