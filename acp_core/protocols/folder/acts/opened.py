"""What the acts have in common: the collaboration that they are bound to, and who may do what in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, cast

from acp_core.model import Snapshot
from acp_core.model.text import clean_line, clean_name
from acp_core.protocols import folder
from acp_core.protocols.folder.read.facts import Facts
from acp_core.protocols.folder.schema import deliverables, records
from acp_core.protocols.folder.schema.records import Entry
from acp_core.protocols.folder.state import Illegal
from acp_core.protocols.folder.write import repair
from acp_core.protocols.folder.write.opened import Opened, open_unlocked
from acp_core.protocols.folder.write.repair import Outlook
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.registry import load

_PROBE = "—"
_TITLE = 200  # characters


class ReadFolder(Protocol):
    """A folder collaboration as it was read for showing it, as far as acts ask it.

    Attributes:
        key: its folder.
        facts: what was read of its files.
    """

    key: str
    facts: Facts

    @property
    def outlook(self) -> Outlook:
        """What a repair would do."""

    def refresh(self, now: datetime) -> Snapshot:
        """Read what changed."""


@dataclass(frozen=True, slots=True)
class OpenFolder:
    """A collaboration as it stands when its actions are bound to it.

    Attributes:
        collaboration: what was read for showing it.
        opened: what a writer would find.
        humans: the ids of participants who are people.
    """

    collaboration: ReadFolder
    opened: Opened
    humans: frozenset[str]

    @property
    def key(self) -> str:
        """The collaboration's folder."""
        return self.collaboration.key


def read_collaboration(context: Context, now: datetime) -> ReadFolder:
    """The collaboration that an action is bound to, as it stands now."""
    if isinstance(context, OpenFolder):
        return context.collaboration
    known = hasattr(context, "facts")
    found = cast("ReadFolder", context if known else load(folder.PROTOCOL.open)(context.key))
    found.refresh(now)
    return found


def open_folder(context: Context, now: datetime) -> OpenFolder:
    """The collaboration that an action is bound to; read where nobody did.

    Raises:
        Refused: there is none, or it cannot be read.
        OSError: the same.
    """
    if isinstance(context, OpenFolder):
        return context
    collaboration = read_collaboration(context, now)
    opened = repair.opened(collaboration.facts) or open_unlocked(collaboration.key, full=True)
    people = {
        each.id for each in collaboration.refresh(now).participants if each.kind == "human"
    }  # in their safe form
    humans = frozenset(name for name in opened.participants if clean_name(name) in people)
    return OpenFolder(collaboration, opened, humans)


def participants(names: Sequence[str]) -> dict[str, Any]:
    """A field as a choice between participants, here and now; the first one where none is named."""
    labels = {name: shown for name in names if (shown := clean_name(name)) != name}
    return {"choices": tuple(names), "default": names[0], "labels": labels, "required": True}


def title(text: str) -> str:
    """What a field is called, where that comes from files."""
    return clean_line(text, _TITLE)


def who_may(opened: Opened, event: str) -> list[str]:
    """The participants for whom an event is legal now, as far as the state machine says."""
    if "completed" in opened.machine.last or event not in records.events_of(opened.dialect):
        return []
    return [name for name in opened.participants if not problems(opened, event, name)]


def problems(opened: Opened, event: str, participant: str) -> Sequence[Illegal]:
    """What the state machine says against an event of a participant."""
    deliverable = event in records.DELIVERABLE_EVENTS
    reference = deliverables.declare(opened.protocol).reference if deliverable else None
    entry = Entry(
        line=0,
        seq=opened.next_seq,
        sender=participant,
        event=event,
        at="",
        summary=_PROBE,
        doc={"completed": "conclusion.md"}.get(event, reference),
        reply_to=opened.last_seq,
        role="primary" if deliverable else None,
        sha256=None,
        key=None,
    )
    return opened.machine.problems(entry)
