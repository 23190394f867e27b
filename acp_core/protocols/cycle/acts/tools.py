"""The tool of a cycle's agent: to check its PHASE_RESULT before it reports it."""

from __future__ import annotations

from acp_core.model.action_spec import PLACE, Answer, By, Field, Kind, QuerySpec
from acp_core.protocols.cycle import queries
from acp_core.protocols.kit.tools import WHO
from acp_core.protocols.kit.values import Values

CHECK_RESULT = QuerySpec(
    "check_result",
    "Check the PHASE_RESULT that you are about to report.",
    "acp_core.protocols.cycle.acts.tools:check_result",
    (
        PLACE,
        WHO,
        Field("text", "Text", "Give the whole text that you will report.", Kind.LINES,
              required=True, most=1_000_000),
    ),
    by=By.PARTICIPANT,
)  # fmt: skip

TOOLS = (CHECK_RESULT,)


def check_result(values: Values) -> Answer:
    """What of a text is the report of an agent, and what is wrong with it."""
    return queries.reported(values.text, values.participant)
