"""Every act and query of a run of sub-agents, described once: what a form offers, and the commands made of them.

The words of decisions, conflicts and forms are those of the agent workspaces specification,
"Integration Step Protocol" and "Conflict Resolution Protocol".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, Moved, QuerySpec
from acp_core.protocols.kit import command_line
from acp_core.protocols.kit.command import Commands
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.schema import (
    ADD_ACT,
    COMPARE_ACT,
    CREATE_ACT,
    DISMISS_ACT,
    DISPATCH_ACT,
    DISPUTE_ACT,
    DRAFT_ACT,
    FINISH_ACT,
    ORDER_ACT,
    REPAIR_ACT,
    RERUN_ACT,
    RESOLVE_ACT,
    STOP_ACT,
    SYNTHESISE_ACT,
    TRIAGE_ACT,
)

NO_CHANNEL = "A running sub-agent takes no messages: feedback goes into its next prompt."
WHO = Field("agent", "Agent", "Name the agent.", Kind.CHOICE, required=True, position=True)

START = Field(
    "start", help="Also start every agent that can start.", kind=Kind.FLAG, form=False, unasked=True
)

ALIKE = Field("alike", "Apply to all conflicts on this topic", kind=Kind.FLAG,
               help="Apply to all other conflicts on its topic.")  # fmt: skip

CONFLICT = Field("conflict", "Conflict", "Name the conflict by its id.", Kind.CHOICE,
                  required=True, position=True, metavar="ID")  # fmt: skip

TIMEOUT = command_line.TIMEOUT._replace(
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
    command_line.MODEL._replace(help="Choose the model [default: the program's own]."),
)  # fmt: skip
"""The program that works: a form asks for a preset or a command; see `binding.chosen_program`."""
_ROOM = "acp_core.protocols.workspaces.acts"
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
    f"{_ROOM}.dispatching:creation",
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
        TIMEOUT,
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
    f"{_ROOM}.dispatching:addition",
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
        TIMEOUT._replace(form=False),
        START,
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
        PROGRAM_FIELDS[0],
        command_line.JOBS._replace(
            name="limit", flag="--jobs", title="Agents at the same time",
            help="Maximum number of agents at the same time; the others start as agents finish.", least=1, most=64,
        ),
        *PROGRAM_FIELDS[1:],
        command_line.AGENT._replace(name="presets", flag="--agent", aliases=("--program-of",)),
        Field("workdir", help="Working folder of the programs [default: the run's folder].", kind=Kind.FOLDER, form=False,
              owner=True),
        TIMEOUT._replace(
            form=False, help="Time limit per agent, if its plan names none."
        ),
        Field("again", help="Rerun one agent.", metavar="AGENT", form=False),
        Field("feedback", help="With --again: feedback for its next prompt.", form=False),
        Field("go_on", help="With --again: continue from its earlier output.", kind=Kind.FLAG, form=False),
        command_line.ONCE,
        command_line.PERMISSIONS,
        command_line.BUDGET._replace(form=False),
        command_line.DETACH,
    ),
    Intent.START,
    command="workspaces dispatch",
    help="Render the prompts, start the agents' programs and wait for them. Run it again to start what is "
    "left. The programs keep running if this command is interrupted. Name a preset, or give a command "
    "after `--`; the prompt goes to its standard input, or replaces {prompt} or "
    f"{{prompt_file}} in the command. acp remembers the choice on this machine. {NO_CHANNEL}",
    examples=(
        "acp workspaces dispatch queues --agent claude",
        'acp workspaces dispatch queues --again ben --feedback "Name the sources"',
    ),
    exits=WORKED,
    run=f"{_ROOM}.dispatching:dispatch_agents",
    words="COMMAND",
)  # fmt: skip

RERUN = ActionSpec(
    RERUN_ACT,
    "Rerun",
    "Rerun an agent with a new prompt; its old output is kept.",
    f"{_ROOM}.dispatching:rerun",
    (
        WHO._replace(help=f"Name the agent. {NO_CHANNEL}"),
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
    (WHO,),
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

ALONE, PROGRAM = "by hand", "by a program"

LEFT = (
    (0, "done, or no decision is pending"),
    (1, "listed: decisions are pending"),
    (2, "refused, nothing written; the error says why"),
)

STEPS = (
    (0, "all seven steps are done"),
    (1, "earlier steps are not done"),
    (2, "refused, nothing written; the error says why"),
)

REPAIRING = ActionSpec(
    REPAIR_ACT,
    "Repair",
    "Finish interrupted writes and rebuild unreadable coordination files.",
    f"{_ROOM}.dispatching:repairing",
    (),
    Intent.REPAIR,
    command="workspaces repair",
    help="Unreadable files move to .coord/history/damaged; the manifest is rebuilt from what "
    "can be read of it, the workspaces and the prompts. Unreadable decisions and conflicts "
    "must be made again.",
    examples=("acp workspaces repair queues --dry-run",),
)

TRIAGING = ActionSpec(
    TRIAGE_ACT,
    "Decide",
    "Accept, skip or rerun a result that is not a success.",
    f"{_ROOM}.integrating:triaging",
    (
        WHO,
        Field(
            "decision", "Decision",
            "For a partial: accept, rerun or skip. For a failure or no result: rerun, orchestrator-does or gap. "
            "An agent that is still working is stopped.",
            Kind.CHOICE,
            tuple(sorted({word for each in schema.DECISIONS.values() for word in each})),
            {
                "accept": "accept: use the result as it is",
                "rerun": "rerun: run again with the same task",
                "skip": "skip: integrate without it",
                "orchestrator-does": "orchestrator-does: do the task yourself",
                "gap": "gap: record what is missing",
            },
            required=True,
            position=True,
        ),
        command_line.REASON._replace(help="Recorded with the decision."),
        command_line.BY,
        START,
    ),
    Intent.DECIDE,
    command="workspaces triage",
    help="Without an agent, list the pending decisions. `dispatch` starts the agents to rerun.",
    examples=('acp workspaces triage queues ben accept --reason "enough for the summary"',),
    exits=LEFT,
    alone=f"{_QUERIES}:undecided",
)  # fmt: skip

CONFLICTS = QuerySpec(
    "conflicts",
    "List recorded conflicts and hints, and those that acp detects now.",
    f"{_QUERIES}:list_conflicts",
    command="workspaces conflicts",
    help=f"`{COMPARE_ACT}` records what acp detects; resolve each by the rule of its category "
    f"(`{RESOLVE_ACT}`) or dismiss it (`{DISMISS_ACT}`); `{DISPUTE_ACT}` adds one by hand. The older "
    "options here (--find, --add, --resolve, --dismiss) still work.",
    examples=("acp workspaces conflicts queues",),
    exits=LEFT,
    moved=(
        Moved("--find", COMPARE_ACT),
        Moved("--add", DISPUTE_ACT, "--topic"),
        Moved("--resolve", RESOLVE_ACT, "--conflict"),
        Moved("--dismiss", DISMISS_ACT, "--conflict"),
    ),
)

COMPARISON = ActionSpec(
    COMPARE_ACT,
    "Compare",
    "Compare the outputs and record differences as hints.",
    f"{_ROOM}.integrating:comparison",
    (command_line.BY,),
    command="workspaces compare",
    help="A hint blocks nothing: resolve it, dismiss it, or leave it; unresolved hints are listed in the "
    "final output. `dispute` turns it into a conflict, which must be resolved before the integration.",
    aliases=("find_conflicts",),
    examples=("acp workspaces compare queues",),
)

DISPUTE = ActionSpec(
    DISPUTE_ACT,
    "Add conflict",
    "Record that two outputs contradict each other.",
    f"{_ROOM}.integrating:dispute",
    (
        Field("first", "Between", "One agent.", Kind.CHOICE, metavar="AGENT"),
        Field("second", "And", "The other agent.", Kind.CHOICE, metavar="AGENT"),
        Field("topic", "Topic", "The topic, in a few words.", required=True, position=True),
        Field(
            "category",
            "Category",
            "The kind of conflict.",
            Kind.CHOICE,
            schema.CATEGORIES,
            required=True,
        ),
        Field("between", help="Both agents, in one option.", metavar="A,B", form=False),
        command_line.BY,
    ),
    command="workspaces dispute",
    aliases=("add_conflict",),
    examples=("acp workspaces dispute queues price --between ann,ben --category factual",),
)

RESOLUTION = ActionSpec(
    RESOLVE_ACT,
    "Resolve",
    "Choose the version that holds; the decision is recorded in the final output.",
    f"{_ROOM}.integrating:resolution",
    (
        CONFLICT,
        Field(
            "category", "Category",
            "factual: keep one version, never an average; coverage: merge, keep the more detailed one"
            "; format: convert to the final form.",
            Kind.CHOICE, schema.CATEGORIES,
        ),
        Field("keep", "Whose version", "The agent whose version holds or is more detailed.", Kind.CHOICE,
              metavar="AGENT"),
        Field(
            "because", "Why it holds",
            "For facts only: why this version is better.",
            Kind.CHOICE, schema.GROUNDS,
        ),
        ALIKE._replace(help="Apply to all conflicts on its topic that involve the kept agent."),
        command_line.BY,
    ),
    Intent.DECIDE,
    command="workspaces resolve",
    aliases=("resolve_conflict",),
    examples=("acp workspaces resolve queues c1 --keep ann --because sourced",),
)  # fmt: skip

DISMISSAL = ActionSpec(
    DISMISS_ACT,
    "Dismiss",
    "Dismiss a conflict that is not one.",
    f"{_ROOM}.integrating:dismissal",
    (
        CONFLICT,
        Field("reason", "Reason", "Why this is not a conflict."),
        ALIKE,
        command_line.BY,
    ),
    Intent.DECIDE,
    command="workspaces dismiss",
    aliases=("dismiss_conflict",),
    examples=('acp workspaces dismiss queues c2 --reason "They mean the same"',),
)

INTEGRATE = QuerySpec(
    "integrate",
    "Show the seven integration steps and which are done.",
    f"{_QUERIES}:steps",
    command="workspaces integrate",
    help=f"The draft is written by a program (`{SYNTHESISE_ACT}`) or by you (`{DRAFT_ACT}`, `edit`); `{FINISH_ACT}` "
    "publishes it with its metadata and writes the integration status. The older options "
    "here (--order, --draft, --edit, --synthesise, --finish) still work.",
    examples=("acp workspaces integrate queues",),
    exits=STEPS,
    moved=(
        Moved("--order", ORDER_ACT, "--order"),
        Moved("--synthesise", SYNTHESISE_ACT),
        Moved("--program", SYNTHESISE_ACT, "--program"),
        Moved("--", SYNTHESISE_ACT),
        Moved("--edit", "edit"),
        Moved("--draft", DRAFT_ACT),
        Moved("--finish", FINISH_ACT),
    ),
)

ORDERING = ActionSpec(
    ORDER_ACT,
    "Order",
    "Set the order of the outputs in the draft.",
    f"{_ROOM}.integrating:ordering",
    (Field("order", "Order", "Agents, the most critical first.", Kind.LIST, metavar="A,B,..."),),
    command="workspaces order",
    aliases=("reading_order",),
    examples=("acp workspaces order queues --order ben,ann",),
)

DRAFTING = ActionSpec(
    DRAFT_ACT,
    "Draft",
    "Prepare a draft that cites its sources.",
    f"{_ROOM}.integrating:drafting",
    command="workspaces draft",
    examples=("acp workspaces draft queues",),
)

EDITING = ActionSpec(
    "edit",
    "Edit",
    "Open the draft in $EDITOR; prepare one if there is none.",
    command="workspaces edit",
    examples=("acp workspaces edit queues",),
    run=f"{_ROOM}.integrating:edit",
)

SYNTHESIS = ActionSpec(
    SYNTHESISE_ACT,
    "Synthesise",
    "Prepare a draft of the final output, by a program or by hand.",
    f"{_ROOM}.integrating:synthesising",
    (
        Field("how", "How", "By hand: a draft with all sources, to edit from its "
              "document.", Kind.CHOICE, (ALONE, PROGRAM), default=ALONE, listed=False, unasked=ALONE),
        PROGRAM_FIELDS[0]._replace(listed=True, flag="--agent", metavar="PRESET",
                             help="Choose the program that writes the draft."),
        *PROGRAM_FIELDS[1:],
        command_line.DETACH,
    ),
    Intent.START,
    command="workspaces synthesise",
    examples=("acp workspaces synthesise queues --agent claude",),
    exits=((0, "written; with --detach: started"), (1, "nothing was written"), (2, "refused")),
    run=f"{_ROOM}.integrating:synthesise",
    words="COMMAND",
)  # fmt: skip

FINISHING = ActionSpec(
    FINISH_ACT,
    "Finish",
    "Publish the draft as the final output, and write the integration status.",
    f"{_ROOM}.integrating:finishing",
    (
        Field(
            "gaps",
            "Gaps",
            "Record a remaining gap [default: the gaps noted so far].",
            Kind.LIST,
            flag="--gap",
        ),
        command_line.BY._replace(help="Who approves [default: you]."),
    ),
    Intent.ACCEPT,
    command="workspaces finish",
    examples=("acp workspaces finish queues",),
)

SCHEMA = "acp.workspaces/1"

OFFERED = (
    TRIAGING,
    DISPATCHING,
    RERUN,
    ADDITION,
    COMPARISON,
    RESOLUTION,
    DISMISSAL,
    SYNTHESIS,
    FINISHING,
    DISPUTE,
    ORDERING,
    STOPPING,
    REPAIRING,
)
"""What a person can do in a run, most useful first."""

COMMANDS = Commands(
    "workspaces",
    "Run an orchestrator's sub-agents: prepare workspaces, dispatch agents, decide on results, "
    "and integrate them.",
    (
        CREATION,
        ADDITION,
        DISPATCHING,
        RERUN,
        STOPPING,
        STATUS,
        CHECK_PROMPT,
        PARSE_RETURN,
        TRIAGING,
        CONFLICTS,
        COMPARISON,
        DISPUTE,
        RESOLUTION,
        DISMISSAL,
        INTEGRATE,
        ORDERING,
        DRAFTING,
        EDITING,
        SYNTHESIS,
        FINISHING,
        REPAIRING,
    ),
    SCHEMA,
)
