"""Something that somebody asks, or that is not settled, as one word of the model.

Standard library only (see `acp_core.model`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Question:
    """An open question or an item that blocks: for the inbox.

    Attributes:
        key: stays the same as long as it is the same question; acknowledgements hold for it.
        kind: ``question`` (somebody asks), ``unresolved`` or ``blocking``.
        text: the question, one line.
        participant: who asks, where known.
        since: since when, where known.
        document, line, event: where it stands.
        action: name of the action that answers it, where there is one now.
        given: inputs of that action, by name.
    """

    key: str
    kind: str
    text: str
    participant: str | None = None
    since: datetime | None = None
    document: str | None = None
    line: int | None = None
    event: str | None = None
    action: str | None = None
    given: tuple[tuple[str, str], ...] = ()
