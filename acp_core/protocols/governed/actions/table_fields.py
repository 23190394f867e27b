"""Fields that several acts of runs and initiatives have, described once. Standard library only."""

from __future__ import annotations

from acp_core.model.action_spec import Exits, Field, Kind
from acp_core.protocols.kit import options

RUN = options.FOLDER._replace(help="The run's repository.")
INITIATIVE = options.FOLDER._replace(help="The initiative's folder.")
BY = options.BY._replace(
    title="Who decides", help="Name whose decision it is; recorded.", form=True, aliases=("--as",)
)
COMMENT = Field("comment", "Comment", "Say why; recorded.", Kind.LINES)
TURN = Field(
    "turn", "Turn", "Name the turn, where several are under way.", metavar="ID", form=False
)
AGENTS = Field(
    "agents", "Agents",
    "ROLE=COMMAND: the command line that takes a role's turns. {prompt} stands for the prompt, which it "
    "gets on its standard input otherwise; a human plays a role without one.",
    Kind.LIST, flag="--agent", metavar="ROLE=COMMAND",
)  # fmt: skip
DECISION: Exits = (
    (0, "done"),
    (1, "you were asked, and did not mean it"),
    (2, "refused, or invalid input"),
    (130, "interrupted"),
)
"""Exit codes of what a human is asked about."""
