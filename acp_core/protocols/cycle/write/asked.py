"""The changes of a person by the names of their acts: made here, or asked for by another account.

What is asked for comes from a stranger's file. It is one of these changes or it is refused, and it
is made by the orchestrator, which is the only one that writes while it conducts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from acp_core.model.errors import Refused
from acp_core.protocols.cycle import schema
from acp_core.protocols.cycle.schema import Object
from acp_core.protocols.cycle.write import changes

_TEXT = 20_000  # characters of a text
_NUMBERS = ("limit", "iterations")
_FLAGS = ("workaround",)

Edit = Callable[[Object, datetime], None]
"""Changes a state in place, as of a moment; raises Refused where that is not possible."""

_CHANGES: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    schema.DECIDE_ACT: (changes.decide, ("decision", "choice", "rationale", "impact")),
    schema.RESOLVE_ACT: (changes.resolve, ("blocker", "resolution", "workaround")),
    schema.FEEDBACK_ACT: (changes.feedback, ("agent", "text", "kind")),
    schema.EXTEND_ACT: (changes.extend, ("text", "limit")),
    schema.PAUSE_ACT: (changes.pause, ()),
    schema.RESUME_ACT: (changes.resume, ()),
    schema.STOP_ACT: (changes.stop, ("reason",)),
    schema.ACCEPT_ACT: (changes.accept, ("reason",)),
    schema.RERUN_ACT: (changes.rerun, ("agent", "reason")),
    schema.LIMIT_ACT: (changes.raise_limit, ("iterations",)),
}
"""By the act's name: the function, and which of the act's fields it gets, in order."""


def edit(act: str, values: Mapping[str, Any]) -> Edit:
    """The change that an act makes with what was given.

    Raises:
        Refused: there is no such act, or a value is not what it should be.
    """
    if act not in _CHANGES:
        raise Refused(f"{act!r} cannot be requested")
    function, fields = _CHANGES[act]
    given = [_checked(name, values.get(name)) for name in fields]
    return lambda state, now: function(state, now, *given)


def chosen(act: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """What an act is asked with: its own fields only."""
    return {name: values.get(name) for name in _CHANGES[act][1]}


def _checked(name: str, value: Any) -> Any:
    if name in _NUMBERS:
        if value is None or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise Refused(f"{name} must be a whole number")
    if name in _FLAGS:
        if value is None or isinstance(value, bool):
            return bool(value)
        raise Refused(f"{name} must be true or false")
    if value is None:
        return ""
    if not isinstance(value, str) or len(value) > _TEXT:
        raise Refused(f"{name} must be a text of at most {_TEXT} characters")
    return value
