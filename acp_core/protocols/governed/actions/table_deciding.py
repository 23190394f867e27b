"""What a human decides in a run, and how a run is looked after, described once.

Source: governed protocol specification, "Commands": gates are human-only checkpoints.
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, Moved
from acp_core.protocols.governed.actions import names
from acp_core.protocols.governed.actions import table_fields as given
from acp_core.protocols.governed.schema import MARKS
from acp_core.protocols.kit import options

_ROOM = "acp_core.protocols.governed.actions"
APPROVAL = ActionSpec(
    names.APPROVE_GATE,
    "Approve the gate",
    "Open the gate that waits: to the next phase, or the last one. Only a human does.",
    f"{_ROOM}.gates:approval",
    (given.COMMENT._replace(help="Say what should be remembered of it."), given.BY, options.YES),
    Intent.DECIDE,
    command="governed approve-gate",
    examples=('acp governed approve-gate --comment "Agreed"',),
    exits=given.DECISION,
    place=given.RUN,
)
TRANSITION = APPROVAL._replace(
    name="approve_transition",
    sentence="Open the gate to the next phase, and no other.",
    bind=f"{_ROOM}.gates:transition",
    command="governed approve-transition",
    examples=('acp governed approve-transition --comment "Agreed"',),
)
COMPLETION = APPROVAL._replace(
    name="approve_completion",
    sentence="Open the last gate, and no other: the run is completed.",
    bind=f"{_ROOM}.gates:completion",
    command="governed approve-completion",
    examples=('acp governed approve-completion --comment "Ship it"',),
)
GATE_REJECTION = ActionSpec(
    names.REJECT_GATE,
    "Reject the gate",
    "Send the phase back to work from its gate; the next agent is told what is missing.",
    f"{_ROOM}.gates:rejection",
    (
        Field("comment", "What is missing", "Say what is missing; the next agent reads it.",
              Kind.LINES, metavar="TEXT"),
        given.BY,
        options.YES,
    ),
    Intent.DECIDE,
    command="governed reject-gate",
    aliases=("reject",),
    examples=('acp governed reject-gate --comment "The plan leaves out the stairs"',),
    exits=given.DECISION,
    place=given.RUN,
)  # fmt: skip
ESCALATION = ActionSpec(
    names.ESCALATE,
    "Stop the run",
    "Block the run until somebody has resolved the reason.",
    f"{_ROOM}.deciding:escalation",
    (
        options.REASON._replace(kind=Kind.TEXT, help="Say why, in a few words."),
        Field("detail", "Detail", "Say more about it.", Kind.LINES, flag="--comment"),
        given.BY,
        options.YES,
    ),
    Intent.STOP_EVERYTHING,
    risky=True,
    command="governed escalate",
    examples=('acp governed escalate --reason "Two roles contradict each other"',),
    exits=given.DECISION,
    place=given.RUN,
)
UNBLOCKING = ActionSpec(
    names.UNBLOCK,
    "Let the run go on",
    "Let a blocked run go on, now that the reason is resolved.",
    f"{_ROOM}.deciding:unblocking",
    (
        given.COMMENT._replace(title="How it was resolved", help="Say how it was resolved; recorded."),
        Field("drop_turn", "Give the turn up", "Give the turn up; the next step assigns another.",
              Kind.FLAG),
        given.BY,
        options.YES,
    ),
    Intent.CONTINUE,
    command="governed unblock",
    help="A turn whose attempts are used up gets one more.",
    examples=('acp governed unblock --comment "The supplier has answered"',),
    exits=given.DECISION,
    place=given.RUN,
)  # fmt: skip
OBJECTION = ActionSpec(
    names.OBJECTION,
    "Settle an objection",
    "Say what became of an objection: acknowledged, resolved or escalated.",
    f"{_ROOM}.deciding:objection",
    (
        Field("objection", "Objection", "Name the objection by its id.", Kind.CHOICE, required=True,
              metavar="OBJ-NNN", aliases=("--id",)),
        Field("status", "Becomes", "Choose what became of it.", Kind.CHOICE, MARKS,
              default="resolved_by_human"),
        given.COMMENT._replace(help="Say how, or why; recorded in the ledger."),
        given.BY,
        options.YES,
    ),
    Intent.ANSWER,
    command="governed mark-objection",
    aliases=("objection",),
    examples=("acp governed mark-objection --objection OBJ-001 --status acknowledged",),
    exits=given.DECISION,
    place=given.RUN,
)  # fmt: skip
TALKING = ActionSpec(
    names.TALK,
    "Write into TALK.md",
    "Say something to the agents and humans of this run.",
    f"{_ROOM}.deciding:talking",
    (
        Field("text", "Words", "Say it; the next agents are shown it.", Kind.LINES, required=True,
              aliases=("--words",)),
        given.BY._replace(help="Name who says it."),
    ),
    Intent.MESSAGE,
    command="governed talk",
    examples=('acp governed talk --text "Mind the fuse box"',),
    place=given.RUN,
)  # fmt: skip
RECOVERY = ActionSpec(
    names.RECOVER,
    "Finish what was interrupted",
    "Finish what a killed command began to write, and bring a lost state back.",
    f"{_ROOM}.leftovers:recovery",
    intent=Intent.REPAIR,
    command="governed recover",
    help="Every command that writes finishes first what a killed one began. A state that is missing or "
    "cannot be read is brought back from acp's copy of it, else made again from the logs; the damaged "
    "file is kept below .acp/kept.",
    examples=("acp governed recover --dry-run",),
    place=given.RUN,
    moved=(
        Moved("--forget", "take-files"),
        Moved("--bring-back", "bring-back"),
        Moved("--set-aside", "set-aside"),
    ),
)
BRINGING_BACK = ActionSpec(
    names.BRING_BACK,
    "Bring the state back",
    "Somebody but acp changed the run's state; undo that.",
    f"{_ROOM}.leftovers:bringing_back",
    intent=Intent.REPAIR,
    risky=True,
    command="governed bring-back",
    examples=("acp governed bring-back --dry-run",),
    place=given.RUN,
)
TAKING_FILES = ActionSpec(
    names.TAKE_FILES,
    "Take the files as they are",
    "Somebody but acp wrote the run's own files, and you have looked at what changed.",
    f"{_ROOM}.leftovers:taking_files",
    intent=Intent.REPAIR,
    risky=True,
    command="governed take-files",
    help="What was interrupted and cannot be finished is left as it is, too.",
    examples=("acp governed take-files --dry-run",),
    place=given.RUN,
)
SETTING_ASIDE = ActionSpec(
    names.SET_ASIDE,
    "Set aside what was left unfinished",
    "The agentxchain program began to write and did not finish; its note is kept elsewhere.",
    f"{_ROOM}.leftovers:setting_aside",
    intent=Intent.REPAIR,
    risky=True,
    command="governed set-aside",
    examples=("acp governed set-aside --dry-run",),
    place=given.RUN,
)
TRUSTING = ActionSpec(
    names.TRUST,
    "Allow hooks and services",
    "Allow the hooks, and the services with an address of their own, that the configuration names.",
    f"{_ROOM}.upkeep:trusting",
    (given.BY._replace(form=False), options.YES),
    risky=True,
    command="governed trust",
    help="They are shown before, and allowed as they stand: until one of them changes.",
    examples=("acp governed trust",),
    exits=given.DECISION,
    place=given.RUN,
    run=f"{_ROOM}.upkeep:run_trust",
)
MIGRATION = ActionSpec(
    names.MIGRATE,
    "Migrate the run",
    "Bring a run of an earlier version to this one.",
    f"{_ROOM}.upkeep:migration",
    (given.BY, options.YES),
    Intent.REPAIR,
    command="governed migrate",
    help="Schema versions where there are none, mandatory objections, a state that can be linked. What "
    "is under way goes on.",
    examples=("acp governed migrate --dry-run",),
    exits=given.DECISION,
    place=given.RUN,
)
