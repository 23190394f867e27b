"""What participants are told to do while decisions wait for acceptance: whose move an open item is.

Source: folder protocol specification, "Readiness Gate". What is open in readiness.md after
``question_classified`` refuses every acceptance; only the owner classifies anew, also when it has
accepted already. Standard library only.
"""

from __future__ import annotations

from acp_core.model.light import TYPE_CHECKING
from acp_core.model.text import clean_line
from acp_core.protocols.folder.schema import records

if TYPE_CHECKING:
    from acp_core.protocols.folder.schema.documents import Readiness
    from acp_core.protocols.folder.schema.records import Entry
    from acp_core.protocols.folder.state import Machine

_CLASSIFY = (
    "classify every open question in readiness.md, then append question_classified; "
    "decisions can be accepted only after it."
)
_AWAIT_CLASSES = "wait for the proposal owner to classify open questions."
_ACCEPT = "review decisions.md and append decision_accepted only if decisions are explicit."
_AWAIT_ACCEPTANCES = "wait for remaining participants to accept decisions."
_CLEAR = (
    "clear what is open in readiness.md ({open}), then append question_classified again; "
    "decisions can be accepted only after it."
)
_NOT_YET = (
    " readiness.md still holds blocking or unclassified items, or deferred ones without a "
    "reason: the owner must clear them first ({open}) and append question_classified again. "
    "The participant who wrote an item may withdraw it. "
)
_MAY_BLOCK = "If neither happens, blocked is possible."
_BLOCK = (
    "The owner has not done so for 30 minutes and may wait, too: "
    "if the item is not yours, append blocked and say what is missing."
)
_ITEM = 120  # characters of an item that are shown
_PATIENCE = 1800.0  # seconds for which an owner that waits may leave open what is


def advise(
    machine: Machine, participant: str, readiness: Readiness | None, unchanged: float
) -> str:
    """What ``participant`` should do now.

    Args:
        machine: the state after the log, which is in ``decision_review``.
        participant: who asks.
        readiness: readiness.md, None where it cannot be read.
        unchanged: see `seconds_unchanged`.
    """
    owner, listed = participant == machine.owner, participant in machine.waiting
    if not machine.accepting:
        return _CLASSIFY if owner else _AWAIT_CLASSES
    place = what_is_open(readiness)
    if owner and place:
        return _CLEAR.format(open=place)
    sentence = _ACCEPT if listed else _AWAIT_ACCEPTANCES
    if not place:
        return sentence
    # An owner that has accepted may run the existing script, which does not tell it.
    forgotten = unchanged >= _PATIENCE and machine.owner not in machine.waiting
    return sentence + _NOT_YET.format(open=place) + (_BLOCK if forgotten else _MAY_BLOCK)


def what_is_open(readiness: Readiness | None) -> str:
    """What stops acceptance in readiness.md, with its line; "" where nothing does."""
    if readiness is None:
        return "it is missing, or cannot be read"
    items = readiness.open
    if not items:
        return ""
    first = items[0]
    hidden = first.word != "unresolved" and "TBD" in first.text
    contains = ", which contains TBD" if hidden else ""
    more = f"; and {len(items) - 1} more" if len(items) > 1 else ""
    return f"line {first.line}: [{first.word}] {clean_line(first.text, _ITEM)}{contains}{more}"


def seconds_unchanged(last: Entry | None, modified: float | None, now: float) -> float:
    """For how many seconds neither the log nor readiness.md has changed.

    Args:
        last: the last event.
        modified: when readiness.md was changed last, if it is there.
        now: seconds since 1970, as ``modified``.
    """
    at = records.parse_time(last.at) if last else None
    since = max(modified or 0.0, at.timestamp() if at else 0.0)
    return now - since if since else 0.0
