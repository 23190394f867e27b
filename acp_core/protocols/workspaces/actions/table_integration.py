"""The acts that decide on what agents return, and integrate it, described once.

Source: agent workspaces specification, "Integration Step Protocol" and "Conflict Resolution Protocol".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, Moved, QuerySpec
from acp_core.protocols.kit import fast_args
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.actions import table_fields as given
from acp_core.protocols.workspaces.schema import (
    COMPARE_ACT,
    DISMISS_ACT,
    DISPUTE_ACT,
    DRAFT_ACT,
    FINISH_ACT,
    ORDER_ACT,
    REPAIR_ACT,
    RESOLVE_ACT,
    SYNTHESISE_ACT,
    TRIAGE_ACT,
)

ALONE, PROGRAM = "by hand", "by a program"
_ROOM = "acp_core.protocols.workspaces.actions"
_QUERIES = "acp_core.protocols.workspaces.queries"
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
    f"{_ROOM}.repairing:repairing",
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
    f"{_ROOM}.judging:triaging",
    (
        given.WHO,
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
        fast_args.REASON._replace(help="Recorded with the decision."),
        fast_args.BY,
        given.START,
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
    f"{_ROOM}.judging:comparison",
    (fast_args.BY,),
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
    f"{_ROOM}.judging:dispute",
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
        fast_args.BY,
    ),
    command="workspaces dispute",
    aliases=("add_conflict",),
    examples=("acp workspaces dispute queues price --between ann,ben --category factual",),
)
RESOLUTION = ActionSpec(
    RESOLVE_ACT,
    "Resolve",
    "Choose the version that holds; the decision is recorded in the final output.",
    f"{_ROOM}.judging:resolution",
    (
        given.CONFLICT,
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
        given.ALIKE._replace(help="Apply to all conflicts on its topic that involve the kept agent."),
        fast_args.BY,
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
    f"{_ROOM}.judging:dismissal",
    (
        given.CONFLICT,
        Field("reason", "Reason", "Why this is not a conflict."),
        given.ALIKE,
        fast_args.BY,
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
    run=f"{_ROOM}.synthesis_command:edit",
)
SYNTHESIS = ActionSpec(
    SYNTHESISE_ACT,
    "Synthesise",
    "Prepare a draft of the final output, by a program or by hand.",
    f"{_ROOM}.integrating:synthesising",
    (
        Field("how", "How", "By hand: a draft with all sources, to edit from its "
              "document.", Kind.CHOICE, (ALONE, PROGRAM), default=ALONE, listed=False, unasked=ALONE),
        given.PROGRAM_FIELDS[0]._replace(listed=True, flag="--agent", metavar="PRESET",
                             help="Choose the program that writes the draft."),
        *given.PROGRAM_FIELDS[1:],
        fast_args.DETACH,
    ),
    Intent.START,
    command="workspaces synthesise",
    examples=("acp workspaces synthesise queues --agent claude",),
    exits=((0, "written; with --detach: started"), (1, "nothing was written"), (2, "refused")),
    run=f"{_ROOM}.synthesis_command:synthesise",
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
        fast_args.BY._replace(help="Who approves [default: you]."),
    ),
    Intent.ACCEPT,
    command="workspaces finish",
    examples=("acp workspaces finish queues",),
)
