"""Every act and query of an initiative over several repositories, described once.

Source: governed protocol specification, "How it works" (the coordinator).
"""

from __future__ import annotations

from acp_core.model.action_spec import ActionSpec, Field, Intent, Kind, QuerySpec
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.acts import table_fields
from acp_core.protocols.governed.write.initiative_configuring import BARRIERS
from acp_core.protocols.kit import fast_args

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
    "acp_core.protocols.governed.acts.initiative_acts:starting",
    (
        table_fields.AGENTS._replace(
            help="ROLE=COMMAND for pm, dev and qa in new runs; a human plays the others."
        ),
        Field("repositories", help="Name a workstream's repository, to write agentxchain-multi.json.",
              kind=Kind.LIST, flag="--repo", metavar="NAME=ADDRESS[#BRANCH]", form=False, owner=True),
        Field("barriers",
              help=f"Name a barrier of that configuration ({', '.join(BARRIERS)}).",
              kind=Kind.LIST, flag="--barrier", metavar="NAME=PHASE", form=False),
        Field("description", help="The objective of the initiative.", form=False),
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.START,
    command="governed coordinator init",
    help="The configuration is FOLDER/agentxchain-multi.json.",
    examples=('acp governed coordinator init --agent "dev=claude -p"',),
    exits=table_fields.DECISION,
    place=table_fields.INITIATIVE,
)  # fmt: skip

STATUS = QuerySpec(
    "status",
    "Show the state of the initiative.",
    "acp_core.protocols.governed.acts.initiative_status:status",
    (table_fields.INITIATIVE,),
    command="governed coordinator status",
    examples=("acp governed coordinator status --json",),
)

COORDINATION = ActionSpec(
    schema.COORDINATE,
    "Step the coordinator",
    "Check all workstreams: hold those at a barrier, open gates, and share context between workstreams.",
    "acp_core.protocols.governed.acts.initiative_acts:coordination",
    intent=Intent.CONTINUE,
    command="governed coordinator step",
    aliases=("step",),
    examples=("acp governed coordinator step --dry-run",),
    exits=RESYNCED,
    place=table_fields.INITIATIVE,
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
    place=table_fields.INITIATIVE,
    run="acp_core.protocols.governed.acts.initiative_following:poll",
)  # fmt: skip

APPROVAL = ActionSpec(
    schema.APPROVE_BARRIER,
    "Approve the barrier",
    "Approve a cross-repo gate: all workstreams cross it at once.",
    "acp_core.protocols.governed.acts.initiative_acts:approval",
    (
        table_fields.COMMENT._replace(help="The reason; every agent reads it."),
        _BARRIER,
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.DECIDE,
    command="governed coordinator approve-barrier",
    aliases=("approve", "approve_gate"),
    examples=('acp governed coordinator approve-barrier --comment "One token format"',),
    exits=RESYNCED,
    place=table_fields.INITIATIVE,
)

REJECTION = ActionSpec(
    schema.REJECT_BARRIER,
    "Reject the barrier",
    "Send workstreams from a cross-repo gate back to work in their phase.",
    "acp_core.protocols.governed.acts.initiative_acts:rejection",
    (
        Field(
            "workstream", "Workstreams to send back",
            "Send only these workstreams back; the others keep waiting at the barrier.",
            Kind.LIST, metavar="NAME",
        ),
        Field("comment", "What is missing", "Describe what is missing, for the next agents.",
              Kind.LINES, metavar="TEXT", needed=True),
        _BARRIER,
        table_fields.BY,
        fast_args.YES,
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
    place=table_fields.INITIATIVE,
)  # fmt: skip

RESYNC = ActionSpec(
    schema.RESYNC,
    "Resync",
    "Retry after fixing the failure: all workstreams cross the approved barrier, or none.",
    "acp_core.protocols.governed.acts.initiative_acts:resyncing",
    intent=Intent.RETRY,
    command="governed coordinator resync",
    examples=("acp governed coordinator resync",),
    exits=RESYNCED,
    place=table_fields.INITIATIVE,
)

MENDING = ActionSpec(
    schema.MEND,
    "Repair a workstream",
    "Rebuild a lost state from the workstream's history, or return the workstream to a barrier that it crossed.",
    "acp_core.protocols.governed.acts.initiative_acts:mending",
    (
        Field("workstream", "Workstream", "The workstream to repair.", Kind.CHOICE,
              required=True, metavar="NAME"),
        table_fields.BY,
        fast_args.YES,
    ),
    Intent.REPAIR,
    command="governed coordinator mend-workstream",
    aliases=("mend",),
    examples=("acp governed coordinator mend-workstream --workstream web",),
    exits=RESYNCED,
    place=table_fields.INITIATIVE,
)  # fmt: skip

MENDING_STATE = ActionSpec(
    schema.MEND_STATE,
    "Repair the coordinator's state",
    "Rebuild the coordinator's lost state from its ledger; the damaged file is kept.",
    "acp_core.protocols.governed.acts.initiative_acts:mending_state",
    (table_fields.BY, fast_args.YES),
    Intent.REPAIR,
    command="governed coordinator mend-state",
    examples=("acp governed coordinator mend-state",),
    exits=RESYNCED,
    place=table_fields.INITIATIVE,
)

TRUST_HOOKS = ActionSpec(
    schema.TRUST_HOOKS,
    "Trust the hooks",
    "Allow the scripts that the configuration names; review them first.",
    "acp_core.protocols.governed.acts.initiative_acts:trusting",
    (table_fields.BY._replace(form=False), fast_args.YES),
    risky=True,
    command="governed coordinator trust-hooks",
    aliases=("trust",),
    examples=("acp governed coordinator trust-hooks",),
    exits=table_fields.DECISION,
    place=table_fields.INITIATIVE,
    run="acp_core.protocols.governed.acts.initiative_following:trust_hooks",
    owner=True,
)
