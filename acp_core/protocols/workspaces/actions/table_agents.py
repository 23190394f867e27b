"""The acts that prepare a run and have its agents work, and what is read of them, described once.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces" and "File-Based
Handoffs".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.kit import options
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.actions import table_fields as given
from acp_core.protocols.workspaces.actions.names import AGAIN, CREATE, DISPATCH, MORE, STOP

_ROOM = "acp_core.protocols.workspaces.actions"
_QUERIES = "acp_core.protocols.workspaces.queries"
WORKED = (
    (0, "all succeeded; with --detach: started"),
    (1, "not all succeeded, or something is left to decide"),
    (2, "refused"),
    (130, "interrupted: the programs go on"),
)
CREATION = ActionSpec(
    CREATE,
    "New run of sub-agents",
    "Prepare a run: each agent gets a workspace and a task; nothing is started yet.",
    f"{_ROOM}.init:creation",
    (
        Field("objective", "Task", "What the team completes, in one line.", aliases=("--task",)),
        Field(
            "agents", "Agents", "NAME=TASK, the task in one paragraph.", Kind.LIST,
            flag="--agent", short="-a", metavar="NAME=TASK",
        ),
        Field(
            "after", "Order", "NAME=OTHER where NAME works on what OTHER wrote.", Kind.LIST,
            metavar="NAME=OTHER",
        ),
        Field("scope", "Scope", "What belongs to it.", Kind.LINES),
        Field("requirements", "Requirements", "What must be met.", Kind.LIST, flag="--requirement"),
        Field("constraints", "Constraints", "What must not be done.", Kind.LIST, flag="--constraint"),
        Field("inputs", "Inputs", "Files that every agent must read.", Kind.LIST, flag="--input",
              metavar="FILE"),
        Field("form", "Form of the final output", "The form of the final output (md).", Kind.CHOICE,
              schema.FINALS, flag="--format"),
        Field("naming", "Names", "How outputs are called (plain).", Kind.CHOICE, schema.NAMINGS, form=False),
        given.TIMEOUT,
        Field("plan", "Plan", "Read who does what from a JSON file.", Kind.FILE, form=False),
    ),
    Intent.CREATE,
    command="workspaces init",
    help="The agents come from --agent, or from a plan (--plan): a JSON object {task, scope, "
    "requirements, constraints, format, naming, agents: [{agent, task, role, task_id, responsible, "
    "not_responsible, inputs: [{path, required}], after, format, critical, may_launch, timeout_s}]}.",
    examples=(
        (
            'acp workspaces init queues --objective "queues compared" --after cat=ann \\\n'
            '    -a "ann=Compare what they cost." -a "cat=Write it up."'
        ),
    ),
)  # fmt: skip
ADDITION = ActionSpec(
    MORE,
    "One more agent",
    "Add an agent with a task of its own, and dispatch it.",
    f"{_ROOM}.init:addition",
    (
        Field("agent", "Whose part is missing",
              "The new agent is told where to read what that one wrote.", Kind.CHOICE,
              flag="--of", metavar="AGENT"),
        Field("name", "Name of the new agent", "Left empty: after the agent whose part is missing.",
              flag="--agent", metavar="NAME"),
        Field("task", "Its task", "Left empty: what that agent left open.", Kind.LINES),
        Field("role", "Role", "What it is, in the first line of its prompt.", form=False),
        Field("after", "After", "It works on what AGENT wrote, and is dispatched after it.",
              Kind.LIST, metavar="AGENT", form=False),
        Field("inputs", "Inputs", "A file that it must read.", Kind.LIST, flag="--input",
              metavar="FILE", form=False),
        Field("format", "Format", "The extension of its output.", default="md", form=False),
        Field("critical", "Critical", "Its output is read first.", Kind.FLAG, form=False),
        Field("may_launch", "May launch", "It may launch agents of its own.", Kind.FLAG, form=False),
        given.TIMEOUT._replace(form=False),
        given.START,
    ),
    Intent.CREATE,
    command="workspaces add",
    help="With --of it does what that one left open: it is told where that one's outputs are, and its "
    "task is made of that one's errors and notes. `dispatch` starts it.",
    aliases=("add_agent",),
    examples=("acp workspaces add queues --of ben",),
)  # fmt: skip
DISPATCHING = ActionSpec(
    DISPATCH,
    "Dispatch",
    "Start the agents that can begin; their programs outlive the dashboard.",
    f"{_ROOM}.dispatching:dispatching",
    (
        given.PROGRAM_FIELDS[0],
        options.JOBS._replace(
            name="limit", flag="--jobs", title="How many at the same time",
            help="The others begin when one is through.", least=1, most=64,
        ),
        *given.PROGRAM_FIELDS[1:],
        options.AGENT._replace(name="presets", flag="--agent", aliases=("--program-of",)),
        Field("workdir", help="Where the programs run (the run's folder).", kind=Kind.FOLDER, form=False),
        given.TIMEOUT._replace(
            form=False, help="Stop an agent after that, where its plan names no limit."
        ),
        Field("again", help="Run one agent once more.", metavar="AGENT", form=False),
        Field("feedback", help="With --again: say that in its next prompt.", form=False),
        Field("go_on", help="With --again: go on from what it wrote.", kind=Kind.FLAG, form=False),
        options.DETACH,
    ),
    Intent.START,
    command="workspaces dispatch",
    help="Render the prompts, start the agents' programs and wait for them; again: go on with what is "
    "left. The programs go on if this command is interrupted. Give the program by its preset, or word "
    "by word after `--`; the prompt goes to its standard input, or where the words say {prompt} or "
    f"{{prompt_file}}. What was chosen is remembered on this machine. {given.NO_CHANNEL}",
    examples=(
        "acp workspaces dispatch queues --agent claude",
        'acp workspaces dispatch queues --again ben --feedback "Name the sources"',
    ),
    exits=WORKED,
    run=f"{_ROOM}.dispatch_command:run",
    words="COMMAND",
)  # fmt: skip
RERUN = ActionSpec(
    AGAIN,
    "Once more",
    "Run an agent once more: a new prompt, a new output beside the old one.",
    f"{_ROOM}.dispatching:rerun",
    (
        given.WHO._replace(help=f"Name the agent. {given.NO_CHANNEL}"),
        Field("feedback", "Feedback", "Stands in its next prompt.", Kind.LINES),
        Field("go_on", "Go on from what it wrote", "Go on from what it wrote.", Kind.FLAG),
    ),
    Intent.RETRY,
    command="workspaces rerun",
    aliases=("dispatch_again",),
    examples=('acp workspaces rerun queues ben --feedback "Name the sources"',),
)
STOPPING = ActionSpec(
    STOP,
    "Stop",
    "End an agent's program. A running sub-agent cannot be spoken to.",
    f"{_ROOM}.dispatching:stopping",
    (given.WHO,),
    Intent.STOP,
    risky=True,
    command="workspaces stop",
    aliases=("stop_agent",),
    examples=("acp workspaces stop queues ben",),
)
STATUS = QuerySpec(
    "status",
    "Where each agent and the run stand.",
    f"{_QUERIES}:status",
    command="workspaces status",
    examples=("acp workspaces status queues --json",),
)
CHECK_PROMPT = QuerySpec(
    "check-prompt",
    "Check prompts against the template.",
    f"{_QUERIES}:check_prompt",
    (
        Field(
            "file", help="A prompt.", kind=Kind.LIST, required=True, position=True, metavar="FILE"
        ),
    ),
    command="workspaces check-prompt",
    examples=("acp workspaces check-prompt prompt.md",),
)
PARSE_RETURN = QuerySpec(
    "parse-return",
    "Find the returned object in what was said.",
    f"{_QUERIES}:parse_return",
    (Field("file", help="What was said (-: standard input).", kind=Kind.FILE, default="-",
           position=True),),
    command="workspaces parse-return",
    examples=("acp workspaces parse-return returned.md",),
)  # fmt: skip
