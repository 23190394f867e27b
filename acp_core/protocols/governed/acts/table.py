"""Every act and query of runs and initiatives, described once, and the commands made of them.

Source: governed protocol specification, "Commands" (gates are human-only checkpoints) and "How it
works" (the coordinator).
"""

from __future__ import annotations

from acp_core.model.action_field import PRESETS
from acp_core.model.action_spec import ActionSpec, Exits, Field, Intent, Kind, Moved, QuerySpec
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.schema import MARKS
from acp_core.protocols.governed.write.init import DEFAULT_BARRIERS
from acp_core.protocols.kit import command_line
from acp_core.protocols.kit.command import Commands

RUN = command_line.FOLDER._replace(help="The run's repository.")
INITIATIVE = command_line.FOLDER._replace(help="The initiative's folder.")

BY = command_line.BY._replace(
    title="Who decides", help="Who decides; recorded.", form=True, aliases=("--as",)
)

COMMENT = Field("comment", "Comment", "The reason; recorded.", Kind.LINES)
TURN = Field("turn", "Turn", "The turn, if several are active.", metavar="ID", form=False)

AGENTS = Field(
    "agents", "Agents",
    "ROLE=COMMAND: the command that takes a role's turns. {prompt} is replaced by the prompt, "
    "which otherwise goes to standard input. A human plays a role without a command.",
    Kind.LIST, flag="--agent", metavar="ROLE=COMMAND", suggests=PRESETS, owner=True,
)  # fmt: skip

DECISION: Exits = (
    (0, "done"),
    (1, "you declined the confirmation"),
    (2, "refused, or invalid input"),
    (130, "interrupted"),
)
"""Exit codes of what a human is asked about."""

CREATION = ActionSpec(
    schema.CREATE,
    "New governed run",
    "Start a governed run: agents work in phases, and you open the gates between them. With "
    "repositories, configure an initiative over them.",
    "acp_core.protocols.governed.acts.upkeep:creation",
    (
        Field("name", "Name", "The project's name [default: the folder's name]."),
        Field("objective", "Goal", "The goal of the run.", Kind.LINES, flag="--goal"),
        Field(
            "phases", "Phases",
            "A phase and the role that starts it, in order (planning=pm, implementation=dev, "
            "verification=qa).",
            Kind.LIST, flag="--phase", metavar="NAME=ROLE", form=False,
        ),
        AGENTS,
        Field(
            "repositories", "Repositories",
            "For an initiative over several repositories: NAME=ADDRESS or NAME=ADDRESS#BRANCH. Default: one run "
            "in this folder.",
            Kind.LIST, flag="--repo", metavar="NAME=ADDRESS",
        ),
        Field(
            "barriers", "Barriers", "For an initiative: NAME=PHASE; all workstreams wait for each other at the end of that phase.",
            Kind.LIST, flag="--barrier", metavar="NAME=PHASE", default=DEFAULT_BARRIERS,
        ),
    ),
    Intent.CREATE,
    command="governed init",
    help="Writes the configuration, roles, prompts, planning documents and TALK.md.",
    place=RUN,
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
        command_line.BUDGET._replace(form=False),
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
    place=RUN,
    run="acp_core.protocols.governed.acts.turns:run_step",
)  # fmt: skip

STOPPING = ActionSpec(
    schema.STOP,
    "Stop the program",
    "Stop the program that takes the turn; its changes in the repository stay.",
    "acp_core.protocols.governed.acts.turns:stopping",
    (TURN,),
    Intent.STOP,
    risky=True,
    command="governed stop-turn",
    aliases=("stop",),
    examples=("acp governed stop-turn",),
    place=RUN,
)

STATUS = QuerySpec(
    "status",
    "Show phase, turns, gate and objections of a run.",
    "acp_core.protocols.governed.queries:status",
    (RUN,),
    command="governed status",
    examples=("acp governed status", "acp governed status ~/work/hall --json"),
)

CHECK = QuerySpec(
    "check",
    "Check the staged result of a turn without changing anything.",
    "acp_core.protocols.governed.queries:check",
    (RUN, TURN),
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
    (TURN,),
    Intent.REPAIR,
    command="governed correct-result",
    aliases=("correct",),
    examples=("acp governed correct-result --dry-run",),
    place=RUN,
)

ACCEPTANCE = ActionSpec(
    schema.ACCEPT,
    "Accept the turn",
    "Accept the staged result into the history.",
    "acp_core.protocols.governed.acts.turns:acceptance",
    (
        TURN,
        Field(
            "exclude", "Not the agent's", "Path of a changed file that the agent did not change.",
            Kind.LIST, metavar="PATH",
        ),
    ),
    Intent.ACCEPT,
    command="governed accept-turn",
    help="acp checks the result first and compares it with the changes in the repository.",
    examples=("acp governed accept-turn", "acp governed accept-turn --exclude build/log.txt"),
    place=RUN,
)  # fmt: skip

TURN_REJECTION = ActionSpec(
    schema.REJECT,
    "Reject the turn",
    "Send the turn back with the reason; after the last attempt the run blocks.",
    "acp_core.protocols.governed.acts.turns:turn_rejection",
    (
        TURN,
        Field("reason", "What is wrong", "Describe what is wrong, for the agent.", Kind.LINES,
              aliases=("--comment",), metavar="TEXT", needed=True),
        BY,
        command_line.YES,
    ),
    Intent.REJECT,
    command="governed reject-turn",
    examples=('acp governed reject-turn --reason "No test of the dimmer"',),
    exits=DECISION,
    place=RUN,
)  # fmt: skip

GATE_APPROVAL = ActionSpec(
    schema.APPROVE_GATE,
    "Approve the gate",
    "Approve the pending gate, to the next phase or to completion. Only a human can.",
    "acp_core.protocols.governed.acts.turns:approval",
    (
        COMMENT._replace(help="Comment to record with the approval."),
        BY,
        command_line.YES,
    ),
    Intent.DECIDE,
    command="governed approve-gate",
    examples=('acp governed approve-gate --comment "Agreed"',),
    exits=DECISION,
    place=RUN,
)

TRANSITION = GATE_APPROVAL._replace(
    name="approve_transition",
    sentence="Approve only a gate to the next phase.",
    bind="acp_core.protocols.governed.acts.turns:transition",
    command="governed approve-transition",
    examples=('acp governed approve-transition --comment "Agreed"',),
)

COMPLETION = GATE_APPROVAL._replace(
    name="approve_completion",
    sentence="Approve only the last gate, which completes the run.",
    bind="acp_core.protocols.governed.acts.turns:completion",
    command="governed approve-completion",
    examples=('acp governed approve-completion --comment "Ship it"',),
)

GATE_REJECTION = ActionSpec(
    schema.REJECT_GATE,
    "Reject the gate",
    "Reject the pending gate and send the phase back to work; the next agent reads what is missing.",
    "acp_core.protocols.governed.acts.turns:gate_rejection",
    (
        Field("comment", "What is missing", "Describe what is missing, for the next agent.",
              Kind.LINES, metavar="TEXT", needed=True),
        BY,
        command_line.YES,
    ),
    Intent.DECIDE,
    command="governed reject-gate",
    aliases=("reject",),
    examples=('acp governed reject-gate --comment "The plan leaves out the stairs"',),
    exits=DECISION,
    place=RUN,
)  # fmt: skip

ESCALATION = ActionSpec(
    schema.ESCALATE,
    "Stop the run",
    "Block the run until a human has resolved the reason.",
    "acp_core.protocols.governed.acts.turns:escalation",
    (
        command_line.REASON._replace(kind=Kind.TEXT, help="The reason, in a few words."),
        Field("detail", "Detail", "Details about the reason.", Kind.LINES, flag="--comment"),
        BY,
        command_line.YES,
    ),
    Intent.STOP_EVERYTHING,
    risky=True,
    command="governed escalate",
    examples=('acp governed escalate --reason "Two roles contradict each other"',),
    exits=DECISION,
    place=RUN,
)

UNBLOCKING = ActionSpec(
    schema.UNBLOCK,
    "Unblock the run",
    "Unblock a blocked run after you have resolved the reason.",
    "acp_core.protocols.governed.acts.turns:unblocking",
    (
        COMMENT._replace(title="How it was resolved", help="Describe how you resolved it; recorded."),
        Field("drop_turn", "Abandon the turn", "Abandon the turn; the next step assigns a new one.",
              Kind.FLAG),
        BY,
        command_line.YES,
    ),
    Intent.CONTINUE,
    command="governed unblock",
    help="A turn that has used up its attempts gets one more.",
    examples=('acp governed unblock --comment "The supplier has answered"',),
    exits=DECISION,
    place=RUN,
)  # fmt: skip

OBJECTION = ActionSpec(
    schema.OBJECTION,
    "Resolve an objection",
    "Acknowledge, resolve or escalate an objection.",
    "acp_core.protocols.governed.acts.turns:objection",
    (
        Field("objection", "Objection", "Name the objection by its id.", Kind.CHOICE, required=True,
              metavar="OBJ-NNN", aliases=("--id",)),
        Field("status", "Becomes", "The new status of the objection.", Kind.CHOICE, MARKS,
              default="resolved_by_human"),
        COMMENT._replace(help="How, or why; recorded in the ledger."),
        BY,
        command_line.YES,
    ),
    Intent.ANSWER,
    command="governed mark-objection",
    aliases=("objection",),
    examples=("acp governed mark-objection --objection OBJ-001 --status acknowledged",),
    exits=DECISION,
    place=RUN,
)  # fmt: skip

TALKING = ActionSpec(
    schema.LEAVE_MESSAGE,
    "Write to TALK.md",
    "Leave a message in TALK.md for the agents and humans of this run.",
    "acp_core.protocols.governed.acts.turns:talking",
    (
        Field("text", "Words", "The message; the next agents read it.", Kind.LINES, required=True,
              aliases=("--words",)),
        BY._replace(help="Author of the message."),
    ),
    Intent.MESSAGE,
    command="governed talk",
    examples=('acp governed talk --text "Mind the fuse box"',),
    place=RUN,
)  # fmt: skip

RECOVERY = ActionSpec(
    schema.RECOVER,
    "Finish interrupted writes",
    "Finish the writes of a killed command, and restore a lost state.",
    "acp_core.protocols.governed.acts.upkeep:recovery",
    intent=Intent.REPAIR,
    command="governed recover",
    help="Every command that writes first finishes the writes of a killed one. A state that is missing or "
    "cannot be read is restored from acp's copy, or rebuilt from the logs; the damaged file is kept "
    "below .acp/kept.",
    examples=("acp governed recover --dry-run",),
    place=RUN,
    moved=(
        Moved("--forget", "take-files"),
        Moved("--bring-back", "bring-back"),
        Moved("--set-aside", "set-aside"),
    ),
)

BRINGING_BACK = ActionSpec(
    schema.BRING_BACK,
    "Restore the state",
    "Undo changes to the run's state that acp did not make.",
    "acp_core.protocols.governed.acts.upkeep:bringing_back",
    intent=Intent.REPAIR,
    risky=True,
    command="governed bring-back",
    examples=("acp governed bring-back --dry-run",),
    place=RUN,
)

TAKING_FILES = ActionSpec(
    schema.TAKE_FILES,
    "Accept the files as they are",
    "Accept changes to the run's own files that acp did not make, after you have reviewed them.",
    "acp_core.protocols.governed.acts.upkeep:taking_files",
    intent=Intent.REPAIR,
    risky=True,
    command="governed take-files",
    help="Interrupted writes that cannot be finished are left as they are.",
    examples=("acp governed take-files --dry-run",),
    place=RUN,
)

SETTING_ASIDE = ActionSpec(
    schema.SET_ASIDE,
    "Set aside unfinished writes",
    "Set aside a write that the agentxchain program did not finish; its note is kept.",
    "acp_core.protocols.governed.acts.upkeep:setting_aside",
    intent=Intent.REPAIR,
    risky=True,
    command="governed set-aside",
    examples=("acp governed set-aside --dry-run",),
    place=RUN,
)

TRUSTING = ActionSpec(
    schema.TRUST,
    "Allow hooks and services",
    "Allow the hooks and external services that the configuration names.",
    "acp_core.protocols.governed.acts.upkeep:trusting",
    (BY._replace(form=False), command_line.YES),
    risky=True,
    command="governed trust",
    help="acp shows them first; your permission lasts until one of them changes.",
    examples=("acp governed trust",),
    exits=DECISION,
    place=RUN,
    run="acp_core.protocols.governed.acts.upkeep:run_trust",
    owner=True,
)

MIGRATION = ActionSpec(
    schema.MIGRATE,
    "Migrate the run",
    "Migrate a run of an earlier version to this version.",
    "acp_core.protocols.governed.acts.upkeep:migration",
    (BY, command_line.YES),
    Intent.REPAIR,
    command="governed migrate",
    help="Adds missing schema versions, mandatory objections, and a state that initiatives can link. "
    "Active turns stay.",
    examples=("acp governed migrate --dry-run",),
    exits=DECISION,
    place=RUN,
)

_BARRIER = Field("barrier", "Barrier", "The barrier [default: the one with the open gate].", Kind.CHOICE,
                 metavar="NAME")  # fmt: skip

RESYNCED = (
    (0, "done"),
    (1, "something failed, or you declined the confirmation"),
    (2, "refused, or invalid input"),
    (130, "interrupted"),
)

STARTING = ActionSpec(
    schema.START,
    "Start the initiative",
    "Clone missing repositories, start a run in each workstream, and link the runs.",
    "acp_core.protocols.governed.acts.initiatives:starting",
    (
        AGENTS._replace(
            help="ROLE=COMMAND for pm, dev and qa in new runs; a human plays the others."
        ),
        Field("repositories", help="Name a workstream's repository, to write agentxchain-multi.json.",
              kind=Kind.LIST, flag="--repo", metavar="NAME=ADDRESS[#BRANCH]", form=False, owner=True),
        Field("barriers",
              help=f"Name a barrier of that configuration ({', '.join(DEFAULT_BARRIERS)}).",
              kind=Kind.LIST, flag="--barrier", metavar="NAME=PHASE", form=False),
        Field("description", help="The objective of the initiative.", form=False),
        BY,
        command_line.YES,
    ),
    Intent.START,
    command="governed coordinator init",
    help="The configuration is FOLDER/agentxchain-multi.json.",
    examples=('acp governed coordinator init --agent "dev=claude -p"',),
    exits=DECISION,
    place=INITIATIVE,
)  # fmt: skip

INITIATIVE_STATUS = QuerySpec(
    "status",
    "Show the state of the initiative.",
    "acp_core.protocols.governed.acts.initiatives:initiative_status",
    (INITIATIVE,),
    command="governed coordinator status",
    examples=("acp governed coordinator status --json",),
)

COORDINATION = ActionSpec(
    schema.COORDINATE,
    "Step the coordinator",
    "Check all workstreams: hold those at a barrier, open gates, and share context between workstreams.",
    "acp_core.protocols.governed.acts.initiatives:coordination",
    intent=Intent.CONTINUE,
    command="governed coordinator step",
    aliases=("step",),
    examples=("acp governed coordinator step --dry-run",),
    exits=RESYNCED,
    place=INITIATIVE,
)

POLLING = ActionSpec(
    schema.POLL,
    "Step repeatedly",
    "Step after every change, until the initiative ends or you interrupt.",
    fields=(
        Field("every", help="Interval between checks for changes [default: 2 seconds].",
              kind=Kind.DURATION, least=0.05, most=3600, form=False),
    ),
    intent=Intent.CONTINUE,
    command="governed coordinator poll",
    examples=("acp governed coordinator poll --every 10",),
    place=INITIATIVE,
    run="acp_core.protocols.governed.acts.initiatives:poll",
)  # fmt: skip

BARRIER_APPROVAL = ActionSpec(
    schema.APPROVE_BARRIER,
    "Approve the barrier",
    "Approve a cross-repo gate: all workstreams cross it at once.",
    "acp_core.protocols.governed.acts.initiatives:approval",
    (
        COMMENT._replace(help="The reason; every agent reads it."),
        _BARRIER,
        BY,
        command_line.YES,
    ),
    Intent.DECIDE,
    command="governed coordinator approve-barrier",
    aliases=("approve", "approve_gate"),
    examples=('acp governed coordinator approve-barrier --comment "One token format"',),
    exits=RESYNCED,
    place=INITIATIVE,
)

BARRIER_REJECTION = ActionSpec(
    schema.REJECT_BARRIER,
    "Reject the barrier",
    "Send workstreams from a cross-repo gate back to work in their phase.",
    "acp_core.protocols.governed.acts.initiatives:rejection",
    (
        Field(
            "workstream", "Workstreams to send back",
            "Send only these workstreams back; the others keep waiting at the barrier.",
            Kind.LIST, metavar="NAME",
        ),
        Field("comment", "What is missing", "Describe what is missing, for the next agents.",
              Kind.LINES, metavar="TEXT", needed=True),
        _BARRIER,
        BY,
        command_line.YES,
    ),
    Intent.DECIDE,
    command="governed coordinator reject-barrier",
    aliases=("reject",),
    examples=(
        (
            "acp governed coordinator reject-barrier --workstream web \\\n"
            '    --comment "No test of the expiry"'
        ),
    ),
    exits=RESYNCED,
    place=INITIATIVE,
)  # fmt: skip

RESYNC = ActionSpec(
    schema.RESYNC,
    "Resync",
    "Retry after fixing the failure: all workstreams cross the approved barrier, or none.",
    "acp_core.protocols.governed.acts.initiatives:resyncing",
    intent=Intent.RETRY,
    command="governed coordinator resync",
    examples=("acp governed coordinator resync",),
    exits=RESYNCED,
    place=INITIATIVE,
)

MENDING = ActionSpec(
    schema.MEND,
    "Repair a workstream",
    "Rebuild a lost state from the workstream's history, or return the workstream to a barrier that it crossed.",
    "acp_core.protocols.governed.acts.initiatives:mending",
    (
        Field("workstream", "Workstream", "The workstream to repair.", Kind.CHOICE,
              required=True, metavar="NAME"),
        BY,
        command_line.YES,
    ),
    Intent.REPAIR,
    command="governed coordinator mend-workstream",
    aliases=("mend",),
    examples=("acp governed coordinator mend-workstream --workstream web",),
    exits=RESYNCED,
    place=INITIATIVE,
)  # fmt: skip

MENDING_STATE = ActionSpec(
    schema.MEND_STATE,
    "Repair the coordinator's state",
    "Rebuild the coordinator's lost state from its ledger; the damaged file is kept.",
    "acp_core.protocols.governed.acts.initiatives:mending_state",
    (BY, command_line.YES),
    Intent.REPAIR,
    command="governed coordinator mend-state",
    examples=("acp governed coordinator mend-state",),
    exits=RESYNCED,
    place=INITIATIVE,
)

TRUST_HOOKS = ActionSpec(
    schema.TRUST_HOOKS,
    "Trust the hooks",
    "Allow the scripts that the configuration names; review them first.",
    "acp_core.protocols.governed.acts.initiatives:trusting",
    (BY._replace(form=False), command_line.YES),
    risky=True,
    command="governed coordinator trust-hooks",
    aliases=("trust",),
    examples=("acp governed coordinator trust-hooks",),
    exits=DECISION,
    place=INITIATIVE,
    run="acp_core.protocols.governed.acts.initiatives:trust_hooks",
    owner=True,
)

SCHEMA = "acp.governed/1"

OF_RUN = (
    RECOVERY,
    SETTING_ASIDE,
    GATE_APPROVAL,
    GATE_REJECTION,
    CORRECTION,
    ACCEPTANCE,
    TURN_REJECTION,
    STOPPING,
    UNBLOCKING,
    STEPPING,
    OBJECTION,
    TALKING,
    ESCALATION,
    BRINGING_BACK,
    TAKING_FILES,
    TRUSTING,
    MIGRATION,
)
"""What a human can do in a run, most useful first."""

OF_INITIATIVE = (
    STARTING,
    RESYNC,
    BARRIER_APPROVAL,
    BARRIER_REJECTION,
    MENDING_STATE,
    MENDING,
    COORDINATION,
    TRUST_HOOKS,
)
"""What a human can do in an initiative, most useful first."""

COORDINATOR = Commands(
    "governed coordinator",
    "Coordinate governed runs of several repositories: shared barriers, cross-repo gates, resync.",
    (
        STARTING,
        INITIATIVE_STATUS,
        COORDINATION,
        POLLING,
        BARRIER_APPROVAL,
        BARRIER_REJECTION,
        RESYNC,
        MENDING,
        MENDING_STATE,
        TRUST_HOOKS,
    ),
    SCHEMA,
)

COMMANDS = Commands(
    "governed",
    "Governed runs: phases, turns, and gates that only a human opens.",
    (
        CREATION,
        STEPPING,
        STOPPING,
        STATUS,
        CHECK,
        CORRECTION,
        ACCEPTANCE,
        TURN_REJECTION,
        GATE_APPROVAL,
        TRANSITION,
        COMPLETION,
        GATE_REJECTION,
        ESCALATION,
        UNBLOCKING,
        OBJECTION,
        TALKING,
        RECOVERY,
        BRINGING_BACK,
        TAKING_FILES,
        SETTING_ASIDE,
        TRUSTING,
        MIGRATION,
    ),
    SCHEMA,
    (COORDINATOR,),
)
