"""The tools of a participant's program: to append an event, and to wait for a turn."""

from __future__ import annotations

from acp_core.protocols.folder.actions.table_agents import APPEND as APPEND_SPEC
from acp_core.protocols.kit.tools import WAIT

APPEND = APPEND_SPEC._replace(
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
TOOLS = (APPEND, WAIT)
