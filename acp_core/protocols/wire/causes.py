"""How an agent gets stuck: a peer is gone, a task stands still, a signature is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from acp_core.case import Case
from acp_core.files.text import clean_line
from acp_core.format import dated
from acp_core.model import Cause
from acp_core.protocols.wire import panels, tasks, timeline
from acp_core.protocols.wire.reading import Reading
from acp_core.protocols.wire.schema import time_of
from acp_core.protocols.wire.store.database import Entry

AWAY = 300.0  # seconds that a message waits for a peer before a person is wanted
STILL = 1800.0  # seconds in which a task that is worked on says nothing
_LATEST = 200  # messages whose signatures are looked at


def causes(reading: Reading, case: Case) -> Iterator[Cause]:
    """Why it does not go on, as far as the agent's own store tells."""
    yield from _queues(reading, case)
    yield from _tasks(reading, case)
    yield from _signatures(reading)
    yield from _strangers(reading)


def _queues(reading: Reading, case: Case) -> Iterator[Cause]:
    if reading.remote and reading.reach is None:
        return  # how it stands there now is not known
    for peer in reading.peers:
        queue = reading.queues.get(peer.id)
        if queue is None or peer.connected:
            continue
        count, since = queue.waiting, panels.waits_since(peer, queue)
        name = clean_line(peer.name, 64)
        stopped = reading.reach is None
        if not stopped and not case.clock.over(since, case.patience.scaled(AWAY)):
            continue
        seen = time_of(peer.disconnected_at)
        noun = "message waits" if count == 1 else "messages wait"
        why = "this agent is stopped" if stopped else f"{name} is away"
        yield Cause(
            "wire-stopped" if stopped else "wire-peer-away",
            f"{count} {noun} for {name}: {why}",
            advice="start the agent again"
            if stopped
            else "start that agent again; all is sent then",
            evidence=(
                f"the oldest was sent {dated(since)}" if since else "since when is not known",
                f"the connection ended {dated(seen)}"
                if seen
                else "no end of a connection is noted",
            ),
            participant=name,
            since=since,
            key=f"queue:{clean_line(peer.id, 64)}:{since.timestamp() if since else ''}",
        )


def _tasks(reading: Reading, case: Case) -> Iterator[Cause]:
    for task in filter(tasks.is_open, reading.tasks):
        since = time_of(task.get("updated_at"))
        if task.get("status") == "input_required":
            continue  # a need, where it is ours to answer
        if not case.clock.over(since, case.patience.scaled(STILL)):
            continue
        id = tasks.id_of(task)
        yield Cause(
            "wire-task-still",
            f"nothing was heard of {id}, which is {clean_line(str(task.get('status')), 20)}",
            advice="ask who works on it, or cancel it",
            evidence=(f"last change {dated(since)}", f"it asks: {tasks.about(task)}"),
            certain=False,
            remedy=tasks.CANCEL,
            given=(("task", id),),
            since=since,
            key=f"still:{id}:{clean_line(str(task.get('updated_at')), 64)}",
        )


def _signatures(reading: Reading) -> Iterator[Cause]:
    latest = [entry for entry in reading.entries[-_LATEST:] if entry.kind == "acp.message"]
    for entry in reversed(latest):
        body = timeline.body_of(entry)
        if not any(body.get(flag) for flag in timeline.BAD):
            continue
        name = clean_line(str(body.get("from")), 64)
        yield Cause(
            "wire-signature",
            f"a message that says it is from {name} is wrongly signed",
            advice="do not rely on it; compare the secret, or the key, with its sender's",
            evidence=(f"message {entry.seq}: {timeline.problem(body)}",),
            since=time_of(body.get("ts")),
            key=f"signature:{entry.seq}",
            event=str(entry.seq),
        )
        return


def _strangers(reading: Reading) -> Iterator[Cause]:
    """Peers of whom the last thing heard is that somebody else came in their place."""
    last: dict[str, Entry] = {}
    for entry in reading.entries:
        if entry.kind == "acp.peer":
            last[str(timeline.body_of(entry).get("peer_id"))] = entry
    for entry in last.values():
        if told := timeline.suspect(entry):
            yield Cause(
                "wire-stranger",
                f"somebody else came in the place of {told.name}",
                advice="find out who; where it is right so, forget the peer and connect anew",
                evidence=(f"event {entry.seq}: {told.reason}",),
                participant=told.name,
                since=told.since,
                key=f"stranger:{entry.seq}",
                event=str(entry.seq),
            )
