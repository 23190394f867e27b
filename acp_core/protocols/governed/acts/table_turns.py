"""The acts that carry a run forward, and what is read of it, described once.

Source: governed protocol specification, "Commands".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.acts import table_fields
from acp_core.protocols.governed.write.initiative_configuring import BARRIERS
from acp_core.protocols.kit import fast_args

CREATION = ActionSpec(
    schema.CREATE,
    "New governed run",
    "Start a governed run: agents work in phases, and you open the gates between them. With "
    "repositories, configure an initiative over them.",
    "acp_core.protocols.governed.acts.creating:creation",
    (
        Field("name", "Name", "The project's name [default: the folder's name]."),
        Field("objective", "Goal", "The goal of the run.", Kind.LINES, flag="--goal"),
        Field(
            "phases", "Phases",
            "A phase and the role that starts it, in order (planning=pm, implementation=dev, "
            "verification=qa).",
            Kind.LIST, flag="--phase", metavar="NAME=ROLE", form=False,
        ),
        table_fields.AGENTS,
        Field(
            "repositories", "Repositories",
            "For an initiative over several repositories: NAME=ADDRESS or NAME=ADDRESS#BRANCH. Default: one run "
            "in this folder.",
            Kind.LIST, flag="--repo", metavar="NAME=ADDRESS",
        ),
        Field(
            "barriers", "Barriers", "For an initiative: NAME=PHASE; all workstreams wait for each other at the end of that phase.",
            Kind.LIST, flag="--barrier", metavar="NAME=PHASE", default=BARRIERS,
        ),
    ),
    Intent.CREATE,
    command="governed init",
    help="Writes the configuration, roles, prompts, planning documents and TALK.md.",
    place=table_fields.RUN,
    examples=('acp governed init . --goal "Light the hall" --agent "dev=claude -p"',),
)  # fmt: skip

STEPPING = ActionSpec(
    schema.STEP,
    "Assign the next turn",
    "Assign a turn, write its prompt bundle, and start the role's program if it has one.",
    "acp_core.protocols.governed.acts.turns:stepping",
    (
        Field("role", "Role", "The role that takes the turn [default: the next one].", Kind.CHOICE,
              metavar="ROLE"),
        Field("no_run", help="Write the bundle without starting a program.", kind=Kind.FLAG, form=False),
        fast_args.BUDGET._replace(form=False),
    ),
    Intent.START,
    command="governed step",
    help="The command waits for the role's program to end. A human plays a role without a "
    "program.",
    examples=("acp governed step", "acp governed step --role qa --dry-run"),
    exits=(
        (0, "staged, or the turn waits for a human"),
        (1, "its program failed"),
        (2, "refused"),
        (130, "interrupted"),
    ),
    place=table_fields.RUN,
    run="acp_core.protocols.governed.acts.stepping:run",
)  # fmt: skip

STOPPING = ActionSpec(
    schema.STOP,
    "Stop the program",
    "Stop the program that takes the turn; its changes in the repository stay.",
    "acp_core.protocols.governed.acts.turns:stopping",
    (table_fields.TURN,),
    Intent.STOP,
    risky=True,
    command="governed stop-turn",
    aliases=("stop",),
    examples=("acp governed stop-turn",),
    place=table_fields.RUN,
)

STATUS = QuerySpec(
    "status",
    "Show phase, turns, gate and objections of a run.",
    "acp_core.protocols.governed.queries:status",
    (table_fields.RUN,),
    command="governed status",
    examples=("acp governed status", "acp governed status ~/work/hall --json"),
)

CHECK = QuerySpec(
    "check",
    "Check the staged result of a turn without changing anything.",
    "acp_core.protocols.governed.queries:check",
    (table_fields.RUN, table_fields.TURN),
    command="governed check",
    examples=("acp governed check",),
    exits=(
        (0, "it would be accepted"),
        (1, "it would be rejected"),
        (2, "no staged result, or invalid input"),
        (130, "interrupted"),
    ),
)

CORRECTION = ActionSpec(
    schema.CORRECT,
    "Correct the result",
    "Apply the proposed corrections to the staged result, and nothing else.",
    "acp_core.protocols.governed.acts.turns:correction",
    (table_fields.TURN,),
    Intent.REPAIR,
    command="governed correct-result",
    aliases=("correct",),
    examples=("acp governed correct-result --dry-run",),
    place=table_fields.RUN,
)

ACCEPTANCE = ActionSpec(
    schema.ACCEPT,
    "Accept the turn",
    "Accept the staged result into the history.",
    "acp_core.protocols.governed.acts.turns:acceptance",
    (
        table_fields.TURN,
        Field(
            "exclude", "Not the agent's", "Path of a changed file that the agent did not change.",
            Kind.LIST, metavar="PATH",
        ),
    ),
    Intent.ACCEPT,
    command="governed accept-turn",
    help="acp checks the result first and compares it with the changes in the repository.",
    examples=("acp governed accept-turn", "acp governed accept-turn --exclude build/log.txt"),
    place=table_fields.RUN,
)  # fmt: skip

REJECTION = ActionSpec(
    schema.REJECT,
    "Reject the turn",
    "Send the turn back with the reason; after the last attempt the run blocks.",
    "acp_core.protocols.governed.acts.turns:rejection",
    (
        table_fields.TURN,
        Field("reason", "What is wrong", "Describe what is wrong, for the agent.", Kind.LINES,
              aliases=("--comment",), metavar="TEXT", needed=True),
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.REJECT,
    command="governed reject-turn",
    examples=('acp governed reject-turn --reason "No test of the dimmer"',),
    exits=table_fields.DECISION,
    place=table_fields.RUN,
)  # fmt: skip
