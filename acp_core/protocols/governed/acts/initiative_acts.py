"""What a human can do in an initiative, bound to it: the descriptions stand in the table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.governed.acts import table_initiative
from acp_core.protocols.governed.acts.common import decider, done, facts
from acp_core.protocols.governed.acts.initiative_common import (
    Steps,
    Whole,
    ended,
    handed,
    of_initiative,
    preview_of,
    whole,
)
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.initiative import Plan, Workstream, read_plan
from acp_core.protocols.governed.rules import initiatives
from acp_core.protocols.governed.rules.initiative_reconcile import REACHED, RESYNC_FAILED, left
from acp_core.protocols.governed.schema import MULTI_CONFIG, Object
from acp_core.protocols.governed.write import (
    initiative_configuring,
    initiative_decide,
    initiative_init,
    initiative_rebuild,
    initiative_repair,
    initiative_resync,
    initiative_trust,
)
from acp_core.protocols.governed.write.init import agents_of
from acp_core.protocols.governed.write.initiative_decide import Decision
from acp_core.protocols.governed.write.initiative_opened import STATE, Opened
from acp_core.protocols.governed.write.journal import document
from acp_core.protocols.governed.write.opened import refuse_agents, who
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe

_ALL = "all"  # how an earlier form called all workstreams


def starting(context: Context, now: datetime) -> Action:
    """Start the initiative; offered where it is configured and was not begun."""
    opened, spec = whole(context), table_initiative.STARTING
    root = opened.root

    def preview(values: Values) -> Preview:
        refuse_agents()
        config, plan = _configuration(root, values)
        initiative = initiative_init.prepare(root, agents_of(values.agents), plan)
        steps = tuple(Change(safe(done), "start") for done in initiative.messages)
        warnings = tuple(map(safe, initiative.warnings))
        data = facts(
            spec, opened.key, dry_run=True, would=initiative.messages, configuration=config
        )
        changes = (*_written(root, config), *steps)
        return Preview(safe(f"Start {root.name}."), changes, (), warnings, data=data)

    def perform(values: Values) -> Outcome:
        refuse_agents()
        by, agents = who(values.by), agents_of(values.agents)
        config, plan = _configuration(root, values)
        initiative = initiative_init.prepare(root, agents, plan)
        if config is not None:
            initiative_configuring.write(root, config)
        done = initiative_init.create(root, by, utc_now(), agents)
        data = facts(spec, opened.key, steps=done)
        notes, warnings = map(safe, initiative.messages), map(safe, initiative.warnings)
        said = Preview(
            safe("; ".join(done)), (), (), tuple(warnings), notes=tuple(notes), data=data
        )
        return Outcome(OutcomeState.DONE, said.sentence, done=said)

    return bound(
        spec, opened, preview, perform, narrowed=decider(spec), offered=_can_start(opened)
    )  # fmt: skip


def _can_start(opened: Whole) -> bool:
    begun = (opened.root / STATE).exists()
    if (
        not opened.its_own
        or begun
        or own_writes.interrupted(opened.root, own_writes.COORDINATOR_HOME)
    ):
        return False
    try:
        read_plan(opened.root)
    except (Refused, OSError):
        return False
    return True


def _configuration(root: Path, values: Values) -> tuple[Object | None, Plan | None]:
    """The configuration that is to be written first, with what it says; none where none is.

    Raises:
        Refused: it is not sound, or there is one already.
    """
    if values.repositories:
        barriers = values.barriers or initiative_configuring.BARRIERS
        wish = initiative_configuring.Wish(values.repositories, barriers, values.description)
        return initiative_configuring.planned(root, wish)
    if values.barriers or values.description:
        raise Refused("--barrier and --description need a new configuration (--repo)")
    return None, None


def _written(root: Path, config: Object | None) -> tuple[Change, ...]:
    if config is None:
        return ()
    return (Change(safe(str(root / MULTI_CONFIG)), "create", difference(b"", document(config))),)


def coordination(context: Context, now: datetime) -> Action:
    """Let the coordinator check all workstreams."""
    opened = whole(context)
    if not opened.its_own:
        return handed(table_initiative.COORDINATION, opened, ("multi", "step"))
    steps = Steps(
        lambda fresh, values: initiative_decide.prepare_step(fresh, utc_now()),
        lambda values: initiative_decide.step(opened.root, utc_now()),
        human=False,
    )
    offered = opened.opened is not None and opened.initiative.status != "completed"
    return of_initiative(table_initiative.COORDINATION, opened, steps, offered=offered)


def _gates(opened: Whole) -> list[str]:
    """The barriers whose gates are open, with everybody still there."""
    if opened.opened is None:
        return []
    record, plan = opened.initiative.record, opened.opened.plan
    reached = [each.name for each in plan.barriers if record.barrier(each.name).status == REACHED]
    return [each for each in reached if not left(opened.initiative, each)]


def _barrier(gates: Sequence[str]) -> dict[str, Any]:
    return {"choices": tuple(gates), "default": gates[0]} if gates else {}


def _decision(values: Values) -> Decision:
    return Decision(values.barrier, who(values.by), values.comment)


def approval(context: Context, now: datetime) -> Action:
    """Approve a cross-repo gate; offered while one is open."""
    opened = whole(context)
    if not opened.its_own:
        waits = bool(opened.initiative.pending)
        return handed(table_initiative.APPROVAL, opened, ("multi", "approve-gate"), asked=waits)
    gates = _gates(opened)
    steps = Steps(
        lambda fresh, values: initiative_decide.prepare_approval(
            fresh, _decision(values), utc_now()
        ),
        lambda values: initiative_decide.approve(opened.root, _decision(values), utc_now()),
    )
    first = gates[0] if gates else "a cross-repo gate"
    return of_initiative(
        table_initiative.APPROVAL, opened, steps,
        narrowed={"barrier": _barrier(gates)},
        label=f"Approve {first}",
        sentence=f"Open the cross-repo gate {first}: all workstreams cross it at once.",
        offered=bool(gates),
    )  # fmt: skip


def rejection(context: Context, now: datetime) -> Action:
    """Reject a cross-repo gate; offered while one is open."""
    opened = whole(context)
    gates = _gates(opened)

    def names(values: Values) -> list[str]:
        return [each for each in values.workstream if each != _ALL]

    steps = Steps(
        lambda fresh, values: initiative_decide.prepare_rejection(
            fresh, _decision(values), names(values), utc_now()
        ),
        lambda values: initiative_decide.reject(
            opened.root, _decision(values), names(values), utc_now()
        ),
    )
    first = gates[0] if gates else "a cross-repo gate"
    return of_initiative(
        table_initiative.REJECTION, opened, steps,
        narrowed={"barrier": _barrier(gates)},
        label=f"Reject {first}",
        sentence=f"Send workstreams from {first} back to work in their phase.",
        offered=bool(gates) and all(map(_is_readable, opened.initiative.workstreams)),
    )  # fmt: skip


def _is_readable(stream: Workstream) -> bool:
    """Whether a workstream can be sent back to work."""
    return stream.run is not None and not stream.run.state.reason


def resyncing(context: Context, now: datetime) -> Action:
    """Go on after what failed was mended; offered where something failed."""
    opened = whole(context)
    if not opened.its_own:
        return handed(table_initiative.RESYNC, opened, ("multi", "resync"))
    steps = Steps(
        lambda fresh, values: initiative_decide.prepare_resync(fresh, utc_now()),
        lambda values: initiative_decide.synchronise(opened.root, utc_now()),
        crosses=True,
    )
    needed = opened.opened is not None and _needs_resync(opened.opened)
    return of_initiative(table_initiative.RESYNC, opened, steps, offered=needed)


def _needs_resync(opened: Opened) -> bool:
    left = own_writes.interrupted(opened.root, own_writes.COORDINATOR_HOME)
    failed = opened.initiative.status == RESYNC_FAILED
    return left is not None or failed or initiative_resync.owed(opened) is not None


def mending(context: Context, now: datetime) -> Action:
    """Make a workstream's lost state again; offered where one is lost."""
    opened = whole(context)
    names = initiative_repair.mendable(opened.opened) if opened.opened else []
    choice = {"choices": tuple(names), "default": names[0], "required": False} if names else {}
    steps = Steps(
        lambda fresh, values: initiative_repair.prepare_mending(
            fresh, values.workstream, who(values.by), utc_now()
        ),
        lambda values: initiative_decide.mend(
            opened.root, values.workstream, who(values.by), utc_now()
        ),
    )
    return of_initiative(
        table_initiative.MENDING, opened, steps,
        narrowed={"workstream": choice},
        label=f"Repair {names[0]}" if names else "", offered=bool(names),
    )  # fmt: skip


def mending_state(context: Context, now: datetime) -> Action:
    """Make the coordinator's lost state again; offered where it is lost."""
    opened, spec = whole(context), table_initiative.MENDING_STATE
    root = opened.root

    def preview(values: Values) -> Preview:
        refuse_agents()
        return preview_of(spec, root, initiative_rebuild.prepare(root, who(values.by), utc_now()))

    def perform(values: Values) -> Outcome:
        refuse_agents()
        return ended(spec, root, initiative_rebuild.mend(root, who(values.by), utc_now()))

    lost = not initiatives.why_state_cannot_be_rebuilt(opened.initiative)
    return bound(spec, opened, preview, perform, narrowed=decider(spec), offered=lost)


def trusting(context: Context, now: datetime) -> Action:
    """Let the scripts run that the configuration names; offered where one may not."""
    opened, spec = whole(context), table_initiative.TRUST_HOOKS
    root = opened.root

    def preview(values: Values) -> Preview:
        refuse_agents()
        hooks = read_plan(root).hooks
        changes = tuple(
            Change(safe(hook.path), "start", safe(f"{hook.name}: {_digest(root, hook.path)}"))
            for hook in hooks
        )
        scripts = {hook.path: initiative_trust.digest(root, hook.path) for hook in hooks}
        data = facts(spec, opened.key, dry_run=True, scripts=scripts)
        return Preview("Allow these scripts in their present form.", changes, data=data)

    def perform(values: Values) -> Outcome:
        refuse_agents()
        paths = tuple(hook.path for hook in read_plan(root).hooks)
        found = initiative_trust.trust(root, paths)
        scripts = {path: initiative_trust.digest(root, path) for path in paths}
        said = f"{len(found)} of {len(scripts)} scripts are allowed."
        return done(spec, opened.key, said, scripts=scripts, trusted=found)

    hooks = opened.opened.plan.hooks if opened.opened else ()
    unknown = any(not initiative_trust.is_trusted(root, each.path) for each in hooks)
    return bound(spec, opened, preview, perform, offered=unknown)


def _digest(root: Path, path: str) -> str:
    seen = initiative_trust.digest(root, path)
    return f"sha256 {seen[:16]}" if seen else "is missing"
