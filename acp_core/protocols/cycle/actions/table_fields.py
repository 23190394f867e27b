"""Fields that several acts of a cycle have, described once. Standard library only."""

from __future__ import annotations

from acp_core.model.action_spec import PLACE, Field, Kind
from acp_core.protocols.cycle.schema import AGENTS
from acp_core.protocols.kit import fast_args

PROJECT = PLACE._replace(help="The project's folder.")
NAMED_PROJECT = PROJECT._replace(position=False)
"""Where the act takes words by position, too: those stood there before any folder did."""
CYCLE = Field(
    "cycle",
    help="The cycle's id, or the end of it [default: the shown one].",
    metavar="ID",
    form=False,
)
AGENT = Field(
    "agent", "Agent", "Name the agent.", Kind.CHOICE, AGENTS, required=True, position=True
)
REASON = Field("reason", "Why", "Reason; recorded.")
RECORDED_REASON = REASON._replace(help="Recorded with the decision.")
PROGRAM = Field(
    "program", "Program of all four agents", "The program that runs all four agents.", Kind.CHOICE,
    metavar="PRESET", listed=False, owner=True,
)  # fmt: skip
COMMAND = Field(
    "command", "Command line", 'For the program "command" only; runs without a shell.',
    metavar="WORDS", listed=False, owner=True,
)  # fmt: skip
OTHER_PROGRAMS = tuple(
    Field(
        f"{name}_program", f"Another program for {name.upper()}",
        f"The program for {name.upper()}, if different.", Kind.CHOICE,
        metavar="PRESET", listed=False, optional=True, owner=True,
    )
    for name in AGENTS
)  # fmt: skip
"""What forms ask for; on the command line `PROGRAMS` say the same."""
PROGRAMS = (
    fast_args.AGENT._replace(
        name="presets", flag="--agent",
        help="The program of one agent, or (without NAME) of all others.",
    ),
    Field("commands", help="The command of one agent.", kind=Kind.LIST, flag="--agent-command",
          metavar="NAME=COMMAND", form=False, owner=True),
    fast_args.MODEL._replace(
        help="The model that the programs use [default: their own].", form=False
    ),
)  # fmt: skip
CONDUCT = (
    fast_args.TIMEOUT._replace(help="Time limit per attempt [default: 30m].", form=False),
    fast_args.RETRIES._replace(help="Maximum number of retries [default: 1].", form=False),
    Field("attempts", help="Maximum number of attempts.", kind=Kind.NUMBER, form=False,
          listed=False, owner=True),
    Field("overlap", help="Let EP start while RA is working.", kind=Kind.FLAG, form=False),
    fast_args.JOBS._replace(
        help="Maximum number of tasks of the plan that CD works on at the same time, if they are "
        "independent [default: 1].",
        form=False,
    ),
    fast_args.ONCE,
    fast_args.PERMISSIONS,
    fast_args.BUDGET._replace(form=False),
    Field("foreground", help="Run the orchestrator in this terminal.", kind=Kind.FLAG, form=False),
    Field("leave", help="Exit when the cycle waits for a person.", kind=Kind.FLAG, form=False),
)  # fmt: skip
"""How an orchestrator conducts: what only commands ask for."""
