"""An agent's log as events of the timeline."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, overload

from acp_core.files.decode import text
from acp_core.model import Event, Tone
from acp_core.model.format import exact
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.wire.schema import Json, lenient, senders, time_of
from acp_core.protocols.wire.schema.lenient import fields_of
from acp_core.protocols.wire.schema.parts import in_line, shown_text, spoken
from acp_core.protocols.wire.schema.senders import People, Sender
from acp_core.protocols.wire.schema.tasks import Content, Task
from acp_core.protocols.wire.write.database import Entry

if TYPE_CHECKING:
    from acp_core.protocols.wire.read.folder import Placed, Reading

FAR = 300.0  # seconds by which a time that somebody says may be off before that is said

_STATES = {
    "submitted": Tone.START,
    "working": Tone.REVIEW,
    "completed": Tone.DONE,
    "failed": Tone.BLOCKED,
    "input_required": Tone.BLOCKED,
    "canceled": Tone.PASS,
}
_FLAGS = {
    "_sig_invalid": "the shared secret's signature is wrong",
    "_sig_missing": "not signed with the shared secret",
    "_ed25519_other_key": "signed with another key than before",
    "_ed25519_invalid": "the Ed25519 signature is wrong",
}
SUSPECT = ("refused", "moved")  # another key for a peer; another agent behind its link
BAD = ("_sig_invalid", "_ed25519_invalid")
_GOOD = ("_sig_verified", "_ed25519_verified")
VERIFIED, OLD = "verified", "verified, but old"
UNSIGNED, WRONG = "not verified", "wrongly signed"
KINDS = (VERIFIED, OLD, UNSIGNED, WRONG)
_MESSAGES = ("acp.message", "acp.reply")
NOBODY_KNOWN = People()


class Timeline(Sequence[Event]):
    """The events of a log, each made when it is asked for.

    Args:
        entries: of the log.
        names: maps peers' ids to their names.
        own: the agent's name.
        written: when entries were written into the log, as far as that is known apart from what
            they say themselves.
        tasks: those that entries speak of, as far as they are known: who works on them, and what
            they are about.
    """

    def __init__(
        self,
        entries: tuple[Entry, ...],
        names: dict[str, str],
        own: str,
        written: Mapping[int, Placed] | None = None,
        tasks: Iterable[Task] = (),
    ) -> None:
        self._entries = entries
        self._names = tuple(sorted(names.items()))
        self._people = senders.people(own, names)
        self._written = written or {}
        self._tasks = {task.id: task for task in tasks}
        self._subjects: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | Sequence[Event]:
        if isinstance(index, slice):
            return tuple(map(self._event, self._entries[index]))
        return self._event(self._entries[index])

    def _event(self, entry: Entry) -> Event:
        task, worker, about = self._tasks.get(entry.task_id or ""), "", ""
        if task is not None:
            worker = task.peer_id if task.direction == "delegated" else ""
            about = self._subjects.get(task.id) or self._subjects.setdefault(task.id, task.about)
        written = self._written.get(entry.seq)
        return _event(entry, self._names, self._people, written, worker, about)


class Recorded(Timeline):
    """The events of a log of which a recording knows the file.

    Args:
        lines: the line of that file, from 1, up to which each entry and what followed from it stand.
    """

    def __init__(
        self,
        entries: tuple[Entry, ...],
        names: dict[str, str],
        own: str,
        written: Mapping[int, Placed] | None = None,
        tasks: Iterable[Task] = (),
        *,
        lines: Sequence[int],
    ) -> None:
        super().__init__(entries, names, own, written, tasks)
        self._lines = lines

    def line_of(self, index: int) -> int:
        """See the class."""
        return self._lines[index]


class Message(NamedTuple):
    """What is counted of a message. ``context`` is "" where it belongs to none.

    ``claimed``: a name that it bears and that is not its sender's, ``who``.
    """

    who: str
    claimed: str
    arrived: bool
    signed: str
    context: str
    at: datetime | None
    text: str


def people_of(reading: Reading) -> People:
    """Who is known to an agent."""
    return senders.people(reading.name, {each.id: each.name for each in reading.peers})


@lru_cache(maxsize=20_000)
def message_of(entry: Entry, people: People = NOBODY_KNOWN) -> Message | None:
    """What is counted of an entry, where it is a message; ``people``: who is known to its agent."""
    if entry.kind not in _MESSAGES:
        return None
    body = body_of(entry)
    sender = senders.sender(body, people)
    return Message(
        clean_line(sender.name or "?", 64),
        clean_name(sender.claimed, 64),
        body.get("_direction") != "out",
        signed(body),
        text(body.get("context_id")) or "",
        time_of(body.get("ts")),
        clean_line(in_line(shown_text(body.get("parts"))), 200),
    )


def questions(tasks: Iterable[Task], entries: Iterable[Entry]) -> dict[str, str]:
    """By the id of each task that waits for an answer of the person here: what is asked.

    That is what was said last in it by who works on it; nothing stands there where nothing was.
    """
    wanted = {task.id: task for task in tasks if task.asks_us}
    answers: dict[str, str] = {}
    if not wanted:
        return answers
    for entry in entries:
        id = clean_line(entry.task_id or "", 300)
        if id not in wanted or not is_of_worker(body_of(entry), wanted[id]):
            continue
        message = message_of(entry)
        if message and message.text:
            said = clean_line(spoken(body_of(entry).get("parts")), 200)
            answers[id] = said if message.arrived else ""
    return {id: text for id, text in answers.items() if text}


def is_of_worker(body: Json, task: Task) -> bool:
    """Whether a message in a task is of who works on it, or of the agent itself, as far as that is told."""
    if body.get("_direction") == "out" or "_peer_id" not in body:
        return True
    return (body["_peer_id"] or body.get("_proven")) == (task.peer_id or None)


def signed(body: Json) -> str:
    """How a message that arrived was signed: one of `KINDS`.

    What lacks its sender's usual signature is not verified: the shared secret signs no contents.
    """
    if any(body.get(flag) for flag in BAD):
        return WRONG
    if senders.unsigned(body) or not any(body.get(flag) for flag in _GOOD):
        return UNSIGNED
    return OLD if body.get("_sig_old") else VERIFIED


def problem(body: Json) -> str:
    """What is wrong with a message's signatures, or missing, in words; "" where nothing is."""
    return "; ".join(filter(None, (mismatch(body), clean_line(senders.unsigned(body), 120))))


def _claim(sender: Sender) -> str:
    """The name that a message bears and that is not its sender's, in words; "" where it bears none."""
    return f"says it is {clean_name(sender.claimed, 64)}" if sender.claimed else ""


def mismatch(body: Json) -> str:
    """What is wrong with the signatures that a message has, or should have with a shared secret."""
    return next((words for flag, words in _FLAGS.items() if body.get(flag)), "")


class Suspect(NamedTuple):
    """That somebody is not who a peer was before. ``name``: the peer's; safe to show."""

    name: str
    reason: str
    since: datetime | None


def suspect(entry: Entry) -> Suspect | None:
    """What an entry about a peer says against somebody, or None."""
    body = body_of(entry)
    if body.get("event") not in SUSPECT:
        return None
    name, reason = (clean_line(str(body.get(key) or ""), 300) for key in ("name", "reason"))
    return Suspect(name, reason, time_of(body.get("ts")))


def taken_down(entry: Entry, written: Mapping[int, Placed]) -> datetime | None:
    """When an entry was written into the log, as far as known; else when it says that it was."""
    placed = written.get(entry.seq)
    return time_of(body_of(entry).get("ts")) if placed is None else placed.time


def body_of(entry: Entry) -> Json:
    """An entry's JSON object; an empty one where it is none."""
    try:
        return fields_of(json.loads(entry.body))
    except (ValueError, RecursionError):
        return {}


@lru_cache(maxsize=20_000)
def _event(
    entry: Entry,
    names: tuple[tuple[str, str], ...],
    people: People,
    written: Placed | None,
    worker: str,
    about: str,
) -> Event:
    body, called = body_of(entry), dict(names)
    peer = called.get(str(body.get("peer_id") or body.get("_peer_id") or worker), "")
    kind, tone, actor, words = _described(entry, body, peer, people, about)
    wrong, sender = problem(body), senders.sender(body, people)
    said = time_of(body.get("ts"))
    at, source = (said, "recorded" if said else "") if written is None else written[:2]
    if said and at and abs((said - at).total_seconds()) > FAR:
        words += f" · dated {exact(said)} by its {'sender' if entry.kind in _MESSAGES else 'agent'}"
    return Event(
        id=str(entry.seq),
        order=entry.seq,
        source="log",
        kind=clean_line(kind, 40),
        tone=tone,
        actor=clean_name(actor, 64),
        at=at,
        at_source=source,
        summary=clean_line(words),
        problem="; ".join(filter(None, (_claim(sender), wrong))) if wrong else "",
    )


def _described(
    entry: Entry, body: Json, peer: str, people: People, about: str
) -> tuple[str, Tone, str, str]:
    """Kind, tone, actor and words of an entry.

    Args:
        entry: of the log.
        body: its JSON object.
        peer: who it comes from, goes to or speaks of; "" where that is not known.
        people: who is known to the agent.
        about: what its task is about; "" where that is not known, and its id has to do.
    """
    own = people.own
    task = str(body.get("task_id") or "")
    subject = about or task
    if entry.kind == "acp.status":
        state = str(body.get("state"))
        words = f"{body['error']} [{subject}]" if body.get("error") else subject
        asked = state in ("submitted", "canceled")  # by who asks; the rest by who works
        theirs = body.get("direction") == ("received" if asked else "delegated")
        actor = peer if theirs and peer else own
        return f"task {state}", _STATES.get(state, Tone.OTHER), actor, words
    if entry.kind == "acp.artifact":
        artifact = lenient.read(Content, body.get("artifact"))
        return "artifact", Tone.ACCEPT, peer or own, f"{artifact.text} [{subject}]"
    if entry.kind == "acp.peer":
        what = str(body.get("event"))
        name = str(body.get("name") or peer)
        if body.get("reason"):
            return what, Tone.BLOCKED, name, str(body["reason"])
        tone = Tone.START if what == "connected" else Tone.OTHER
        number = body.get("peer_count")
        return what, tone, name, f"{number} connected" if number is not None else name
    whom = peer if body.get("_direction") == "out" else own
    tone = Tone.SUBMIT if body.get("_direction") == "out" else Tone.REVISE
    what = "reply" if entry.kind == "acp.reply" else "message"
    what += f" to {whom}" if whom else ""
    words = in_line(shown_text(body.get("parts")))
    is_task = bool(about) and clean_line(words, len(about)) == about  # what was asked for
    if task and not is_task:
        words += f" [{subject}]"
    words += " · verified, but old" if signed(body) == OLD else ""
    sender = senders.sender(body, people)
    words = f"{_claim(sender)} · {words}" if sender.claimed else words
    return what, tone, sender.name, words
