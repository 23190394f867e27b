"""What a person can do in a folder collaboration, bound to it: the descriptions stand in `table`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.protocols.folder.actions import table
from acp_core.protocols.folder.actions.common import OpenFolder, open_folder, who_may
from acp_core.protocols.folder.actions.readiness import is_due
from acp_core.protocols.folder.actions.table_files import CONTINUATION, REPAIRING
from acp_core.protocols.folder.actions.table_share import SPECS as SHARING
from acp_core.protocols.folder.actions.table_turns import (
    ANSWER_QUESTION,
    BLOCKING,
    CHECK_GATES,
    SETTLE_QUESTIONS,
    TURNS,
)
from acp_core.protocols.kit.binding import bind_all, bind_named

if TYPE_CHECKING:
    from acp_core.model import Action
    from acp_core.protocols.folder.collaboration import FolderCollaboration


def actions(collaboration: FolderCollaboration, now: datetime) -> Sequence[Action]:
    """What a person can do now, most useful first.

    Args:
        collaboration: a folder collaboration; its Snapshot says who is a person.
        now: the time as of which it is read.
    """
    try:
        here = open_folder(collaboration, now)
    except (Refused, OSError):
        return bind_all((REPAIRING,), collaboration, now)
    return bind_all(_ordered(here), here, now)


def action(collaboration: FolderCollaboration, name: str, now: datetime) -> Action | None:
    """One action by its name without the others; None where there is none.

    Raises:
        Refused: it cannot be done now.
        OSError: the collaboration cannot be read.
    """
    return bind_named(table.ALL, name, collaboration, now)


def _ordered(here: OpenFolder) -> Sequence[ActionSpec]:
    """A person's own turns first, and last those that would be taken in an agent's place."""
    own = [spec for spec in TURNS if here.humans.intersection(who_may(here.opened, spec.name))]
    others = [spec for spec in TURNS if spec not in own]
    documents = (ANSWER_QUESTION, SETTLE_QUESTIONS)
    due = is_due(here.opened)  # else it is only possible
    before, after = (documents, ()) if due else ((), documents)
    return (
        REPAIRING,
        CONTINUATION,
        *own,
        CHECK_GATES,
        *before,
        BLOCKING,
        *after,
        *others,
        *SHARING,
    )
