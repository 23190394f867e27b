"""The tools of a role's program: to check its staged result, and to leave a message in TALK.md."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import PLACE, Answer, By
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.governed import queries
from acp_core.protocols.governed.acts.common import open_run
from acp_core.protocols.governed.acts.table import CHECK, TALKING
from acp_core.protocols.governed.state import turns_of
from acp_core.protocols.governed.write import decide
from acp_core.protocols.governed.write.opened import read_unlocked
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.tools import WHO
from acp_core.protocols.kit.values import Values

CHECK_RESULT = CHECK._replace(
    name="check_result",
    sentence="Check the staged result of your turn without changing anything.",
    answer="acp_core.protocols.governed.acts.tools:check_result",
    fields=(PLACE, WHO),
    by=By.PARTICIPANT,
)

LEAVE_MESSAGE = TALKING._replace(
    name="leave_message",
    bind="acp_core.protocols.governed.acts.tools:leaving_message",
    fields=(WHO, *(each for each in TALKING.fields if each.name == "text")),
    by=By.PARTICIPANT,
)

TOOLS = (CHECK_RESULT, LEAVE_MESSAGE)


def check_result(values: Values) -> Answer:
    """Whether a role's staged result would be accepted, and what is wrong where not."""
    turns = turns_of(read_unlocked(values.folder).state)
    own = [id for id, turn in turns.items() if turn.get("assigned_role") == values.participant]
    if not own:
        raise Refused(f"no turn of {values.participant} is under way")
    return queries.check(Values(folder=values.folder, turn=own[0]))


def leaving_message(context: Context, now: datetime) -> Action:
    """Write into TALK.md as the role itself."""
    root = open_run(context).root

    def perform(values: Values) -> Outcome:
        decide.talk(root, values.text, values.participant, utc_now())
        return Outcome(OutcomeState.DONE, "Added to TALK.md.")

    return bound(
        LEAVE_MESSAGE, context, lambda values: Preview("Add your message to TALK.md."), perform
    )
