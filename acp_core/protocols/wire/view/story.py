"""Who was waited for, and what can be counted, as an agent's log tells it."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import NamedTuple

from acp_core.files.decode import text
from acp_core.model.past import Count, PastTurn, Story
from acp_core.model.text import clean_name
from acp_core.protocols.wire.read import log_entries
from acp_core.protocols.wire.read.folder import Reading
from acp_core.protocols.wire.schema.basics import TERMINAL, Json, time_of
from acp_core.protocols.wire.view import build

_WORK = ("submitted", "working")
_OVER = {state.value for state in TERMINAL}
_SOMEBODY = "somebody"


class _Open(NamedTuple):
    """Somebody is waited for."""

    who: str
    since: datetime | None
    event: str
    asking: bool  # input is waited for


def story(reading: Reading) -> Story:
    """The turns of a task are those of who works on it, and of who is asked for its input."""
    turns: list[PastTurn] = []
    waits: dict[str, _Open] = {}
    own = clean_name(reading.name, 64)
    names = {peer.id: build.called(peer, reading) for peer in reading.peers}
    for entry in reading.entries:
        body = log_entries.body_of(entry)
        task, state = text(body.get("task_id")), str(body.get("state"))
        if entry.kind != "acp.status" or task is None:
            continue
        at, event = time_of(body.get("ts")), str(entry.seq)
        wait = waits.get(task)
        asking = state == "input_required"
        if state not in _WORK and not asking and state not in _OVER:
            continue
        if wait is not None and (state in _OVER or wait.asking != asking):
            turns.append(_ended(wait, at, event, state))
            del waits[task]
        if task not in waits and state not in _OVER:
            waits[task] = _Open(_waited_for(body, asking, own, names), at, event, asking)
    turns += [_ended(wait, None, None, "") for wait in waits.values()]
    turns.sort(key=lambda turn: int(turn.since_event or 0))
    return Story(tuple(turns), _counts(reading))


def _ended(wait: _Open, at: datetime | None, event: str | None, state: str) -> PastTurn:
    canceled = state == "canceled"  # by who asked for the work: it ended without an event of theirs
    return PastTurn(
        wait.who, wait.since, wait.event, at, None if canceled else event,
        f"task {state}" if event and not canceled else "", "", 0,
    )  # fmt: skip


def _waited_for(body: Json, asking: bool, own: str, names: dict[str, str]) -> str:
    """Who works on a task, or, where it asks for input, who gave it."""
    peer = names.get(str(body.get("peer_id")), _SOMEBODY)
    direction = body.get("direction")
    if direction == "local":
        return own
    ours = (direction == "received") != asking
    return own if ours else peer


def _counts(reading: Reading) -> tuple[Count, ...]:
    """Messages of the entries that are read, and tasks by where they stand."""
    arrived = sent = wrong = 0
    for entry in reading.entries:
        message = log_entries.message_of(entry)
        if message is not None:
            arrived += message.arrived
            sent += not message.arrived
            wrong += message.arrived and message.signed == log_entries.WRONG
    tasks = Counter(task.status for task in reading.tasks)
    states = [
        Count(f"tasks {state.replace('_', ' ')}", number)
        for state, number in sorted(tasks.items())
        if state
    ]
    return (
        Count("messages sent", sent),
        Count("messages that arrived", arrived),
        Count("messages wrongly signed", wrong),
        Count("tasks", len(reading.tasks)),
        *states,
    )
