"""A task as anybody may have made it: what of it is shown, and what can be done with it."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from datetime import datetime

from acp_core.files.decode import key, whole
from acp_core.model.text import clean_line
from acp_core.protocols.wire.schema.basics import TERMINAL, TaskState, time_of
from acp_core.protocols.wire.schema.bodies import in_line, shown_text
from acp_core.protocols.wire.schema.untrusted_json import Object, line_of

_KNOWN = {state.value for state in TaskState}
_OVER = {state.value for state in TERMINAL}
_LONG = 200


@dataclass(frozen=True, slots=True)
class Content:
    """What holds parts: an input, an artifact."""

    parts: object = None

    @property
    def text(self) -> str:
        """What a reader sees of it."""
        return shown_text(self.parts)


@dataclass(frozen=True, slots=True)
class Task:
    """A task. Its id, status and direction are safe to show.

    Attributes:
        updated_at: as its maker wrote it; see `since`.
        raw: all that it holds.
    """

    id: str = key(read=line_of(300), default="None")
    status: str = key(read=line_of(20), default="None")
    direction: str = key(read=line_of(20), default="")
    peer_id: str = ""
    updated_at: str = ""
    error: str = key(read=str, default="")
    input: Content = Content()
    artifact: Content | None = None
    raw: Object = whole()

    @property
    def is_whole(self) -> bool:
        """Something can be done with it: it is called something, and is in a known state."""
        return self.raw.get("id") == self.id != "" and self.status in _KNOWN

    @property
    def is_open(self) -> bool:
        """Something can still follow."""
        return self.status not in _OVER

    @property
    def asks_us(self) -> bool:
        """It waits for an answer of the person here."""
        return self.status == "input_required" and self.direction != "received"

    @property
    def since(self) -> datetime | None:
        """When it changed last."""
        return time_of(self.updated_at)

    @property
    def about(self) -> str:
        """What it is about, safe to show."""
        return clean_line(in_line(self.input.text), _LONG)

    @property
    def sentence(self) -> str:
        """Its id, where it stands, and what it is about, in a line."""
        return f"{self.id}, {self.status}" + (f": {self.about}" if self.about else "")

    def is_orphan(self, met: Container[str]) -> bool:
        """It is open and went to a peer that is not known any more: nobody reports on it.

        Args:
            met: ids of the peers to whom something can be sent.
        """
        return self.is_open and self.direction == "delegated" and self.peer_id not in met
