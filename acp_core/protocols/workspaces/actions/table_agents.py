"""The acts that prepare a run and have its agents work, and what is read of them, described once.

Source: agent workspaces specification, "Directory Structure for Agent Workspaces" and "File-Based
Handoffs".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.kit import fast_args
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.actions import table_fields as given
from acp_core.protocols.workspaces.schema import (
    ADD_ACT,
    CREATE_ACT,
    DISPATCH_ACT,
    RERUN_ACT,
    STOP_ACT,
)

_ROOM = "acp_core.protocols.workspaces.actions"
_QUERIES = "acp_core.protocols.workspaces.queries"
WORKED = (
    (0, "all succeeded; with --detach: started"),
    (1, "not all succeeded, or a decision is pending"),
    (2, "refused"),
    (130, "interrupted: the programs keep running"),
)
CREATION = ActionSpec(
    CREATE_ACT,
    "New run of sub-agents",
    "Prepare a run: each agent gets a workspace and a task; no program starts yet.",
    f"{_ROOM}.init:creation",
    (
        Field("objective", "Task", "The team's task, in one line.", aliases=("--task",)),
        Field(
            "agents", "Agents", "An agent and its task, in one paragraph.", Kind.LIST,
            flag="--agent", short="-a", metavar="NAME=TASK",
        ),
        Field(
            "after", "Order", "Dispatch NAME after OTHER, to work on its output.", Kind.LIST,
            metavar="NAME=OTHER",
        ),
        Field("scope", "Scope", "Describe what the task covers.", Kind.LINES),
        Field("requirements", "Requirements", "A requirement that the outputs must meet.", Kind.LIST, flag="--requirement"),
        Field("constraints", "Constraints", "A constraint on all agents.", Kind.LIST, flag="--constraint"),
        Field("inputs", "Inputs", "Files that every agent must read.", Kind.LIST, flag="--input",
              metavar="FILE"),
        Field("form", "Form of the final output", "The form of the final output (md).", Kind.CHOICE,
              schema.FINALS, flag="--format"),
        Field("naming", "Names", "The naming scheme of outputs (plain).", Kind.CHOICE, schema.NAMINGS, form=False),
        given.TIMEOUT,
        Field("plan", "Plan", "Read agents and tasks from a JSON file.", Kind.FILE, form=False, owner=True),
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
    ADD_ACT,
    "Add agent",
    "Add an agent with a task of its own, and dispatch it.",
    f"{_ROOM}.init:addition",
    (
        Field("agent", "Fills the gap of",
              "The new agent's prompt names the outputs of this agent.", Kind.CHOICE,
              flag="--of", metavar="AGENT"),
        Field("name", "Name of the new agent", "Name the new agent [default: derived from the agent whose gap it fills].",
              flag="--agent", metavar="NAME"),
        Field("task", "Task", "The new agent's task [default: made from that agent's errors and notes].", Kind.LINES),
        Field("role", "Role", "The agent's role, in the first line of its prompt.", form=False),
        Field("after", "After", "Dispatch the new agent after AGENT, to work on its output.",
              Kind.LIST, metavar="AGENT", form=False),
        Field("inputs", "Inputs", "A file that the new agent must read.", Kind.LIST, flag="--input",
              metavar="FILE", form=False),
        Field("format", "Format", "The file extension of its output.", default="md", form=False),
        Field("critical", "Critical", "Read its output first.", Kind.FLAG, form=False),
        Field("may_launch", "May launch", "Allow it to launch agents of its own.", Kind.FLAG, form=False, owner=True),
        given.TIMEOUT._replace(form=False),
        given.START,
    ),
    Intent.CREATE,
    command="workspaces add",
    help="With --of the new agent does what AGENT left open: its prompt names AGENT's outputs, and its "
    "task is made from AGENT's errors and notes. `dispatch` starts it.",
    aliases=("add_agent",),
    examples=("acp workspaces add queues --of ben",),
)  # fmt: skip
DISPATCHING = ActionSpec(
    DISPATCH_ACT,
    "Dispatch",
    "Start the agents that can begin; their programs keep running when you quit.",
    f"{_ROOM}.dispatching:dispatching",
    (
        given.PROGRAM_FIELDS[0],
        fast_args.JOBS._replace(
            name="limit", flag="--jobs", title="Agents at the same time",
            help="Maximum number of agents at the same time; the others start as agents finish.", least=1, most=64,
        ),
        *given.PROGRAM_FIELDS[1:],
        fast_args.AGENT._replace(name="presets", flag="--agent", aliases=("--program-of",)),
        Field("workdir", help="Working folder of the programs [default: the run's folder].", kind=Kind.FOLDER, form=False,
              owner=True),
        given.TIMEOUT._replace(
            form=False, help="Time limit per agent, if its plan names none."
        ),
        Field("again", help="Rerun one agent.", metavar="AGENT", form=False),
        Field("feedback", help="With --again: feedback for its next prompt.", form=False),
        Field("go_on", help="With --again: continue from its earlier output.", kind=Kind.FLAG, form=False),
        fast_args.ONCE,
        fast_args.PERMISSIONS,
        fast_args.BUDGET._replace(form=False),
        fast_args.DETACH,
    ),
    Intent.START,
    command="workspaces dispatch",
    help="Render the prompts, start the agents' programs and wait for them. Run it again to start what is "
    "left. The programs keep running if this command is interrupted. Name a preset, or give a command "
    "after `--`; the prompt goes to its standard input, or replaces {prompt} or "
    f"{{prompt_file}} in the command. acp remembers the choice on this machine. {given.NO_CHANNEL}",
    examples=(
        "acp workspaces dispatch queues --agent claude",
        'acp workspaces dispatch queues --again ben --feedback "Name the sources"',
    ),
    exits=WORKED,
    run=f"{_ROOM}.dispatch_command:run",
    words="COMMAND",
)  # fmt: skip
RERUN = ActionSpec(
    RERUN_ACT,
    "Rerun",
    "Rerun an agent with a new prompt; its old output is kept.",
    f"{_ROOM}.dispatching:rerun",
    (
        given.WHO._replace(help=f"Name the agent. {given.NO_CHANNEL}"),
        Field("feedback", "Feedback", "Added to its next prompt.", Kind.LINES),
        Field("go_on", "Continue from its output", "Continue from its earlier output.", Kind.FLAG),
    ),
    Intent.RETRY,
    command="workspaces rerun",
    aliases=("dispatch_again",),
    examples=('acp workspaces rerun queues ben --feedback "Name the sources"',),
)
STOPPING = ActionSpec(
    STOP_ACT,
    "Stop",
    "Stop an agent's program. A running sub-agent takes no messages.",
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
    "Show the state of the run and of each agent.",
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
            "file",
            help="A prompt file.",
            kind=Kind.LIST,
            required=True,
            position=True,
            metavar="FILE",
        ),
    ),
    command="workspaces check-prompt",
    examples=("acp workspaces check-prompt prompt.md",),
)
PARSE_RETURN = QuerySpec(
    "parse-return",
    "Extract the returned object from an agent's answer.",
    f"{_QUERIES}:parse_return",
    (Field("file", help="File with the answer (-: standard input).", kind=Kind.FILE, default="-",
           position=True),),
    command="workspaces parse-return",
    examples=("acp workspaces parse-return returned.md",),
)  # fmt: skip
