"""What a human decides in a run, and how a run is looked after, described once.

Source: governed protocol specification, "Commands": gates are human-only checkpoints.
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, Moved
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.acts import table_fields
from acp_core.protocols.governed.schema import MARKS
from acp_core.protocols.kit import fast_args

APPROVAL = ActionSpec(
    schema.APPROVE_GATE,
    "Approve the gate",
    "Approve the pending gate, to the next phase or to completion. Only a human can.",
    "acp_core.protocols.governed.acts.gates:approval",
    (
        table_fields.COMMENT._replace(help="Comment to record with the approval."),
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.DECIDE,
    command="governed approve-gate",
    examples=('acp governed approve-gate --comment "Agreed"',),
    exits=table_fields.DECISION,
    place=table_fields.RUN,
)

TRANSITION = APPROVAL._replace(
    name="approve_transition",
    sentence="Approve only a gate to the next phase.",
    bind="acp_core.protocols.governed.acts.gates:transition",
    command="governed approve-transition",
    examples=('acp governed approve-transition --comment "Agreed"',),
)

COMPLETION = APPROVAL._replace(
    name="approve_completion",
    sentence="Approve only the last gate, which completes the run.",
    bind="acp_core.protocols.governed.acts.gates:completion",
    command="governed approve-completion",
    examples=('acp governed approve-completion --comment "Ship it"',),
)

GATE_REJECTION = ActionSpec(
    schema.REJECT_GATE,
    "Reject the gate",
    "Reject the pending gate and send the phase back to work; the next agent reads what is missing.",
    "acp_core.protocols.governed.acts.gates:rejection",
    (
        Field("comment", "What is missing", "Describe what is missing, for the next agent.",
              Kind.LINES, metavar="TEXT", needed=True),
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.DECIDE,
    command="governed reject-gate",
    aliases=("reject",),
    examples=('acp governed reject-gate --comment "The plan leaves out the stairs"',),
    exits=table_fields.DECISION,
    place=table_fields.RUN,
)  # fmt: skip

ESCALATION = ActionSpec(
    schema.ESCALATE,
    "Stop the run",
    "Block the run until a human has resolved the reason.",
    "acp_core.protocols.governed.acts.deciding:escalation",
    (
        fast_args.REASON._replace(kind=Kind.TEXT, help="The reason, in a few words."),
        Field("detail", "Detail", "Details about the reason.", Kind.LINES, flag="--comment"),
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.STOP_EVERYTHING,
    risky=True,
    command="governed escalate",
    examples=('acp governed escalate --reason "Two roles contradict each other"',),
    exits=table_fields.DECISION,
    place=table_fields.RUN,
)

UNBLOCKING = ActionSpec(
    schema.UNBLOCK,
    "Unblock the run",
    "Unblock a blocked run after you have resolved the reason.",
    "acp_core.protocols.governed.acts.deciding:unblocking",
    (
        table_fields.COMMENT._replace(title="How it was resolved", help="Describe how you resolved it; recorded."),
        Field("drop_turn", "Abandon the turn", "Abandon the turn; the next step assigns a new one.",
              Kind.FLAG),
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.CONTINUE,
    command="governed unblock",
    help="A turn that has used up its attempts gets one more.",
    examples=('acp governed unblock --comment "The supplier has answered"',),
    exits=table_fields.DECISION,
    place=table_fields.RUN,
)  # fmt: skip

OBJECTION = ActionSpec(
    schema.OBJECTION,
    "Resolve an objection",
    "Acknowledge, resolve or escalate an objection.",
    "acp_core.protocols.governed.acts.deciding:objection",
    (
        Field("objection", "Objection", "Name the objection by its id.", Kind.CHOICE, required=True,
              metavar="OBJ-NNN", aliases=("--id",)),
        Field("status", "Becomes", "The new status of the objection.", Kind.CHOICE, MARKS,
              default="resolved_by_human"),
        table_fields.COMMENT._replace(help="How, or why; recorded in the ledger."),
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.ANSWER,
    command="governed mark-objection",
    aliases=("objection",),
    examples=("acp governed mark-objection --objection OBJ-001 --status acknowledged",),
    exits=table_fields.DECISION,
    place=table_fields.RUN,
)  # fmt: skip

TALKING = ActionSpec(
    schema.LEAVE_MESSAGE,
    "Write to TALK.md",
    "Leave a message in TALK.md for the agents and humans of this run.",
    "acp_core.protocols.governed.acts.deciding:talking",
    (
        Field("text", "Words", "The message; the next agents read it.", Kind.LINES, required=True,
              aliases=("--words",)),
        table_fields.BY._replace(help="Author of the message."),
    ),
    Intent.MESSAGE,
    command="governed talk",
    examples=('acp governed talk --text "Mind the fuse box"',),
    place=table_fields.RUN,
)  # fmt: skip

RECOVERY = ActionSpec(
    schema.RECOVER,
    "Finish interrupted writes",
    "Finish the writes of a killed command, and restore a lost state.",
    "acp_core.protocols.governed.acts.leftovers:recovery",
    intent=Intent.REPAIR,
    command="governed recover",
    help="Every command that writes first finishes the writes of a killed one. A state that is missing or "
    "cannot be read is restored from acp's copy, or rebuilt from the logs; the damaged file is kept "
    "below .acp/kept.",
    examples=("acp governed recover --dry-run",),
    place=table_fields.RUN,
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
    "acp_core.protocols.governed.acts.leftovers:bringing_back",
    intent=Intent.REPAIR,
    risky=True,
    command="governed bring-back",
    examples=("acp governed bring-back --dry-run",),
    place=table_fields.RUN,
)

TAKING_FILES = ActionSpec(
    schema.TAKE_FILES,
    "Accept the files as they are",
    "Accept changes to the run's own files that acp did not make, after you have reviewed them.",
    "acp_core.protocols.governed.acts.leftovers:taking_files",
    intent=Intent.REPAIR,
    risky=True,
    command="governed take-files",
    help="Interrupted writes that cannot be finished are left as they are.",
    examples=("acp governed take-files --dry-run",),
    place=table_fields.RUN,
)

SETTING_ASIDE = ActionSpec(
    schema.SET_ASIDE,
    "Set aside unfinished writes",
    "Set aside a write that the agentxchain program did not finish; its note is kept.",
    "acp_core.protocols.governed.acts.leftovers:setting_aside",
    intent=Intent.REPAIR,
    risky=True,
    command="governed set-aside",
    examples=("acp governed set-aside --dry-run",),
    place=table_fields.RUN,
)

TRUSTING = ActionSpec(
    schema.TRUST,
    "Allow hooks and services",
    "Allow the hooks and external services that the configuration names.",
    "acp_core.protocols.governed.acts.upkeep:trusting",
    (table_fields.BY._replace(form=False), fast_args.YES),
    risky=True,
    command="governed trust",
    help="acp shows them first; your permission lasts until one of them changes.",
    examples=("acp governed trust",),
    exits=table_fields.DECISION,
    place=table_fields.RUN,
    run="acp_core.protocols.governed.acts.upkeep:run_trust",
    owner=True,
)

MIGRATION = ActionSpec(
    schema.MIGRATE,
    "Migrate the run",
    "Migrate a run of an earlier version to this version.",
    "acp_core.protocols.governed.acts.upkeep:migration",
    (table_fields.BY, fast_args.YES),
    Intent.REPAIR,
    command="governed migrate",
    help="Adds missing schema versions, mandatory objections, and a state that initiatives can link. "
    "Active turns stay.",
    examples=("acp governed migrate --dry-run",),
    exits=table_fields.DECISION,
    place=table_fields.RUN,
)
