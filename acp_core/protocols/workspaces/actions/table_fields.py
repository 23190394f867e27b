"""Fields that several acts of a run have, described once. Standard library only."""

from __future__ import annotations

from acp_core.model.action_spec import Field, Kind
from acp_core.protocols.kit import options

NO_CHANNEL = "A running sub-agent cannot be spoken to: what you say stands in its next prompt."

WHO = Field("agent", "Agent", "Name the agent.", Kind.CHOICE, required=True, position=True)
START = Field(
    "start", help="Then start whoever can begin.", kind=Kind.FLAG, form=False, unasked=True
)
ALIKE = Field("alike", "All others on this topic, too", kind=Kind.FLAG,
               help="Do the same with all others on its topic.")  # fmt: skip
CONFLICT = Field("conflict", "Conflict", "Name the conflict by its id.", Kind.CHOICE,
                  required=True, position=True, metavar="ID")  # fmt: skip
TIMEOUT = options.TIMEOUT._replace(
    title="Seconds after which an agent is stopped", help="Stop an agent after that.", most=1e7 - 1
)
PROGRAM_FIELDS = (
    Field("program", "Program", "Choose the program that works.", Kind.CHOICE, listed=False),
    Field(
        "command", "Command",
        "Its words, for the program 'command'; the prompt goes to its standard input, or where "
        "{prompt} or {prompt_file} stands.",
        listed=False,
    ),
    options.MODEL._replace(help="The program's own if empty."),
)  # fmt: skip
"""The program that works: a form asks for a preset or a command; see `actions.programs`."""
