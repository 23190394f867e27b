"""What a person can do in a folder collaboration, described: forms and commands are made of it.

Loaded only when needed: the descriptions are pydantic models.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.files.text import clean_line
from acp_core.protocols.folder.actions import answering, events, remedies
from acp_core.protocols.folder.actions import repair as mending
from acp_core.protocols.folder.actions.init import create
from acp_core.protocols.folder.write import Refused, repair_plan
from acp_core.protocols.folder.write.opened import Opened, open_unlocked

if TYPE_CHECKING:
    from acp_core.model import Action, Snapshot
    from acp_core.protocols.folder.read.collaboration import FolderCollaboration

__all__ = ["actions", "create"]


def actions(collaboration: FolderCollaboration, now: datetime) -> Sequence[Action]:
    """What a person can do now, most useful first.

    Names: ``repair``, ``continue``, ``check_gates``, ``settle_questions``, ``answer_question``, ``block``, and for a
    turn the name of its event.

    Args:
        collaboration: a folder collaboration; its Snapshot says who is a person.
        now: the time as of which it is read.
    """
    snapshot = collaboration.refresh(now)
    facts, folder = collaboration.facts, collaboration.key
    repair = mending.repair(folder, _planned(collaboration, now))
    try:
        opened = repair_plan.opened(facts) or open_unlocked(folder)
    except (Refused, OSError):
        return [repair] if repair else []
    humans = _humans(snapshot, opened)
    own, others = events.turns(opened, humans)
    first = [repair, mending.continue_elsewhere(opened)]
    gates, settle = remedies.check_gates(opened), remedies.settle_questions(opened)
    documents = [answering.answer_question(opened, facts.review), settle]
    due = remedies.is_due(opened)  # else it is only possible
    before, after = ([gates, *documents], []) if due else ([gates], documents)
    listed = [*first, *own, *before, events.block(opened, humans), *after, *others]
    return [action for action in listed if action is not None]


def _planned(collaboration: FolderCollaboration, now: datetime) -> Sequence[str]:
    try:
        return collaboration.outlook.planned(collaboration.facts, now)
    except (Refused, OSError):
        return ()


def _humans(snapshot: Snapshot, opened: Opened) -> frozenset[str]:
    """The ids of the participants who are people, as the Snapshot says (in its safe form)."""
    people = {person.id for person in snapshot.participants if person.kind == "human"}
    return frozenset(name for name in opened.participants if clean_line(name) in people)
