"""The acts that decide on what agents return, and integrate it, described once.

Source: agent workspaces specification, "Integration Step Protocol" and "Conflict Resolution Protocol".
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, Moved, QuerySpec
from acp_core.protocols.kit import options
from acp_core.protocols.workspaces import schema
from acp_core.protocols.workspaces.actions import table_fields as given
from acp_core.protocols.workspaces.actions.names import (
    ADD,
    DISMISS,
    DRAFT,
    FIND,
    FINISH,
    ORDER,
    REPAIR,
    RESOLVE,
    SYNTHESISE,
    TRIAGE,
)

ALONE, PROGRAM = "by hand", "by a program"
_ROOM = "acp_core.protocols.workspaces.actions"
_QUERIES = "acp_core.protocols.workspaces.queries"
LEFT = (
    (0, "done, or nothing is left to decide"),
    (1, "listed: something is left to decide"),
    (2, "refused, nothing written: one line says why"),
)
STEPS = (
    (0, "done: all seven steps are through"),
    (1, "something is left to do before"),
    (2, "refused, nothing written: one line says why"),
)
REPAIRING = ActionSpec(
    REPAIR,
    "Mend",
    "Finish what was interrupted, and make anew what orchestrators share and cannot be read.",
    f"{_ROOM}.repairing:repairing",
    (),
    Intent.REPAIR,
    command="workspaces repair",
    help="What cannot be read is moved into .coord/history/damaged; the manifest is made anew of what "
    "can be read of it, of the workspaces and of the prompts. Decisions and conflicts that cannot be read "
    "are asked for again.",
    examples=("acp workspaces repair queues --dry-run",),
)
TRIAGING = ActionSpec(
    TRIAGE,
    "Decide",
    "Accept, skip or run once more what did not simply succeed.",
    f"{_ROOM}.judging:triaging",
    (
        given.WHO,
        Field(
            "decision", "What becomes of it",
            "A partial: accept, rerun or skip. A failure or no result: rerun, orchestrator-does or gap. "
            "One that still works is stopped.",
            Kind.CHOICE,
            tuple(sorted({word for each in schema.DECISIONS.values() for word in each})),
            {
                "accept": "accept: take what is there",
                "rerun": "rerun: once more, as it was told",
                "skip": "skip: leave it out",
                "orchestrator-does": "orchestrator-does: you do its part",
                "gap": "gap: note what is missing",
            },
            required=True,
            position=True,
        ),
        options.REASON._replace(help="Stands with the decision."),
        options.BY,
        given.START,
    ),
    Intent.DECIDE,
    command="workspaces triage",
    help="Without an agent: what is to be decided. `dispatch` starts whoever is run once more.",
    examples=('acp workspaces triage queues ben accept --reason "enough for the summary"',),
    exits=LEFT,
    alone=f"{_QUERIES}:undecided",
)  # fmt: skip
CONFLICTS = QuerySpec(
    "conflicts",
    "List the conflicts and hints that are written down, and what a machine finds now.",
    f"{_QUERIES}:list_conflicts",
    command="workspaces conflicts",
    help=f"`{FIND}` writes down what is found; each is then resolved by the rule of its category "
    f"(`{RESOLVE}`), or dismissed (`{DISMISS}`); `{ADD}` adds what no machine sees. Their older "
    "spellings here (--find, --add, --resolve, --dismiss) work as before.",
    examples=("acp workspaces conflicts queues",),
    exits=LEFT,
    moved=(
        Moved("--find", FIND),
        Moved("--add", ADD, "--topic"),
        Moved("--resolve", RESOLVE, "--conflict"),
        Moved("--dismiss", DISMISS, "--conflict"),
    ),
)
COMPARISON = ActionSpec(
    FIND,
    "Compare",
    "Compare what the outputs state, and write down, as hints, where they differ.",
    f"{_ROOM}.judging:comparison",
    (options.BY,),
    command="workspaces compare",
    help="A hint holds nothing up: resolve it, dismiss it, or leave it; what is left is told of in the "
    "final output. `dispute` makes a conflict of it, which is resolved before the integration.",
    aliases=("find_conflicts",),
    examples=("acp workspaces compare queues",),
)
DISPUTE = ActionSpec(
    ADD,
    "Add conflict",
    "Write down that two outputs contradict each other.",
    f"{_ROOM}.judging:dispute",
    (
        Field("first", "Between", "Name the one agent.", Kind.CHOICE, metavar="AGENT"),
        Field("second", "And", "Name the other agent.", Kind.CHOICE, metavar="AGENT"),
        Field("topic", "On", "In a few words.", required=True, position=True),
        Field(
            "category",
            "Category",
            "Of which kind it is.",
            Kind.CHOICE,
            schema.CATEGORIES,
            required=True,
        ),
        Field("between", help="Name the two agents at once.", metavar="A,B", form=False),
        options.BY,
    ),
    command="workspaces dispute",
    aliases=("add_conflict",),
    examples=("acp workspaces dispute queues price --between ann,ben --category factual",),
)
RESOLUTION = ActionSpec(
    RESOLVE,
    "Resolve",
    "Say which version holds; the record sentence goes into the final output.",
    f"{_ROOM}.judging:resolution",
    (
        given.CONFLICT,
        Field(
            "category", "Category",
            "factual: one version holds, never an average; coverage: merged, the more detailed one "
            "kept; format: brought into the final form.",
            Kind.CHOICE, schema.CATEGORIES,
        ),
        Field("keep", "Whose version", "That holds, or is more detailed.", Kind.CHOICE,
              metavar="AGENT"),
        Field(
            "because", "Why it holds",
            "Asked of a fact only: it is the more specific, sourced or consistent version.",
            Kind.CHOICE, schema.GROUNDS,
        ),
        given.ALIKE._replace(help="For those in which the agent has a part whose version holds."),
        options.BY,
    ),
    Intent.DECIDE,
    command="workspaces resolve",
    aliases=("resolve_conflict",),
    examples=("acp workspaces resolve queues c1 --keep ann --because sourced",),
)  # fmt: skip
DISMISSAL = ActionSpec(
    DISMISS,
    "Dismiss",
    "Say that what looked like a conflict is none.",
    f"{_ROOM}.judging:dismissal",
    (
        given.CONFLICT,
        Field("reason", "Reason", "Why it is none."),
        given.ALIKE,
        options.BY,
    ),
    Intent.DECIDE,
    command="workspaces dismiss",
    aliases=("dismiss_conflict",),
    examples=('acp workspaces dismiss queues c2 --reason "They mean the same"',),
)
INTEGRATE = QuerySpec(
    "integrate",
    "The seven steps of integration, and which are through.",
    f"{_QUERIES}:steps",
    command="workspaces integrate",
    help=f"The draft is written by a program (`{SYNTHESISE}`) or by you (`{DRAFT}`, `edit`); `{FINISH}` "
    "puts it in its place with its metadata, and writes the integration status. The older spellings "
    "here (--order, --draft, --edit, --synthesise, --finish) work as before.",
    examples=("acp workspaces integrate queues",),
    exits=STEPS,
    moved=(
        Moved("--order", ORDER, "--order"),
        Moved("--synthesise", SYNTHESISE),
        Moved("--program", SYNTHESISE, "--program"),
        Moved("--", SYNTHESISE),
        Moved("--edit", "edit"),
        Moved("--draft", DRAFT),
        Moved("--finish", FINISH),
    ),
)
ORDERING = ActionSpec(
    ORDER,
    "Order",
    "In which order the outputs are read and stand in the draft.",
    f"{_ROOM}.integrating:ordering",
    (Field("order", "Order", "The most critical first.", Kind.LIST, metavar="A,B,..."),),
    command="workspaces order",
    aliases=("reading_order",),
    examples=("acp workspaces order queues --order ben,ann",),
)
DRAFTING = ActionSpec(
    DRAFT,
    "Draft",
    "Prepare a draft that cites its sources.",
    f"{_ROOM}.integrating:drafting",
    command="workspaces draft",
    examples=("acp workspaces draft queues",),
)
EDITING = ActionSpec(
    "edit",
    "Edit",
    "Open the draft in $EDITOR, and prepare it where there is none.",
    command="workspaces edit",
    examples=("acp workspaces edit queues",),
    run=f"{_ROOM}.synthesis_command:edit",
)
SYNTHESIS = ActionSpec(
    SYNTHESISE,
    "Synthesise",
    "Prepare the final output as a draft: by a program, or for you to write.",
    f"{_ROOM}.integrating:synthesising",
    (
        Field("how", "How", "By hand: a draft with all sources, which the editor opens from its "
              "document.", Kind.CHOICE, (ALONE, PROGRAM), default=ALONE, listed=False, unasked=ALONE),
        given.PROGRAM_FIELDS[0]._replace(listed=True, flag="--agent", metavar="PRESET",
                             help="Choose the program that writes it."),
        *given.PROGRAM_FIELDS[1:],
        options.DETACH,
    ),
    Intent.START,
    command="workspaces synthesise",
    examples=("acp workspaces synthesise queues --agent claude",),
    exits=((0, "written; with --detach: begun"), (1, "nothing was written"), (2, "refused")),
    run=f"{_ROOM}.synthesis_command:synthesise",
    words="COMMAND",
)  # fmt: skip
FINISHING = ActionSpec(
    FINISH,
    "Finish",
    "Put the draft in its place with its metadata, and write the integration status.",
    f"{_ROOM}.integrating:finishing",
    (
        Field(
            "gaps", "Gaps", "Note a gap that remains (those of before).", Kind.LIST, flag="--gap"
        ),
        options.BY._replace(help="Name who approves (you)."),
    ),
    Intent.ACCEPT,
    command="workspaces finish",
    examples=("acp workspaces finish queues",),
)
