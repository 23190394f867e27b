"""The acts that begin a cycle, conduct it and choose among several, and what is read, described once.

Source: development cycle specification, "Orchestrator".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.cycle.actions import table_fields as given
from acp_core.protocols.cycle.schema import AGENTS, REBUILD_ACT, RUN_ACT, SELECT_ACT, START_ACT

_ROOM = "acp_core.protocols.cycle.actions"
_QUERIES = "acp_core.protocols.cycle.queries"
CONDUCTED = (
    (0, "started; with --foreground: completed"),
    (1, "with --foreground: the orchestrator gave up"),
    (2, "refused, or invalid input"),
    (4, "with --foreground and --leave: the cycle waits for a person"),
    (5, "with --foreground: the cycle failed, or was stopped"),
    (130, "interrupted"),
)
STARTING = ActionSpec(
    START_ACT,
    "New development cycle",
    "Start a development cycle: RA, EP, CD and VAS work until the tests pass.",
    f"{_ROOM}.init:starting",
    (
        Field("objective", "Task", "The task: what to build.", Kind.LINES,
              required=True, position=True),
        given.PROGRAM,
        given.COMMAND,
        Field("iterations", "Maximum iterations", "Maximum number of iterations [default: the package's, or 5].",
              Kind.NUMBER, flag="--max-iterations"),
        Field("begin", "Start now", "Start the orchestrator, or only write the cycle's files.",
              Kind.FLAG, default=True, flag="--run"),
        *given.OTHER_PROGRAMS,
        Field("title", help="The title [default: the beginning of the task].", form=False),
        Field("prep", help="Use the project's prep-package.json.", kind=Kind.FLAG, default=True,
              form=False),
        given.CYCLE._replace(help="The id of the new cycle."),
        *given.PROGRAMS,
        *given.CONDUCT,
    ),
    Intent.CREATE,
    command="cycle start",
    help="The orchestrator keeps running when you close the terminal. Name the preset of each agent, or "
    "write a command after `--`: acp replaces {prompt} or {prompt_file} in it, or writes the prompt to its standard "
    "input.",
    aliases=("create",),
    examples=('acp cycle start "Export the report as CSV" --agent claude --agent cd=codex',),
    exits=CONDUCTED,
    place=given.NAMED_PROJECT,
    run=f"{_ROOM}.init:start_here",
    words="COMMAND",
)  # fmt: skip
RUNNING = ActionSpec(
    RUN_ACT,
    "Start the orchestrator",
    "Run a cycle, or resume it, with the same programs or others.",
    f"{_ROOM}.conducting:conducting",
    (given.PROGRAM, given.COMMAND, given.CYCLE, *given.PROGRAMS, *given.CONDUCT),
    Intent.START,
    command="cycle run",
    help="Omitted options keep their earlier values. Finished runs are not repeated; running programs are "
    "taken over.",
    aliases=("conduct",),
    examples=("acp cycle run", "acp cycle run --foreground"),
    exits=CONDUCTED,
    place=given.PROJECT,
    run=f"{_ROOM}.conducting:conduct_here",
    words="COMMAND",
)
REBUILDING = ActionSpec(
    REBUILD_ACT,
    "Rebuild the state",
    "Restore the state that acp wrote last, or rebuild it from the agents' documents.",
    f"{_ROOM}.rebuilding:rebuilding",
    (given.CYCLE._replace(help="The id of the cycle [default: the lost or damaged one]."),),
    Intent.REPAIR,
    command="cycle rebuild",
    help="A rebuilt cycle is paused until you resume it. The old file is kept beside it.",
    examples=("acp cycle rebuild --dry-run",),
    place=given.PROJECT,
)
SELECTION = ActionSpec(
    SELECT_ACT,
    "Show another cycle",
    "Choose the cycle of the project to show and act on.",
    f"{_ROOM}.select:selection",
    (
        Field("cycle", "Cycle", "The cycle's id, or the end of it.", Kind.CHOICE,
              required=True, position=True, metavar="ID"),
    ),
    command="cycle select",
    help="The project's files are not changed.",
    aliases=("show",),
    examples=("acp cycle select csvexprt",),
    place=given.NAMED_PROJECT,
)  # fmt: skip
STATUS = QuerySpec(
    "status",
    "Show agents, decisions, blockers and tests.",
    f"{_QUERIES}:status",
    (given.PROJECT, given.CYCLE),
    command="cycle status",
    examples=("acp cycle status --json",),
)
PHASE_RESULT = QuerySpec(
    "phase-result",
    "Extract PHASE_RESULT from an agent's output.",
    f"{_QUERIES}:phase_result",
    (
        Field("file", help="File with the output (-: standard input).", kind=Kind.FILE, required=True,
              position=True),
        Field("agent", help="The agent that must have written it.", kind=Kind.CHOICE, choices=AGENTS),
    ),
    command="cycle phase-result",
    examples=("acp cycle phase-result printed.txt --agent cd",),
    exits=(
        (0, "valid"),
        (1, "no PHASE_RESULT"),
        (2, "invalid input"),
        (4, "found, with problems"),
    ),
)  # fmt: skip
