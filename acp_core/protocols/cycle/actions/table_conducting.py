"""The acts that begin a cycle, conduct it and choose among several, and what is read, described once.

Source: development cycle specification, "Orchestrator".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.cycle.actions import table_fields as given
from acp_core.protocols.cycle.actions.names import REBUILD, RUN, SELECT, START
from acp_core.protocols.cycle.schema import AGENTS

_ROOM = "acp_core.protocols.cycle.actions"
_QUERIES = "acp_core.protocols.cycle.queries"
CONDUCTED = (
    (0, "begun; with --foreground: completed"),
    (1, "with --foreground: the orchestrator gave up"),
    (2, "refused, or invalid input"),
    (4, "with --foreground and --leave: a person is waited for"),
    (5, "with --foreground: the cycle failed, or was stopped"),
    (130, "interrupted"),
)
STARTING = ActionSpec(
    START,
    "New development cycle",
    "Begin a development cycle: RA, EP, CD and VAS work until the tests pass.",
    f"{_ROOM}.init:starting",
    (
        Field("objective", "What is to be built", "Say what is to be built.", Kind.LINES,
              required=True, position=True),
        given.PROGRAM,
        given.COMMAND,
        Field("iterations", "Iterations at most", "Allow so many iterations (the package's, or 5).",
              Kind.NUMBER, flag="--max-iterations"),
        Field("begin", "Begin at once", "Start the orchestrator, or only write the cycle's files.",
              Kind.FLAG, default=True, flag="--run"),
        *given.OTHER_PROGRAMS,
        Field("title", help="Name it (the beginning of what is to be built).", form=False),
        Field("prep", help="Use the project's prep-package.json.", kind=Kind.FLAG, default=True,
              form=False),
        given.CYCLE._replace(help="Give the new cycle this id."),
        *given.PROGRAMS,
        *given.CONDUCT,
    ),
    Intent.CREATE,
    command="cycle start",
    help="Its orchestrator outlives this terminal. Give the agents' programs by their presets, or word by "
    "word after `--`; the prompt goes to the standard input, or where the words say {prompt} or "
    "{prompt_file}.",
    aliases=("create",),
    examples=('acp cycle start "Export the report as CSV" --agent claude --agent cd=codex',),
    exits=CONDUCTED,
    place=given.NAMED_PROJECT,
    run=f"{_ROOM}.init:start_here",
    words="COMMAND",
)  # fmt: skip
RUNNING = ActionSpec(
    RUN,
    "Start the orchestrator",
    "Conduct a cycle: go on where it stands, with the programs of before or others.",
    f"{_ROOM}.conducting:conducting",
    (given.PROGRAM, given.COMMAND, given.CYCLE, *given.PROGRAMS, *given.CONDUCT),
    Intent.START,
    command="cycle run",
    help="What is not given is as before. A run that ended is not repeated; a program that still runs is "
    "taken over.",
    aliases=("conduct",),
    examples=("acp cycle run", "acp cycle run --foreground"),
    exits=CONDUCTED,
    place=given.PROJECT,
    run=f"{_ROOM}.conducting:conduct_here",
    words="COMMAND",
)
REBUILDING = ActionSpec(
    REBUILD,
    "Rebuild the state",
    "Put the state back as acp wrote it last, or make it anew from the agents' documents.",
    f"{_ROOM}.rebuilding:rebuilding",
    (given.CYCLE._replace(help="Choose the cycle by its id (the one that is lost or damaged)."),),
    Intent.REPAIR,
    command="cycle rebuild",
    help="A state that is made anew waits for you, paused. What stood in the file is kept beside it.",
    examples=("acp cycle rebuild --dry-run",),
    place=given.PROJECT,
)
SELECTION = ActionSpec(
    SELECT,
    "Show another cycle",
    "Choose which cycle of the project is shown from now on; all acts are done to it.",
    f"{_ROOM}.select:selection",
    (
        Field("cycle", "Cycle", "Name the cycle by its id, or by how that ends.", Kind.CHOICE,
              required=True, position=True, metavar="ID"),
    ),
    command="cycle select",
    help="Nothing is written into the project.",
    aliases=("show",),
    examples=("acp cycle select csvexprt",),
    place=given.NAMED_PROJECT,
)  # fmt: skip
STATUS = QuerySpec(
    "status",
    "Where it stands: agents, decisions, blockers, tests.",
    f"{_QUERIES}:status",
    (given.PROJECT, given.CYCLE),
    command="cycle status",
    examples=("acp cycle status --json",),
)
PHASE_RESULT = QuerySpec(
    "phase-result",
    "Read PHASE_RESULT out of what an agent printed.",
    f"{_QUERIES}:phase_result",
    (
        Field("file", help="What it printed (-: standard input).", kind=Kind.FILE, required=True,
              position=True),
        Field("agent", help="Name whose it must be.", kind=Kind.CHOICE, choices=AGENTS),
    ),
    command="cycle phase-result",
    examples=("acp cycle phase-result printed.txt --agent cd",),
    exits=(
        (0, "there is one, and it is in order"),
        (1, "there is none"),
        (2, "invalid input: one line says why"),
        (4, "there is one, with problems"),
    ),
)  # fmt: skip
