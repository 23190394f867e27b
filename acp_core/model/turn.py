"""A participant's turn as a loop sees it, and what a program is told about it.

Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from acp_core.model import Status


class Mode(str, Enum):
    """How a program takes part.

    ``TURN``: it takes one turn and ends, and a loop waits for the next. ``ALONE``: it waits and
    acts by itself until all is over. ``CHANGE``: it takes one turn but can run no commands: it
    changes documents, and the loop records what it did.
    """

    TURN = "turn"
    ALONE = "alone"
    CHANGE = "change"


@dataclass(frozen=True, slots=True)
class TurnState:
    """Where one participant stands, as last read; texts are as they are in the files.

    Attributes:
        waited: it is this participant's turn.
        status: whether all is over (completed or blocked), active, or cannot be told.
        what: what to do now, in a sentence.
        since, since_event: since when, and by which event, the participant is waited for.
        own: how many events this participant has made: a turn that was taken made one more.
        own_event: the last of those.
        documents: paths of the files that this turn changes (in the mode ``CHANGE``: one of
            them must, unless the turn is ``gated``).
        reads: paths of other documents that the turn is about.
        gated: the protocol itself checks that the documents say what they must: they may have
            said so before.
        trouble: why it cannot be told, "" where it can.
    """

    waited: bool
    status: Status = Status.ACTIVE
    what: str = ""
    since: datetime | None = None
    since_event: str = ""
    own: int = 0
    own_event: str = ""
    documents: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    gated: bool = False
    trouble: str = ""

    @property
    def over(self) -> bool:
        """Whether nothing more is to be done here."""
        return self.status in (Status.COMPLETED, Status.BLOCKED)


@dataclass(frozen=True, slots=True)
class Brief:
    """What a prompt is made for.

    Attributes:
        mode: how the program takes part.
        commands: how it runs the protocol's commands: ``{command}`` stands for acp's name of one
            ("append"), ``{script}`` for the file name of the bundled script.
        drafts: a folder in which it may write what is not meant for the others.
        correction: why the last try of this turn did not count; "" for the first.
        message: what a person wants to say about this turn.
        tools: the names of the participant's tools, where the program has them.
    """

    mode: Mode = Mode.TURN
    commands: str = "acp {command}"
    drafts: str = ""
    correction: str = ""
    message: str = ""
    tools: tuple[str, ...] = ()
