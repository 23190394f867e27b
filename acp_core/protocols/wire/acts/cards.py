"""What a person decides for an agent, as cards: the input for which a task waits.

Source: wire protocol specification, "Task lifecycle" (``input_required``) and "Parts".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from acp_core.model.card import Card, CardSection, CardVerdict
from acp_core.model.snapshot import Row, Target, Tone
from acp_core.protocols.kit.wording import safe
from acp_core.protocols.wire.read import log_entries
from acp_core.protocols.wire.read.folder import Reading
from acp_core.protocols.wire.schema import people as schema_people
from acp_core.protocols.wire.schema.basics import ANSWER, CANCEL, Json, LogEntry
from acp_core.protocols.wire.schema.bodies import shown_text
from acp_core.protocols.wire.schema.tasks import Task

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
        return log_entries.body_of(self.entry) if self.entry else {}


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
        if each.task_id == task.id and log_entries.is_of_worker(log_entries.body_of(each), task)
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
    entries = [each for each in said if log_entries.message_of(each)]
    if not entries or log_entries.body_of(entries[-1]).get("_direction") == "out":
        return Asked(None)
    parts = log_entries.body_of(entries[-1]).get("parts")
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
    rows, people = [], log_entries.people_of(reading)
    for entry in said:
        message = log_entries.message_of(entry, people)
        words = safe(shown_text(log_entries.body_of(entry).get("parts"))) if message else ""
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
        signed = log_entries.signed(asked.body)
        right = {log_entries.VERIFIED: True, log_entries.WRONG: False}.get(signed)
        said = {log_entries.UNSIGNED: "not signed", log_entries.WRONG: signed}
        cells = (said.get(signed, f"signature {signed}"), safe(log_entries.problem(asked.body)))
        sender = schema_people.sender(asked.body, log_entries.people_of(reading))
        if sender.claimed:
            rows.append(Row((safe(f"says it is {sender.claimed}"),), tone=Tone.REVISE))
        rows.append(Row(cells, checked=right, tone=Tone.REVISE if right is False else Tone.OTHER))
    return tuple(rows)


def _sender(entry: LogEntry | None, reading: Reading) -> str:
    message = log_entries.message_of(entry, log_entries.people_of(reading)) if entry else None
    return message.who if message else ""


def _short(text: str) -> str:
    return text if len(text) <= _LABEL else f"{text[: _LABEL - 1].rstrip()}…"
