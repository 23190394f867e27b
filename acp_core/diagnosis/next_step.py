"""What a person would do next in a collaboration: meet its first need, or start what runs it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from acp_core.diagnosis import actions
from acp_core.diagnosis.idle import IDLE, is_idle, starting
from acp_core.diagnosis.observer import Observer
from acp_core.model.sentence import continued, names_in
from acp_core.person.attention import Attention
from acp_core.protocols.contract import Collaboration


class NextStep(NamedTuple):
    """An act that is the next thing to do.

    Attributes:
        reason: Why, in words that go on after others, without a full stop.
        action: The act's name.
        label: What it is called.
        given: Inputs of it, by name.
    """

    reason: str
    action: str
    label: str
    given: tuple[tuple[str, str], ...] = ()


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
            reason = continued(need.text, names_in(seen))
            return NextStep(reason, need.action, labels[need.action], need.given)
    start = starting(offered) if is_idle(seen) else None
    return NextStep(IDLE, start.name, start.label) if start is not None else None
