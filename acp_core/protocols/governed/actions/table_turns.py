"""The acts that carry a run forward, and what is read of it, described once.

Source: governed protocol specification, "Commands".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.governed.actions import names
from acp_core.protocols.governed.actions import table_fields as given
from acp_core.protocols.governed.coordinator.configuring import BARRIERS
from acp_core.protocols.kit import options

_ROOM = "acp_core.protocols.governed.actions"
_QUERIES = "acp_core.protocols.governed.queries"
CREATION = ActionSpec(
    names.CREATE,
    "New governed run",
    "Start a governed run: agents work in phases, and you open the gates between them. With "
    "repositories: write down an initiative over them.",
    f"{_ROOM}.creating:creation",
    (
        Field("name", "Name", "Name the project; empty: as the folder."),
        Field("objective", "Goal", "Say what the run is to reach.", Kind.LINES, flag="--goal"),
        Field(
            "phases", "Phases",
            "Name a phase and the role that begins it, in order (planning=pm, implementation=dev, "
            "verification=qa).",
            Kind.LIST, flag="--phase", metavar="NAME=ROLE", form=False,
        ),
        given.AGENTS,
        Field(
            "repositories", "Repositories",
            "For an initiative over several: NAME=ADDRESS or NAME=ADDRESS#BRANCH each; empty: one run "
            "in this folder.",
            Kind.LIST, flag="--repo", metavar="NAME=ADDRESS",
        ),
        Field(
            "barriers", "Barriers", "Of an initiative: NAME=PHASE, where all wait for each other.",
            Kind.LIST, flag="--barrier", metavar="NAME=PHASE", default=BARRIERS,
        ),
    ),
    Intent.CREATE,
    command="governed init",
    help="It writes the configuration, roles, prompts, planning documents and TALK.md.",
    place=given.RUN,
    examples=('acp governed init . --goal "Light the hall" --agent "dev=claude -p"',),
)  # fmt: skip
STEPPING = ActionSpec(
    names.STEP,
    "Give out the next turn",
    "Assign a turn, write what its agent is given, and start its program where it has one.",
    f"{_ROOM}.turns:stepping",
    (
        Field("role", "Role", "Choose who takes the turn; empty: who comes next.", Kind.CHOICE,
              metavar="ROLE"),
        Field("no_run", help="Write the bundle, and start nothing.", kind=Kind.FLAG, form=False),
    ),
    Intent.START,
    command="governed step",
    help="The command waits until the role's program has ended; a role without a program is played by a "
    "human.",
    examples=("acp governed step", "acp governed step --role qa --dry-run"),
    exits=(
        (0, "staged, or a human takes the turn"),
        (1, "its program came to nothing"),
        (2, "refused"),
        (130, "interrupted"),
    ),
    place=given.RUN,
    run=f"{_ROOM}.stepping:run",
)  # fmt: skip
STOPPING = ActionSpec(
    names.STOP,
    "Stop the program",
    "End the program that takes the turn; what it changed in the repository stays.",
    f"{_ROOM}.turns:stopping",
    (given.TURN,),
    Intent.STOP,
    risky=True,
    command="governed stop-turn",
    aliases=("stop",),
    examples=("acp governed stop-turn",),
    place=given.RUN,
)
STATUS = QuerySpec(
    "status",
    "Say where a run stands: phase, who is waited for, gate, objections.",
    f"{_QUERIES}:status",
    (given.RUN,),
    command="governed status",
    examples=("acp governed status", "acp governed status ~/work/hall --json"),
)
CHECK = QuerySpec(
    "check",
    "Check the staged result of a turn, and change nothing.",
    f"{_QUERIES}:check",
    (given.RUN, given.TURN),
    command="governed check",
    examples=("acp governed check",),
    exits=(
        (0, "it would be accepted"),
        (1, "it would not"),
        (2, "there is none, or bad input"),
        (130, "interrupted"),
    ),
)
CORRECTION = ActionSpec(
    names.CORRECT,
    "Correct the result",
    "Apply the corrections that are proposed for the staged result; nothing else changes.",
    f"{_ROOM}.turns:correction",
    (given.TURN,),
    Intent.REPAIR,
    command="governed correct-result",
    aliases=("correct",),
    examples=("acp governed correct-result --dry-run",),
    place=given.RUN,
)
ACCEPTANCE = ActionSpec(
    names.ACCEPT,
    "Accept the turn",
    "Enter the staged result into the history.",
    f"{_ROOM}.turns:acceptance",
    (
        given.TURN,
        Field(
            "exclude", "Not the agent's", "A changed file that is not the agent's, as a path.",
            Kind.LIST, metavar="PATH",
        ),
    ),
    Intent.ACCEPT,
    command="governed accept-turn",
    help="The result is checked before, and compared with what changed in the repository.",
    examples=("acp governed accept-turn", "acp governed accept-turn --exclude build/log.txt"),
    place=given.RUN,
)  # fmt: skip
REJECTION = ActionSpec(
    names.REJECT,
    "Reject the turn",
    "Send the turn back with the reason; after the last attempt the run is blocked.",
    f"{_ROOM}.turns:rejection",
    (
        given.TURN,
        Field("reason", "What is wrong", "Say what is wrong; the agent reads it.", Kind.LINES,
              aliases=("--comment",)),
        given.BY,
        options.YES,
    ),
    Intent.REJECT,
    command="governed reject-turn",
    examples=('acp governed reject-turn --reason "No test of the dimmer"',),
    exits=given.DECISION,
    place=given.RUN,
)  # fmt: skip
