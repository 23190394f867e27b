"""What a reader asks of a task that anybody may have made."""

from __future__ import annotations

from acp_core.files.text import clean_line
from acp_core.protocols.wire.parts import shown_text
from acp_core.protocols.wire.schema import Json
from acp_core.protocols.wire.state import TERMINAL

ANSWER, CANCEL = "answer", "cancel"
_OVER = {state.value for state in TERMINAL}
_LONG = 200


def asks_us(task: Json) -> bool:
    """Whether a task waits for an answer of the person here."""
    return task.get("status") == "input_required" and task.get("direction") != "received"


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
