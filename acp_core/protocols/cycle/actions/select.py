"""The act that shows another cycle of the project; it writes nothing into the project."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.text import clean_line
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.actions.table_conducting import SELECTION
from acp_core.protocols.cycle.read import selected
from acp_core.protocols.cycle.read.selected import open_project
from acp_core.protocols.cycle.schema import Cycle
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe

GOES_ON = "the active cycle"
_MOST = 50  # cycles that are offered, the latest ones


def selection(context: Context, now: datetime) -> Action:
    """Choose which cycle is shown, where there are several."""
    opened = open_project(context, now)
    shown = opened.selected
    others = [each for each in opened.project.cycles if each.id != shown.id][::-1][:_MOST]
    ids = (*(each.id for each in others), GOES_ON)
    first = next((each.id for each in others if each.status in schema.OPEN), ids[0])
    about = clean_line(" · ".join(map(_described, others[:8])))

    def chosen(values: Values) -> str:
        return GOES_ON if values.cycle == GOES_ON else opened.find(values.cycle).id

    def preview(values: Values) -> Preview:
        return Preview(f"Show {safe(chosen(values))} from now on, and apply all actions to it.")

    def perform(values: Values) -> Outcome:
        id = chosen(values)
        selected.choose(opened.root, "" if id == GOES_ON else id)
        return Outcome(OutcomeState.DONE, f"Showing {safe(id)}.")

    return bound(
        SELECTION,
        opened,
        preview,
        perform,
        narrowed={"cycle": {"choices": ids, "default": first, "help": about}},
        sentence=f"Showing {shown.id}. Choose another cycle of this project.",
        offered=bool(others),
    )


def _described(cycle: Cycle) -> str:
    title = schema.text(cycle.value.get("title")) or "no title"
    return f"{cycle.id[-8:]}: {title}, {cycle.status or 'unreadable'}, {state.verdict(cycle)}"
