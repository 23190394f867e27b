"""How an agent gets stuck, what stands in the way of writes, and what waits for a person, as cards.

It or a peer is gone, a queue or a task stands still, a signature is wrong; its store is broken or
its disk is full (the screen, `why` and an agent that is started refuse the same); a task waits for
input (wire protocol specification, "Task lifecycle" and "Parts").
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from acp_core.model import Matter
from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.format import count, dated
from acp_core.model.matter import TIME, About, damage, verdicts
from acp_core.model.snapshot import Row, Target, Tone
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.kit import guard
from acp_core.protocols.kit.diagnosis import DiagnosisContext, mark
from acp_core.protocols.kit.wording import safe, without_retry
from acp_core.protocols.wire.read import folder
from acp_core.protocols.wire.read.folder import Queue, Reading, moment
from acp_core.protocols.wire.read.store import NEWER
from acp_core.protocols.wire.schema import observed
from acp_core.protocols.wire.schema.basics import (
    ANSWER,
    CANCEL,
    FORGET,
    MOVE,
    Json,
    LogEntry,
    time_of,
)
from acp_core.protocols.wire.schema.bodies import shown_text
from acp_core.protocols.wire.schema.observed import PeerSeen, Task

AWAY = 300.0  # seconds that a peer is away before that is said

UNREAD = 60.0  # seconds in which a peer that is connected acknowledges nothing

UNREACHED = 60.0  # seconds in which an agent elsewhere does not answer

STILL = 1800.0  # seconds in which a task that is worked on says nothing

RECENT = 86_400.0  # seconds after which a peer for whom nothing waits has simply left

_LATEST = 200  # messages whose signatures are looked at

_OWN = "this agent"

_NAMED = 5  # peers, or tasks, that are named


def causes(reading: Reading, case: DiagnosisContext) -> Iterator[Matter]:
    """Why it does not go on, as far as the agent's own store, or its answers, tell."""
    if reading.reach is None:  # of its queues and tasks nothing is known now, or all waits for it
        yield from unreachable(reading, case) if reading.remote else _stopped(reading)
    else:
        yield from _peers(reading, case)
        yield from _orphans(reading)
        yield from _tasks(reading, case)
    yield from _signatures(reading)
    yield from _strangers(reading)


def unreachable(reading: Reading, case: DiagnosisContext) -> Iterator[Matter]:
    """It does not answer, and has not for a while."""
    since = reading.lost
    if not reading.away or not case.clock.over(since, case.patience.scaled(UNREACHED)):
        return
    open_ones = [task for task in reading.tasks if task.is_open]
    yield Matter(
        "wire-unreachable",
        clean_line(without_retry(reading.away)),
        instruction="restart the agent, or check its address and the network",
        evidence=(
            "acp keeps trying",
            f"last contact {dated(reading.heard)}"
            if reading.heard
            else "the agent has never answered",
            *_named([f"open at the last contact: {task.sentence}" for task in open_ones]),
        ),
        since=since,
        key=f"unreachable:{since.timestamp() if since else ''}",
    )


def _stopped(reading: Reading) -> Iterator[Matter]:
    """The agent of this folder does not run, and something waits for it."""
    open_ones = [task for task in reading.tasks if task.is_open]
    waiting = {peer: reading.queues[peer.id] for peer in reading.peers if peer.id in reading.queues}
    if not open_ones and not waiting:
        return
    number = sum(queue.waiting for queue in waiting.values())
    said = [count(number, "message")] if number else []
    said += [count(len(open_ones), "open task")] if open_ones else []
    one = number + len(open_ones) == 1
    since = min((at for each in waiting.items() if (at := folder.waits_since(*each))), default=None)
    name = clean_name(reading.name, 64)
    about = mark((*(task.id for task in open_ones), *(peer.id for peer in waiting)))
    yield Matter(
        "wire-stopped",
        f"{' and '.join(said)} {'waits' if one else 'wait'} until the agent runs again",
        instruction=f"restart it: acp agent --name {shlex.quote(name)}; waiting messages are sent then",
        evidence=(
            *_named(
                [f"{_waits(queue.waiting)} for {_name(peer)}" for peer, queue in waiting.items()]
            ),
            *_named([f"open: {task.sentence}" for task in open_ones]),
        ),
        since=since,
        key=f"stopped:{since.timestamp() if since else ''}:{about}",
    )


def _peers(reading: Reading, case: DiagnosisContext) -> Iterator[Matter]:
    """Peers that do not take what is sent to them, and peers that are gone."""
    idle: list[tuple[datetime, PeerSeen]] = []
    for peer in reading.peers:
        queue = reading.queues.get(peer.id)
        if peer.connected:
            if queue is not None:
                yield from _unread(peer, queue, case)
        elif queue is not None:
            yield from _queue(peer, queue, case, folder.heir(peer, reading))
        else:
            shared = [task for task in reading.tasks if task.is_open and task.peer_id == peer.id]
            since = time_of(peer.disconnected_at)
            if not case.clock.over(since, case.patience.scaled(AWAY)) or since is None:
                continue
            if shared:
                yield _left(peer, since, shared)
            elif not case.clock.over(since, RECENT):
                idle.append((since, peer))
    yield from _idle(idle)


def _unread(peer: PeerSeen, queue: Queue, case: DiagnosisContext) -> Iterator[Matter]:
    """It is connected, and takes nothing: what waits for it grows."""
    times = (moment(queue.stalled or queue.since), time_of(peer.connected_at))
    since = max((at for at in times if at), default=None)
    if not case.clock.over(since, case.patience.scaled(UNREAD)):
        return
    name = _name(peer)
    yield Matter(
        "wire-queue",
        f"{name} is connected but acknowledges nothing: " + _waits(queue.waiting),
        instruction=f"check what {name} is doing, or restart it to have everything sent again; "
        "or forget it with its waiting messages",
        evidence=(
            f"no acknowledgement since {dated(since)}" if since else "no acknowledgement on record",
            f"connected {dated(at)}" if (at := times[1]) else "time of connection unknown",
            count(peer.sent, "message") + " acknowledged before",
        ),
        certain=False,
        verdicts=verdicts(FORGET, (("peer", clean_line(peer.id, 64)),)),
        about=About(participant=name),
        since=since,
        key=f"unread:{clean_line(peer.id, 64)}:{since.timestamp() if since else ''}",
    )


def _queue(
    peer: PeerSeen, queue: Queue, case: DiagnosisContext, heir: PeerSeen | None
) -> Iterator[Matter]:
    """It is away, and something waits for it."""
    since, sent, name = folder.waits_since(peer, queue), moment(queue.since), _name(peer)
    if not case.clock.over(since, case.patience.scaled(AWAY)):
        return
    yield Matter(
        "wire-peer-away",
        f"{_waits(queue.waiting)} for {name}, which is away",
        instruction=f"move it to {_called(heir)}, if that is the same agent; or forget it with its waiting messages"
        if heir
        else "restart that agent to have them sent; or forget it with its waiting messages",
        evidence=(
            *((f"{_called(heir)} has the same name and is connected",) if heir else ()),
            f"the oldest was sent {dated(sent)}" if sent else "sending time unknown",
            *_ended(peer),
        ),
        verdicts=verdicts(
            MOVE if heir else FORGET,
            (
                ("peer", clean_line(peer.id, 64)),
                *((("to", clean_line(heir.id, 64)),) if heir else ()),
            ),
            (FORGET,) if heir else (),
        ),
        about=About(participant=name),
        since=since,
        key=f"queue:{clean_line(peer.id, 64)}:{since.timestamp() if since else ''}",
    )


def _left(peer: PeerSeen, since: datetime, shared: list[Task]) -> Matter:
    """It is away, nothing waits for it, and it has work that is not done."""
    name = _name(peer)
    first = next((task.id for task in shared if task.is_whole), None)
    return Matter(
        "wire-peer-gone",
        f"{name} is away with " + count(len(shared), "open task"),
        instruction="restart that agent, or cancel its tasks",
        evidence=(*_ended(peer), *_named([f"open: {task.sentence}" for task in shared])),
        verdicts=verdicts(CANCEL if first else None, (("task", first),) if first else ()),
        about=About(participant=name),
        since=since,
        key=f"gone:{clean_line(peer.id, 64)}:{since.timestamp()}",
    )


def _idle(away: list[tuple[datetime, PeerSeen]]) -> Iterator[Matter]:
    """Peers that are away though nothing waits for them: told, and no need of anybody's."""
    if not away:
        return
    away.sort(key=lambda each: each[0], reverse=True)
    since, latest = away[0]
    alone = len(away) == 1
    yield Matter(
        "wire-peer-gone",
        f"{_name(latest)} is away" if alone else f"{len(away)} peers are away",
        instruction="no messages are waiting for it"
        if alone
        else "no messages are waiting for them",
        move=TIME,
        evidence=tuple(_named([f"{_name(peer)}: {_ended(peer)[0]}" for _, peer in away])),
        about=About(participant=_name(latest) if alone else None),
        since=since,
        key=f"left:{clean_line(latest.id, 64)}:{since.timestamp()}",
    )


def _ended(peer: PeerSeen) -> tuple[str, ...]:
    at = time_of(peer.disconnected_at)
    said = f"the connection ended {dated(at)}" if at else "no end of the connection recorded"
    return (said, f"last attempt to connect: {trouble}") if (trouble := _trouble(peer)) else (said,)


def _trouble(peer: PeerSeen) -> str:
    return clean_line(peer.trouble, 120)


def _orphans(reading: Reading) -> Iterator[Matter]:
    """Tasks that went to a peer who was forgotten since: nobody will report on them."""
    for task in reading.tasks:
        if not task.is_orphan(reading.met):
            continue
        yield Matter(
            "wire-task-orphan",
            f"no agent is working on {task.id}: its peer is unknown",
            instruction="cancel it and send it to another peer",
            evidence=(task.sentence,),
            verdicts=verdicts(
                CANCEL if task.is_whole else None, (("task", task.id),) if task.is_whole else ()
            ),
            since=task.since,
            key=f"orphan:{task.id}",
        )


def _tasks(reading: Reading, case: DiagnosisContext) -> Iterator[Matter]:
    names = {peer.id: _name(peer) for peer in reading.peers}
    gone = {
        peer.id
        for peer in reading.peers
        if not peer.connected and peer.disconnected_at and peer.id not in reading.queues
    }
    for task in reading.tasks:
        since = task.since
        if not task.is_open or task.asks_us or task.is_orphan(reading.met):
            continue  # a need, or said already
        if task.peer_id in gone:
            continue  # said of the peer
        if not case.clock.over(since, case.patience.scaled(STILL)):
            continue
        who = _at_it(task, names)
        yield Matter(
            "wire-task-still",
            f"{who} has not reported on {task.id} ({task.status})",
            instruction=f"ask {who}, or cancel it"
            if who != _OWN
            else "check why the agent is not working on it, or cancel it",
            evidence=(
                f"last change {dated(since)}" if since else "",
                f"task: {task.about}",
            ),
            certain=False,
            verdicts=verdicts(
                CANCEL if task.is_whole else None, (("task", task.id),) if task.is_whole else ()
            ),
            about=About(participant=who),
            since=since,
            key=f"still:{task.id}:{clean_line(task.updated_at, 64)}",
        )


def _at_it(task: Task, names: dict[str, str]) -> str:
    """Who is to say something of a task next."""
    peer = names.get(task.peer_id, "another agent")
    received = task.direction == "received"
    if task.status == "input_required":
        return peer if received else "a person"
    return peer if task.direction == "delegated" else _OWN


def _waits(number: int) -> str:
    return count(number, "message waits", "messages wait")


def _called(peer: PeerSeen) -> str:
    return f"{_name(peer)} ({clean_line(peer.id, 64)})"


def _name(peer: PeerSeen) -> str:
    return clean_name(peer.name, 64)


def _named(lines: list[str]) -> list[str]:
    more = len(lines) - _NAMED
    return lines if more <= 0 else [*lines[:_NAMED], f"and {more} more"]


def _signatures(reading: Reading) -> Iterator[Matter]:
    people = folder.people_of(reading)
    latest = [
        (entry, message)
        for entry in reading.entries[-_LATEST:]
        if (message := folder.message_of(entry, people)) and message.arrived
    ]
    wrong = [each for each in latest if each[1].signed == folder.WRONG]
    if not wrong:
        return
    entry, message = wrong[-1]
    yield Matter(
        "wire-signature",
        f"a message claiming to be from {message.claimed or message.who} has a wrong signature",
        instruction="do not trust it; compare the secret or the key with its sender's",
        evidence=(
            f"message {entry.seq}: {folder.signature_problem(folder.body_of(entry))}",
            f"text: {message.text or 'none'}",
            f"{len(wrong)} of the latest {count(len(latest), 'message', 'messages')} that arrived",
        ),
        about=About(event=str(entry.seq)),
        since=folder.taken_down(entry, reading.written),
        key=f"signature:{entry.seq}",
    )


def _strangers(reading: Reading) -> Iterator[Matter]:
    """Peers of whom the last thing heard is that somebody else came in their place."""
    last: dict[str, LogEntry] = {}
    for entry in reading.entries:
        if entry.kind == "acp.peer":
            last[str(folder.body_of(entry).get("peer_id"))] = entry
    known = {each.id for each in reading.peers}
    for peer, entry in last.items():
        if peer in known and (told := folder.suspect(entry)):
            yield Matter(
                "wire-stranger",
                f"another agent connected in place of {told.name}",
                instruction="find out who it is; if the change is intended, forget the peer and connect again",
                evidence=(f"event {entry.seq}: {told.reason}",),
                verdicts=verdicts(FORGET, (("peer", clean_line(peer, 64)),)),
                about=About(participant=told.name, event=str(entry.seq)),
                since=told.since,
                key=f"stranger:{entry.seq}",
            )


START = "agent"
"""The act that takes a store into use."""


def obstacles(folder: Path, problem: str) -> tuple[Matter, ...]:
    """All that stands in the way of writes in an agent's folder.

    Args:
        folder: the agent's.
        problem: why its store cannot be used, as far as it was read; "" where it can.
    """
    found = (broken(folder, problem) if problem else None, guard.disk(folder))
    return tuple(each for each in found if each is not None)


def broken(folder: Path, problem: str) -> Matter:
    """The store cannot be used; says how to begin a new one, and what is lost with the old."""
    sentence = clean_line(f"the store of this agent cannot be used ({problem})")
    newer = NEWER in problem
    cure = "use the version of acp that wrote it" if newer else _away(folder)
    return damage("wire-store", sentence, cure, evidence=(sentence,), key="obstacle:wire-store")


def _away(folder: Path) -> str:
    place, name = shlex.quote(str(folder)), shlex.quote(unquote(folder.name))
    moved = f"mkdir {place}/broken && mv {place}/wire.sqlite3* {place}/broken/"
    return f"{moved}; acp agent --name {name} then creates a new one, with a new link"


SAID = 10
"""Messages of a task that are shown besides the question."""

OPTIONS = 7
"""Options that have a key, beside an answer of one's own and leaving the task."""

_LABEL = 40

_OPTION = re.compile(r"^[^\S\n]*(?:\d{1,2}|[A-Za-z])[.)][^\S\n]+(\S[^\n]*?)[^\S\n]*$", re.MULTILINE)


class Asked(NamedTuple):
    """What a task's worker said last: the entry, its words without the options, the options."""

    entry: LogEntry | None
    words: str = ""
    options: tuple[str, ...] = ()

    @property
    def body(self) -> Json:
        """The message."""
        return folder.body_of(self.entry) if self.entry else {}


def cards(reading: Reading) -> tuple[Card, ...]:
    """A card for each task that waits for the person here, the longest waiting first.

    Args:
        reading: what is known of the agent.
    """
    if reading.reach is None or not reading.reach.owner:
        return ()
    waiting = [
        task
        for task in reading.tasks
        if task.asks_us and task.is_whole and not task.is_orphan(reading.met)
    ]
    ordered = sorted(waiting, key=lambda task: task.updated_at)
    return tuple(_card(task, reading) for task in ordered)


def _card(task: Task, reading: Reading) -> Card:
    names = {peer.id: peer.name for peer in reading.peers}
    said = [
        each
        for each in reading.entries
        if each.task_id == task.id and folder.is_of_worker(folder.body_of(each), task)
    ]
    asked = _asked(said)
    who = safe(names.get(task.peer_id, "") or _sender(asked.entry, reading))
    ending = asked.words.rstrip().endswith("?") or asked.options
    needs = "asks a question" if ending else "needs input"
    return Card(
        f"task:{task.id}:{asked.entry.seq if asked.entry else task.updated_at}",
        f"{who or 'A task'} {needs}",
        asked.words,
        who,
        task.since,
        tuple(each for each in _sections(task, reading, asked, said) if each.rows),
        _verdicts(task.id, asked.options),
    )


def _verdicts(id: str, options: tuple[str, ...]) -> tuple[CardVerdict, ...]:
    which = ("task", id)
    chosen = (CardVerdict(_short(each), ANSWER, (which, ("text", each))) for each in options)
    own = "Another answer" if options else "Answer"
    return (
        *chosen,
        CardVerdict(own, ANSWER, (which,), ("text",)),
        CardVerdict("Cancel the task", CANCEL, (which,)),
    )


def _asked(said: Iterable[LogEntry]) -> Asked:
    """What was said last in a task, where who works on it said that."""
    entries = [each for each in said if folder.message_of(each)]
    if not entries or folder.body_of(entries[-1]).get("_direction") == "out":
        return Asked(None)
    parts = folder.body_of(entries[-1]).get("parts")
    listed = [each for each in parts if isinstance(each, dict)] if isinstance(parts, list) else []
    texts = [each.get("content") for each in listed if each.get("type") == "text"]
    words = "\n".join(each for each in texts if isinstance(each, str))
    options = _structured(listed)
    if not options and len(found := _OPTION.findall(words)) > 1:
        options, words = found, _OPTION.sub("", words)
    known = tuple(dict.fromkeys(map(safe, options)))
    if len(known) > OPTIONS:  # no key for each: they stay in the words
        return Asked(entries[-1], safe("\n".join(filter(None, (words, *known)))))
    return Asked(entries[-1], safe(" ".join(words.split())), known)


def _structured(parts: Iterable[Json]) -> list[str]:
    """Options that a part with data lists: ``{"options": [...]}``, each a text or what has a label."""
    found: list[str] = []
    for part in parts:
        content = part.get("content") if part.get("type") == "data" else None
        options = content.get("options") if isinstance(content, dict) else None
        for each in options if isinstance(options, list) else ():
            text = each.get("label") if isinstance(each, dict) else each
            if isinstance(text, str) and text.strip():
                found.append(text.strip())
    return found


def _sections(
    task: Task, reading: Reading, asked: Asked, said: Iterable[LogEntry]
) -> tuple[CardSection, ...]:
    options = asked.options if any(len(each) > _LABEL for each in asked.options) else ()
    return (
        CardSection("Options", tuple(Row((f"{n}.", each)) for n, each in enumerate(options, 1))),
        CardSection("Task", tuple(Row((each,)) for each in (_about(task),) if each)),
        CardSection("With it", _attached(asked.body)),
        CardSection("Said", _before(task, reading, asked, said)),
        CardSection("Sender", _sender_rows(task, reading, asked)),
    )


def _about(task: Task) -> str:
    """What the task is, in full."""
    return safe(task.input.text)


def _attached(body: Json) -> tuple[Row, ...]:
    """Files and data that came with the question; an address is text, nobody fetches it."""
    rows = []
    parts = body.get("parts")
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        if part.get("type") == "file":
            cells = (str(part.get(key) or "") for key in ("filename", "media_type", "url"))
            rows.append(Row(tuple(map(safe, cells))))
        elif part.get("type") == "data" and not _structured((part,)):
            rows.append(Row((safe(shown_text([part])),)))
    return tuple(rows)


def _before(
    task: Task, reading: Reading, asked: Asked, said: Iterable[LogEntry]
) -> tuple[Row, ...]:
    """What was said in the task before the question, without what the task itself says."""
    rows, people = [], folder.people_of(reading)
    for entry in said:
        message = folder.message_of(entry, people)
        words = safe(shown_text(folder.body_of(entry).get("parts"))) if message else ""
        if message is None or entry is asked.entry or words in ("", _about(task)):
            continue
        rows.append(Row((message.who, words), target=Target(event=str(entry.seq))))
    return tuple(rows[-SAID:])


def _sender_rows(task: Task, reading: Reading, asked: Asked) -> tuple[Row, ...]:
    """Who works on the task: whether it is there, and whether it is who it says."""
    peer = next((each for each in reading.peers if each.id == task.peer_id), None)
    rows = []
    if peer is not None:
        there = "connected" if peer.connected else "away: your answer is delivered when it is back"
        tone = Tone.OTHER if peer.connected else Tone.REVIEW
        rows.append(Row((safe(f"{peer.name} ({peer.id})"), there), tone=tone))
    if asked.entry is not None:
        signed = folder.signature_state(asked.body)
        right = {folder.VERIFIED: True, folder.WRONG: False}.get(signed)
        said = {folder.UNSIGNED: "not signed", folder.WRONG: signed}
        cells = (
            said.get(signed, f"signature {signed}"),
            safe(folder.signature_problem(asked.body)),
        )
        sender = observed.sender(asked.body, folder.people_of(reading))
        if sender.claimed:
            rows.append(Row((safe(f"says it is {sender.claimed}"),), tone=Tone.REVISE))
        rows.append(Row(cells, checked=right, tone=Tone.REVISE if right is False else Tone.OTHER))
    return tuple(rows)


def _sender(entry: LogEntry | None, reading: Reading) -> str:
    message = folder.message_of(entry, folder.people_of(reading)) if entry else None
    return message.who if message else ""


def _short(text: str) -> str:
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 1].rstrip()}…"
