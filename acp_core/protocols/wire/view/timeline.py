"""An agent's log as events of the timeline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, overload

from acp_core.model import Event, Tone
from acp_core.model.format import exact
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols.wire.schema import people as schema_people
from acp_core.protocols.wire.schema import untrusted_json
from acp_core.protocols.wire.schema.basics import Json, LogEntry, time_of
from acp_core.protocols.wire.schema.bodies import in_line, shown_text
from acp_core.protocols.wire.schema.people import People, Sender
from acp_core.protocols.wire.schema.tasks import Content, Task

if TYPE_CHECKING:
    from acp_core.protocols.wire.read.folder import Placed

from acp_core.protocols.wire.read.log_entries import (
    FAR,
    MESSAGE_KINDS,
    OLD,
    body_of,
    problem,
    signed,
)

_STATES = {
    "submitted": Tone.START,
    "working": Tone.REVIEW,
    "completed": Tone.DONE,
    "failed": Tone.BLOCKED,
    "input_required": Tone.BLOCKED,
    "canceled": Tone.PASS,
}


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
        entries: tuple[LogEntry, ...],
        names: dict[str, str],
        own: str,
        written: Mapping[int, Placed] | None = None,
        tasks: Iterable[Task] = (),
    ) -> None:
        self._entries = entries
        self._names = tuple(sorted(names.items()))
        self._people = schema_people.people(own, names)
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

    def _event(self, entry: LogEntry) -> Event:
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
        entries: tuple[LogEntry, ...],
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


def _claim(sender: Sender) -> str:
    """The name that a message bears and that is not its sender's, in words; "" where it bears none."""
    return f"says it is {clean_name(sender.claimed, 64)}" if sender.claimed else ""


@lru_cache(maxsize=20_000)
def _event(
    entry: LogEntry,
    names: tuple[tuple[str, str], ...],
    people: People,
    written: Placed | None,
    worker: str,
    about: str,
) -> Event:
    body, called = body_of(entry), dict(names)
    peer = called.get(str(body.get("peer_id") or body.get("_peer_id") or worker), "")
    kind, tone, actor, words = _described(entry, body, peer, people, about)
    wrong, sender = problem(body), schema_people.sender(body, people)
    said = time_of(body.get("ts"))
    at, source = (said, "recorded" if said else "") if written is None else written[:2]
    if said and at and abs((said - at).total_seconds()) > FAR:
        words += (
            f" · dated {exact(said)} by its {'sender' if entry.kind in MESSAGE_KINDS else 'agent'}"
        )
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
    entry: LogEntry, body: Json, peer: str, people: People, about: str
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
        artifact = untrusted_json.read_as(Content, body.get("artifact"))
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
    sender = schema_people.sender(body, people)
    words = f"{_claim(sender)} · {words}" if sender.claimed else words
    return what, tone, sender.name, words
