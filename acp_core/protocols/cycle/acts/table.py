"""Every act and query of a development cycle, described once: what a form offers, and the commands made of it.

What acts change is only requested until an orchestrator has picked it up.
Source: development cycle specification, "Orchestrator" and "Escalation Path".
"""

from __future__ import annotations

from acp_core.model.action_spec import PLACE, ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.cycle.schema import (
    ACCEPT_ACT,
    AGENTS,
    DECIDE_ACT,
    EXTEND_ACT,
    FEEDBACK_ACT,
    LIMIT_ACT,
    PAUSE_ACT,
    REBUILD_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    RESUME_ACT,
    RUN_ACT,
    SELECT_ACT,
    START_ACT,
    STOP_ACT,
)
from acp_core.protocols.cycle.write.changes import KINDS
from acp_core.protocols.kit import command_line
from acp_core.protocols.kit.command import Commands

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
    command_line.AGENT._replace(
        name="presets", flag="--agent",
        help="The program of one agent, or (without NAME) of all others.",
    ),
    Field("commands", help="The command of one agent.", kind=Kind.LIST, flag="--agent-command",
          metavar="NAME=COMMAND", form=False, owner=True),
    command_line.MODEL._replace(
        help="The model that the programs use [default: their own].", form=False
    ),
)  # fmt: skip

CONDUCT = (
    command_line.TIMEOUT._replace(help="Time limit per attempt [default: 30m].", form=False),
    command_line.RETRIES._replace(help="Maximum number of retries [default: 1].", form=False),
    Field("attempts", help="Maximum number of attempts.", kind=Kind.NUMBER, form=False,
          listed=False, owner=True),
    Field("overlap", help="Let EP start while RA is working.", kind=Kind.FLAG, form=False),
    command_line.JOBS._replace(
        help="Maximum number of tasks of the plan that CD works on at the same time, if they are "
        "independent [default: 1].",
        form=False,
    ),
    command_line.ONCE,
    command_line.PERMISSIONS,
    command_line.BUDGET._replace(form=False),
    Field("foreground", help="Run the orchestrator in this terminal.", kind=Kind.FLAG, form=False),
    Field("leave", help="Exit when the cycle waits for a person.", kind=Kind.FLAG, form=False),
)  # fmt: skip
"""How an orchestrator conducts: what only commands ask for."""
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
    "acp_core.protocols.cycle.acts.conducting:starting",
    (
        Field("objective", "Task", "The task: what to build.", Kind.LINES,
              required=True, position=True),
        PROGRAM,
        COMMAND,
        Field("iterations", "Maximum iterations", "Maximum number of iterations [default: the package's, or 5].",
              Kind.NUMBER, flag="--max-iterations"),
        Field("begin", "Start now", "Start the orchestrator, or only write the cycle's files.",
              Kind.FLAG, default=True, flag="--run"),
        *OTHER_PROGRAMS,
        Field("title", help="The title [default: the beginning of the task].", form=False),
        Field("prep", help="Use the project's prep-package.json.", kind=Kind.FLAG, default=True,
              form=False),
        CYCLE._replace(help="The id of the new cycle."),
        *PROGRAMS,
        *CONDUCT,
    ),
    Intent.CREATE,
    command="cycle start",
    help="The orchestrator keeps running when you close the terminal. Name the preset of each agent, or "
    "write a command after `--`: acp replaces {prompt} or {prompt_file} in it, or writes the prompt to its standard "
    "input.",
    aliases=("create",),
    examples=('acp cycle start "Export the report as CSV" --agent claude --agent cd=codex',),
    exits=CONDUCTED,
    place=NAMED_PROJECT,
    run="acp_core.protocols.cycle.acts.conducting:start_here",
    words="COMMAND",
)  # fmt: skip

RUNNING = ActionSpec(
    RUN_ACT,
    "Start the orchestrator",
    "Run a cycle, or resume it, with the same programs or others.",
    "acp_core.protocols.cycle.acts.conducting:conducting",
    (PROGRAM, COMMAND, CYCLE, *PROGRAMS, *CONDUCT),
    Intent.START,
    command="cycle run",
    help="Omitted options keep their earlier values. Finished runs are not repeated; running programs are "
    "taken over.",
    aliases=("conduct",),
    examples=("acp cycle run", "acp cycle run --foreground"),
    exits=CONDUCTED,
    place=PROJECT,
    run="acp_core.protocols.cycle.acts.conducting:conduct_here",
    words="COMMAND",
)

REBUILDING = ActionSpec(
    REBUILD_ACT,
    "Rebuild the state",
    "Restore the state that acp wrote last, or rebuild it from the agents' documents.",
    "acp_core.protocols.cycle.acts.conducting:rebuilding",
    (CYCLE._replace(help="The id of the cycle [default: the lost or damaged one]."),),
    Intent.REPAIR,
    command="cycle rebuild",
    help="A rebuilt cycle is paused until you resume it. The old file is kept beside it.",
    examples=("acp cycle rebuild --dry-run",),
    place=PROJECT,
)

SELECTION = ActionSpec(
    SELECT_ACT,
    "Show another cycle",
    "Choose the cycle of the project to show and act on.",
    "acp_core.protocols.cycle.acts.conducting:selection",
    (
        Field("cycle", "Cycle", "The cycle's id, or the end of it.", Kind.CHOICE,
              required=True, position=True, metavar="ID"),
    ),
    command="cycle select",
    help="The project's files are not changed.",
    aliases=("show",),
    examples=("acp cycle select csvexprt",),
    place=NAMED_PROJECT,
)  # fmt: skip

STATUS = QuerySpec(
    "status",
    "Show agents, decisions, blockers and tests.",
    f"{_QUERIES}:status",
    (PROJECT, CYCLE),
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

LOST = 3

STEERED = (
    (0, "done, or queued for an orchestrator"),
    (2, "refused, nothing written; the error says why"),
    (3, "written, but overwritten by another program"),
    (130, "interrupted"),
)


def _act(
    name: str,
    label: str,
    sentence: str,
    fields: tuple[Field, ...],
    intent: Intent,
    example: str,
    help: str = "",
    risky: bool = False,
) -> ActionSpec:
    """An act that changes the state; its binding and its command have its name."""
    return ActionSpec(
        name,
        label,
        sentence,
        f"acp_core.protocols.cycle.acts.steering:{name}",
        (*fields, CYCLE),
        intent,
        risky=risky,
        command=f"cycle {name}",
        help=help,
        examples=(example,),
        exits=STEERED,
        place=NAMED_PROJECT if any(each.position for each in fields) else PROJECT,
        unknown=LOST,
    )


DECISION = _act(
    DECIDE_ACT,
    "Decide",
    "Make a pending decision.",
    (
        Field("decision", "Decision", "The decision's id.", Kind.CHOICE, required=True,
              position=True, metavar="ID"),
        Field("choice", "Option's number, or words", "The number of an option, or words.",
              required=True, position=True),
        Field("rationale", "Why", "Recorded with the decision."),
        Field("impact", "What it affects", "What the decision affects."),
    ),
    Intent.DECIDE,
    'acp cycle decide DEC-001 2 --rationale "It is the smaller change"',
)  # fmt: skip

RESOLUTION = _act(
    RESOLVE_ACT,
    "Resolve a blocker",
    "Resolve a blocker; acp informs the agent that reported it.",
    (
        Field("blocker", "Blocker", "The blocker's id.", Kind.CHOICE, required=True, position=True,
              metavar="ID"),
        Field("resolution", "Resolution", "How you resolved it.", Kind.LINES,
              required=True, position=True),
        Field("workaround", "Only worked around", "Mark the blocker as worked around, not resolved.", Kind.FLAG),
    ),
    Intent.ANSWER,
    'acp cycle resolve BLK-001 "The account is there now"',
)  # fmt: skip

MESSAGE = _act(
    FEEDBACK_ACT,
    "Feedback to an agent",
    "Send an agent feedback: a live session gets it at once if the agent takes messages, else its next run does.",
    (
        AGENT,
        Field("text", "Feedback", "The feedback.", Kind.LINES, required=True,
              position=True),
        Field("kind", "Kind", "The kind of feedback.", Kind.CHOICE, KINDS, default=KINDS[0],
              flag="--type"),
    ),
    Intent.MESSAGE,
    'acp cycle feedback cd "Quote fields with commas"',
)  # fmt: skip

EXTENSION = _act(
    EXTEND_ACT,
    "Extend",
    "Start another iteration with a new task.",
    (
        Field("text", "New task", "The task to add.", Kind.LINES, required=True,
              position=True),
        Field("limit", "Maximum iterations", "Maximum number of iterations in all.",
              Kind.NUMBER, least=1),
    ),
    Intent.CONTINUE,
    'acp cycle extend "Also as JSON"',
)  # fmt: skip

PAUSING = _act(
    PAUSE_ACT,
    "Pause",
    "Pause the cycle after the current run; no other agent starts.",
    (),
    Intent.STOP_EVERYTHING,
    "acp cycle pause",
)

RESUMPTION = _act(
    RESUME_ACT,
    "Resume",
    "Resume the cycle; a failed agent starts again.",
    (),
    Intent.START,
    "acp cycle resume",
)

STOPPING = _act(
    STOP_ACT,
    "Stop",
    "Stop the cycle as failed. The current run is lost; finished work stays and can be resumed.",
    (REASON,),
    Intent.STOP,
    'acp cycle stop --reason "No longer wanted"',
    risky=True,
)

ACCEPTANCE = _act(
    ACCEPT_ACT,
    "Accept as it is",
    "Accept the cycle as it is, even with failing tests, and complete it; the test results are kept.",
    (RECORDED_REASON,),
    Intent.ACCEPT,
    'acp cycle accept --reason "The rest is for later"',
)

REPEAT = _act(
    RERUN_ACT,
    "Rerun an agent",
    "Rerun an agent, and the agents that depend on it.",
    (
        AGENT,
        REASON._replace(title="Instructions", help="Instructions for the new run.",
                              kind=Kind.LINES),
    ),
    Intent.RETRY,
    "acp cycle rerun vas",
)  # fmt: skip

LIMITING = _act(
    LIMIT_ACT,
    "Change the limit",
    "Change the maximum number of iterations.",
    (
        Field("iterations", "Iterations", "Maximum number of iterations in all.", Kind.NUMBER, required=True,
              position=True),
    ),
    Intent.OTHER,
    "acp cycle limit 8",
)  # fmt: skip

SCHEMA = "acp.cycle/1"

OFFERED = (
    DECISION,
    RESOLUTION,
    RUNNING,
    RESUMPTION,
    MESSAGE,
    EXTENSION,
    PAUSING,
    ACCEPTANCE,
    REPEAT,
    LIMITING,
    STOPPING,
    REBUILDING,
    SELECTION,
)
"""What a person can do to a cycle, most useful first."""

COMMANDS = Commands(
    "cycle",
    "Run development cycles of RA, EP, CD and VAS: start, steer, decide, and repair.",
    (
        STARTING,
        RUNNING,
        STATUS,
        MESSAGE,
        DECISION,
        RESOLUTION,
        EXTENSION,
        PAUSING,
        RESUMPTION,
        STOPPING,
        ACCEPTANCE,
        REPEAT,
        LIMITING,
        REBUILDING,
        SELECTION,
        PHASE_RESULT,
    ),
    SCHEMA,
)
