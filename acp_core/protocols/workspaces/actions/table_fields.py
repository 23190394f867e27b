"""Fields that several acts of a run have, described once. Standard library only."""

from __future__ import annotations

from acp_core.model.action_spec import Field, Kind
from acp_core.protocols.kit import fast_args

NO_CHANNEL = "A running sub-agent takes no messages: feedback goes into its next prompt."

WHO = Field("agent", "Agent", "Name the agent.", Kind.CHOICE, required=True, position=True)
START = Field(
    "start", help="Also start every agent that can start.", kind=Kind.FLAG, form=False, unasked=True
)
ALIKE = Field("alike", "Apply to all conflicts on this topic", kind=Kind.FLAG,
               help="Apply to all other conflicts on its topic.")  # fmt: skip
CONFLICT = Field("conflict", "Conflict", "Name the conflict by its id.", Kind.CHOICE,
                  required=True, position=True, metavar="ID")  # fmt: skip
TIMEOUT = fast_args.TIMEOUT._replace(
    title="Time limit per agent, in seconds", help="Stop an agent after this time.", most=1e7 - 1
)
PROGRAM_FIELDS = (
    Field("program", "Program", "Choose the program to run.", Kind.CHOICE, listed=False,
          owner=True),
    Field(
        "command", "Command",
        "The command line, for the program 'command'; the prompt goes to its standard input, or replaces "
        "{prompt} or {prompt_file}.",
        listed=False, owner=True,
    ),
    fast_args.MODEL._replace(help="Choose the model [default: the program's own]."),
)  # fmt: skip
"""The program that works: a form asks for a preset or a command; see `actions.programs`."""
