"""The action that shows another cycle of the project.

Loaded only when needed: the description is a pydantic model. It writes nothing into the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from acp_core.files.text import clean_line
from acp_core.model import Action, Outcome, OutcomeState, Preview
from acp_core.protocols.cycle import schema, state
from acp_core.protocols.cycle.actions import perform as doing
from acp_core.protocols.cycle.read import selected
from acp_core.protocols.cycle.schema import Cycle

GOES_ON = "the one that goes on"
_MOST = 50  # cycles that are offered, the latest ones


def show(cycle: Cycle, root: Path, others: Sequence[Cycle]) -> Action | None:
    """Choose which cycle is shown; None where there is only one.

    Args:
        cycle: the one that is shown.
        root: the project's folder.
        others: the other ones.
    """
    if not others:
        return None
    offered = [*others[::-1][:_MOST]]
    ids = (*(each.id for each in offered), GOES_ON)
    told = " · ".join(
        f"{each.id[-8:]}: {schema.text(each.value.get('title')) or 'no title'}, "
        f"{each.status or 'unreadable'}, {state.verdict(each)}"
        for each in offered[:8]
    )
    first = next((each.id for each in offered if each.status in schema.OPEN), ids[0])
    field: Any = (Literal[ids], Field(first, title="Cycle", description=clean_line(told)))
    model: type[BaseModel] = create_model("Show", cycle=field)

    def preview(given: Any) -> Preview:
        return Preview(f"Show {given.cycle} from now on, and do all actions to it.")

    def perform(given: Any) -> Outcome:
        try:
            selected.choose(root, "" if given.cycle == GOES_ON else given.cycle)
        except OSError as error:
            return Outcome(OutcomeState.REFUSED, doing.reason_of(error))
        return Outcome(OutcomeState.DONE, f"Shows {given.cycle}.")

    sentence = f"{cycle.id} is shown. Look at another cycle of this project."
    return Action("show", "Show another cycle", sentence, model, preview, perform)
