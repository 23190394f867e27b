"""Fields that several acts of a cycle have, described once. Standard library only."""

from __future__ import annotations

from acp_core.model.action_spec import PLACE, Field, Kind
from acp_core.protocols.cycle.schema import AGENTS
from acp_core.protocols.kit import options

PROJECT = PLACE._replace(help="The project's folder.")
NAMED_PROJECT = PROJECT._replace(position=False)
"""Where the act takes words by position, too: those stood there before any folder did."""
CYCLE = Field(
    "cycle",
    help="Choose the cycle by its id, or by how that ends (the one that is shown).",
    metavar="ID",
    form=False,
)
AGENT = Field(
    "agent", "Agent", "Name the agent.", Kind.CHOICE, AGENTS, required=True, position=True
)
REASON = Field("reason", "Why", "Say why.")
RECORDED_REASON = REASON._replace(help="Kept in the decision's record.")
PROGRAM = Field(
    "program", "Program of all four agents", "Choose the program of all four agents.", Kind.CHOICE,
    metavar="PRESET", listed=False,
)  # fmt: skip
COMMAND = Field(
    "command", "Its words", 'For the program "command" only; no shell sees them.',
    metavar="WORDS", listed=False,
)  # fmt: skip
OTHER_PROGRAMS = tuple(
    Field(
        f"{name}_program", f"Another program for {name.upper()}",
        f"Choose another program for {name.upper()}.", Kind.CHOICE,
        metavar="PRESET", listed=False, optional=True,
    )
    for name in AGENTS
)  # fmt: skip
"""What forms ask for; on the command line `PROGRAMS` say the same."""
PROGRAMS = (
    options.AGENT._replace(
        name="presets", flag="--agent",
        help="Choose the program of one agent, or (without NAME) of all others.",
    ),
    Field("commands", help="Give one agent a command.", kind=Kind.LIST, flag="--agent-command",
          metavar="NAME=COMMAND", form=False),
    options.MODEL._replace(
        help="Choose the model that the programs use; their own if empty.", form=False
    ),
)  # fmt: skip
CONDUCT = (
    options.TIMEOUT._replace(help="Limit of one run (30m).", form=False),
    options.RETRIES._replace(help="Limit how often a failed run is repeated (1).", form=False),
    Field("attempts", help="How often a run is tried in all.", kind=Kind.NUMBER, form=False,
          listed=False),
    Field("overlap", help="Let EP begin while RA is at work.", kind=Kind.FLAG, form=False),
    Field("foreground", help="Conduct it in this terminal.", kind=Kind.FLAG, form=False),
    Field("leave", help="End where a person is waited for.", kind=Kind.FLAG, form=False),
)  # fmt: skip
"""How an orchestrator conducts: what only commands ask for."""
