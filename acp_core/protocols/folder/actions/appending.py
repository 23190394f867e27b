"""A participant's own event, appended as it is asked for."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action, Outcome, OutcomeState
from acp_core.protocols.folder import schema
from acp_core.protocols.folder.actions import table_agents
from acp_core.protocols.folder.actions.agents import request_of
from acp_core.protocols.folder.actions.common import open_folder, participants
from acp_core.protocols.folder.actions.previewing import preview
from acp_core.protocols.folder.write.append import RACED, Request, append
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


def appending(context: Context, now: datetime) -> Action:
    """Append an event; what a person does is offered by its own name instead."""
    here = open_folder(context, now)
    narrowed = {
        "participant": participants(here.opened.participants) | {"default": None},
        "event": {"choices": schema.events_of(here.opened.dialect)},
    }

    def request(values: Values) -> Request:
        values.folder = here.opened.folder
        return request_of(values)

    return bound(
        table_agents.APPEND,
        here,
        lambda values: preview(request(values)),
        lambda values: write(request(values)),
        narrowed=narrowed,
        offered=False,
    )


def write(request: Request) -> Outcome:
    """Append an event, and say how that went.

    Raises:
        Refused: it is not allowed.
        OSError: it cannot be written.
    """
    appended = append(request)
    entry = appended.entry
    sentence = f"Appended seq {entry.name}: {entry.event} from {entry.sender}."
    if appended.existing:
        sentence = f"Already in the log: seq {entry.name}."
    if appended.raced:
        sentence += (
            f" A program without a lock wrote at the same moment (exit code {RACED}): validate."
        )
    return Outcome(OutcomeState.DONE, safe(" ".join([sentence, *appended.warnings])))
