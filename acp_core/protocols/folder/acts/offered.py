"""What can be done in a folder collaboration here and now, bound to it: the descriptions stand in `table`.

With it, what participants' programs are given: tools to append an event and to wait for a turn, and the
commands that they may run without asking where a policy lets them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from acp_core.agents.live.requests import OwnCommand
from acp_core.model.action_field import Kind
from acp_core.model.action_spec import ActionSpec
from acp_core.model.errors import Refused
from acp_core.protocols.folder.acts import table
from acp_core.protocols.folder.acts.agents import FORCED, PLAIN
from acp_core.protocols.folder.acts.documents import is_due
from acp_core.protocols.folder.acts.opened import OpenFolder, ReadFolder, open_folder, who_may
from acp_core.protocols.folder.acts.table import (
    ANSWER_QUESTION,
    BLOCKING,
    CHECK_GATES,
    CONTINUATION,
    REPAIRING,
    SETTLE_QUESTIONS,
    SHARING_ACTS,
    TURNS,
)
from acp_core.protocols.folder.acts.table_agents import APPEND as APPEND_SPEC
from acp_core.protocols.kit.binding import bind_all, bind_named
from acp_core.protocols.kit.command_line import quick
from acp_core.protocols.kit.tools import WAIT

if TYPE_CHECKING:
    from acp_core.model import Action


def actions(collaboration: ReadFolder, now: datetime) -> Sequence[Action]:
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


def action(collaboration: ReadFolder, name: str, now: datetime) -> Action | None:
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
        *SHARING_ACTS,
    )


def own_commands() -> dict[str, OwnCommand]:
    """Those that agents run at every turn, by name, plainly written; none writes without locks."""
    return {
        name: OwnCommand(
            partial(quick, fields=tuple(each for each in fields if each is not FORCED)),
            tuple(each.name for each in fields if each.kind is Kind.FILE),
        )
        for name, fields in PLAIN.items()
    }


APPEND_TOOL = APPEND_SPEC._replace(
    sentence="Append your event to the log, which ends your turn or a step of it.",
    help="Change the documents first. acp refuses the event, and writes nothing, if it is "
    "not yours to append now.",
    fields=tuple(
        each._replace(required=True, optional=False, help="Summarize the event in one sentence.")
        if each.name == "summary"
        else each
        for each in APPEND_SPEC.fields
    ),
)

TOOLS = (APPEND_TOOL, WAIT)
