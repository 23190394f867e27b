"""What a reader asks of a task that anybody may have made."""

from __future__ import annotations

from collections.abc import Container, Iterable

from acp_core.files.text import clean_line
from acp_core.protocols.wire.schema import Json
from acp_core.protocols.wire.schema.parts import shown_text
from acp_core.protocols.wire.state import TERMINAL, TaskState
from acp_core.protocols.wire.view import timeline
from acp_core.protocols.wire.write.database import Entry

_KNOWN = {state.value for state in TaskState}
_OVER = {state.value for state in TERMINAL}
_LONG = 200


def is_whole(task: Json) -> bool:
    """Whether something can be done with a task: it is called something, and is in a known state."""
    id = task.get("id")
    return isinstance(id, str) and id_of(task) == id != "" and task.get("status") in _KNOWN


def asks_us(task: Json) -> bool:
    """Whether a task waits for an answer of the person here."""
    return task.get("status") == "input_required" and task.get("direction") != "received"


def is_orphan(task: Json, met: Container[str]) -> bool:
    """Whether an open task went to a peer that is not known any more: nobody reports on it.

    Args:
        task: the task.
        met: ids of the peers to whom something can be sent.
    """
    return is_open(task) and task.get("direction") == "delegated" and task.get("peer_id") not in met


def is_open(task: Json) -> bool:
    """Whether something can still follow."""
    return status_of(task) not in _OVER


def status_of(task: Json) -> str:
    """Where a task stands, safe to show."""
    return clean_line(str(task.get("status")), 20)


def about(task: Json) -> str:
    """What a task is about, safe to show."""
    asked = task.get("input")
    return clean_line(shown_text(asked.get("parts")) if isinstance(asked, dict) else "", _LONG)


def id_of(task: Json) -> str:
    """A task's id, safe to show."""
    return clean_line(str(task.get("id")), 300)


def described(task: Json) -> str:
    """A task in a line: its id, where it stands, what it is about."""
    words = about(task)
    return f"{id_of(task)}, {status_of(task)}" + (f": {words}" if words else "")


def questions(tasks: Iterable[Json], entries: Iterable[Entry]) -> dict[str, str]:
    """By the id of each task that waits for an answer of the person here: what is asked.

    That is what was said last in it by who works on it; nothing stands there where nothing was.
    """
    wanted = {str(task.get("id")) for task in tasks if asks_us(task)}
    found: dict[str, str] = {}
    if not wanted:
        return found
    for entry in entries:
        if entry.task_id not in wanted:
            continue
        said = timeline.said(entry)
        if said and said.text:
            found[clean_line(entry.task_id, 300)] = said.text if said.arrived else ""
    return {id: text for id, text in found.items() if text}
