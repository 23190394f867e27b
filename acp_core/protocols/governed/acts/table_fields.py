"""Fields that several acts of runs and initiatives have, described once. Standard library only."""

from __future__ import annotations

from acp_core.model.action_field import PRESETS
from acp_core.model.action_spec import Exits, Field, Kind
from acp_core.protocols.kit import fast_args

RUN = fast_args.FOLDER._replace(help="The run's repository.")

INITIATIVE = fast_args.FOLDER._replace(help="The initiative's folder.")

BY = fast_args.BY._replace(
    title="Who decides", help="Who decides; recorded.", form=True, aliases=("--as",)
)

COMMENT = Field("comment", "Comment", "The reason; recorded.", Kind.LINES)

TURN = Field("turn", "Turn", "The turn, if several are active.", metavar="ID", form=False)

AGENTS = Field(
    "agents", "Agents",
    "ROLE=COMMAND: the command that takes a role's turns. {prompt} is replaced by the prompt, "
    "which otherwise goes to standard input. A human plays a role without a command.",
    Kind.LIST, flag="--agent", metavar="ROLE=COMMAND", suggests=PRESETS, owner=True,
)  # fmt: skip

DECISION: Exits = (
    (0, "done"),
    (1, "you declined the confirmation"),
    (2, "refused, or invalid input"),
    (130, "interrupted"),
)

"""Exit codes of what a human is asked about."""
