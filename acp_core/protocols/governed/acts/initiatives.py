"""What a human can do in an initiative, bound to it, and its commands that say more than one act.

The descriptions stand in the table. A poll goes on until the initiative is over or somebody
interrupts it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from acp_core.model.action import Action, Change, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import Answer
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.common import (
    Whole,
    decider,
    done,
    ended,
    facts,
    handed,
    is_possible,
    of_initiative,
    preview_of,
    whole,
)
from acp_core.protocols.governed.acts.table import SCHEMA
from acp_core.protocols.governed.matters import first_turn
from acp_core.protocols.governed.read import initiative as initiative_module
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.initiative import (
    Initiative,
    Plan,
    read_initiative,
    read_plan,
)
from acp_core.protocols.governed.rules import guard, initiatives
from acp_core.protocols.governed.rules.initiatives import REACHED, RESYNC_FAILED, failure, left
from acp_core.protocols.governed.schema import MULTI_CONFIG, Object, objects
from acp_core.protocols.governed.write import hooks as write_hooks
from acp_core.protocols.governed.write import init, initiative_decide
from acp_core.protocols.governed.write.init import agents_of
from acp_core.protocols.governed.write.initiative_decide import Decision, StepOutcome
from acp_core.protocols.governed.write.initiative_opened import (
    STATE,
    InitiativePlan,
    OpenedInitiative,
)
from acp_core.protocols.governed.write.opened import json_document, refuse_agents, who
from acp_core.protocols.kit.binding import Context, bound
from acp_core.protocols.kit.command import perform
from acp_core.protocols.kit.command_line import say, warn
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import difference, safe

_ALL = "all"  # how an earlier form called all workstreams


def starting(context: Context, now: datetime) -> Action:
    """Start the initiative; offered where it is configured and was not begun."""
    opened, spec = whole(context), table.STARTING
    root = opened.root

    def preview(values: Values) -> Preview:
        refuse_agents()
        config, plan = _configuration(root, values)
        initiative = init.prepare(root, agents_of(values.agents), plan)
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
        initiative = init.prepare(root, agents, plan)
        if config is not None:
            init.write_configuration(root, config)
        done = init.create(initiative, by, utc_now(), agents)
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
    """Whether it is configured and was not begun."""
    begun = (opened.root / STATE).exists()
    left = own_writes.interrupted(opened.root, own_writes.COORDINATOR_HOME)
    new = opened.its_own and not begun and not left
    return new and is_possible(lambda: read_plan(opened.root))


def _configuration(root: Path, values: Values) -> tuple[Object | None, Plan | None]:
    """The configuration that is to be written first, with what it says; none where none is.

    Raises:
        Refused: it is not sound, or there is one already.
    """
    if values.repositories:
        barriers = values.barriers or init.DEFAULT_BARRIERS
        wish = init.InitiativeWish(values.repositories, barriers, values.description)
        return init.planned_initiative(root, wish)
    if values.barriers or values.description:
        raise Refused("--barrier and --description need a new configuration (--repo)")
    return None, None


def _written(root: Path, config: Object | None) -> tuple[Change, ...]:
    if config is None:
        return ()
    return (
        Change(safe(str(root / MULTI_CONFIG)), "create", difference(b"", json_document(config))),
    )


def coordination(context: Context, now: datetime) -> Action:
    """Let the coordinator check all workstreams."""
    opened = whole(context)
    if not opened.its_own:
        return handed(table.COORDINATION, opened, ("multi", "step"))
    offered = opened.opened is not None and opened.initiative.status != "completed"
    return of_initiative(
        table.COORDINATION, opened,
        lambda fresh, values: initiative_decide.plan_step(fresh, utc_now()),
        human=False, offered=offered,
    )  # fmt: skip


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
        return handed(table.BARRIER_APPROVAL, opened, ("multi", "approve-gate"), asked=waits)
    gates = _gates(opened)
    first = gates[0] if gates else "a cross-repo gate"
    return of_initiative(
        table.BARRIER_APPROVAL, opened,
        lambda fresh, values: initiative_decide.plan_approval(fresh, _decision(values), utc_now()),
        crosses=True,
        narrowed={"barrier": _barrier(gates)},
        label=f"Approve {first}",
        sentence=f"Open the cross-repo gate {first}: all workstreams cross it at once.",
        offered=bool(gates),
    )  # fmt: skip


def rejection(context: Context, now: datetime) -> Action:
    """Reject a cross-repo gate; offered while one is open."""
    opened = whole(context)
    gates = _gates(opened)

    def plan(fresh: OpenedInitiative, values: Values) -> InitiativePlan:
        names = [each for each in values.workstream if each != _ALL]
        return initiative_decide.plan_rejection(fresh, _decision(values), names, utc_now())

    first = gates[0] if gates else "a cross-repo gate"
    return of_initiative(
        table.BARRIER_REJECTION, opened, plan,
        narrowed={"barrier": _barrier(gates)},
        label=f"Reject {first}",
        sentence=f"Send workstreams from {first} back to work in their phase.",
        offered=bool(gates) and all(each.readable for each in opened.initiative.workstreams),
    )  # fmt: skip


def resyncing(context: Context, now: datetime) -> Action:
    """Go on after what failed was mended; offered where something failed."""
    opened = whole(context)
    if not opened.its_own:
        return handed(table.RESYNC, opened, ("multi", "resync"))
    needed = opened.opened is not None and _needs_resync(opened.opened)
    return of_initiative(
        table.RESYNC, opened,
        lambda fresh, values: initiative_decide.plan_resync(fresh, utc_now()),
        crosses=True, whole_or_nothing=True, offered=needed,
    )  # fmt: skip


def _needs_resync(opened: OpenedInitiative) -> bool:
    left = own_writes.interrupted(opened.root, own_writes.COORDINATOR_HOME)
    failed = opened.initiative.status == RESYNC_FAILED
    return left is not None or failed or initiative_decide.owed_barrier(opened) is not None


def mending(context: Context, now: datetime) -> Action:
    """Make a workstream's lost state again; offered where one is lost."""
    opened = whole(context)
    names = initiative_decide.mendable(opened.opened) if opened.opened else []
    choice = {"choices": tuple(names), "default": names[0], "required": False} if names else {}

    def plan(fresh: OpenedInitiative, values: Values) -> InitiativePlan:
        return initiative_decide.plan_mending(fresh, values.workstream, who(values.by), utc_now())

    return of_initiative(
        table.MENDING, opened, plan,
        narrowed={"workstream": choice},
        label=f"Repair {names[0]}" if names else "", offered=bool(names),
    )  # fmt: skip


def mending_state(context: Context, now: datetime) -> Action:
    """Make the coordinator's lost state again; offered where it is lost."""
    opened, spec = whole(context), table.MENDING_STATE
    root = opened.root

    def preview(values: Values) -> Preview:
        refuse_agents()
        return preview_of(spec, root, initiative_decide.plan_state(root, who(values.by), utc_now()))

    def perform(values: Values) -> Outcome:
        refuse_agents()
        return ended(spec, root, initiative_decide.mend_state(root, who(values.by), utc_now()))

    lost = not initiatives.why_state_cannot_be_rebuilt(opened.initiative)
    return bound(spec, opened, preview, perform, narrowed=decider(spec), offered=lost)


def trusting(context: Context, now: datetime) -> Action:
    """Let the scripts run that the configuration names; offered where one may not."""
    opened, spec = whole(context), table.TRUST_HOOKS
    root = opened.root

    def preview(values: Values) -> Preview:
        refuse_agents()
        hooks = read_plan(root).hooks
        changes = tuple(
            Change(safe(hook.path), "start", safe(f"{hook.name}: {_digest(root, hook.path)}"))
            for hook in hooks
        )
        scripts = {hook.path: write_hooks.script_digest(root, hook.path) for hook in hooks}
        data = facts(spec, opened.key, dry_run=True, scripts=scripts)
        return Preview("Allow these scripts in their present form.", changes, data=data)

    def perform(values: Values) -> Outcome:
        refuse_agents()
        paths = tuple(hook.path for hook in read_plan(root).hooks)
        found = write_hooks.trust_scripts(root, paths)
        scripts = {path: write_hooks.script_digest(root, path) for path in paths}
        said = f"{len(found)} of {len(scripts)} scripts are allowed."
        return done(spec, opened.key, said, scripts=scripts, trusted=found)

    hooks = opened.opened.plan.hooks if opened.opened else ()
    unknown = any(not write_hooks.is_script_trusted(root, each.path) for each in hooks)
    return bound(spec, opened, preview, perform, offered=unknown)


def _digest(root: Path, path: str) -> str:
    seen = write_hooks.script_digest(root, path)
    return f"sha256 {seen[:16]}" if seen else "is missing"


def poll(values: Values) -> int:
    """Step whenever something changed; the exit code."""
    if values.dry_run:
        spec = table.COORDINATION._replace(command=table.POLLING.command)
        return perform(SCHEMA, "poll", spec, values)
    root = Path(os.path.abspath(values.folder))
    for outcome in initiative_decide.poll(root, every=values.every or initiative_decide.EVERY):
        _say(outcome, as_json=values.json)
        sys.stdout.flush()
    return 0


def _say(done: StepOutcome, *, as_json: bool) -> None:
    if as_json:
        say_object(SCHEMA, "poll", verb="poll", done=True, steps=done.messages, failed=done.failed,
                   warnings=done.warnings)  # fmt: skip
        return
    for line in done.messages:
        say(line)
    for each in (*done.warnings, *(f"failed: {outcome}" for outcome in done.failed)):
        warn(each)


def trust_hooks(values: Values) -> int:
    """Show the scripts, ask, and let them run; the exit code."""
    refuse_agents()
    root = Path(os.path.abspath(values.folder))
    hooks = read_plan(root).hooks
    scripts = {hook.path: write_hooks.script_digest(root, hook.path) for hook in hooks}
    if not values.json:
        for hook in hooks:
            say(f"{hook.name}: {hook.path} {scripts[hook.path][:12] or 'is not there'}")
    if scripts:
        return perform(SCHEMA, "trust-hooks", table.TRUST_HOOKS, values)
    if values.json:
        outcome = facts(table.TRUST_HOOKS, str(root), dry_run=values.dry_run, scripts=scripts)
        say_object(SCHEMA, "trust-hooks", done=False, **outcome)
    else:
        say("the configuration names no scripts")
    return 0


def initiative_status(values: Values) -> Answer:
    """Where the initiative stands."""
    root = Path(os.path.abspath(values.folder))
    initiative = read_initiative(root)
    if initiative.config.missing and initiative.state.missing:
        raise Refused(f"no initiative in {root}: write agentxchain-multi.json first")
    return Answer({"verb": "status", **described(initiative)}, tuple(lines(initiative)))


def described(initiative: Initiative) -> Object:
    """Everything about an initiative, as JSON."""
    state = initiative.state.value
    left = own_writes.interrupted(initiative.root, own_writes.COORDINATOR_HOME)
    blocked = initiative.status == RESYNC_FAILED
    return {
        "folder": str(initiative.root),
        "super_run_id": state.get("super_run_id"),
        "status": initiative.status,
        "gate": initiative.pending.gate if initiative.pending else None,
        "barriers": objects(state.get("barriers")),
        "workstreams": {
            stream.name: {
                "path": stream.path,
                "run_id": stream.run.state.value.get("run_id") if stream.run else None,
                "phase": stream.phase,
                "status": stream.status,
                "barrier": initiative_module.held_at(stream.run.state.value) if stream.run else "",
                "failure": failure(stream),
            }
            for stream in initiative.workstreams
        },
        "resync_failures": [each._asdict() for each in initiatives.resync_failures(initiative)]
        if blocked
        else [],
        "interrupted": left.what if left else None,
        "obstacles": [
            {"sentence": each.sentence, "cure": each.instruction}
            for each in guard.of_initiative(initiative)
        ],
    }


def lines(initiative: Initiative) -> Iterator[str]:
    """The same for people."""
    name = initiative.record.super_run_id or initiative.root.name
    obstacles = guard.of_initiative(initiative)
    lost = initiative.state.missing and bool(obstacles)
    yield f"{name}: {'lost' if lost else initiative.status}"
    for obstacle in obstacles:
        yield f"  error: {obstacle.sentence}: {obstacle.instruction}"
    left = own_writes.interrupted(initiative.root, own_writes.COORDINATOR_HOME)
    if left:
        yield (
            f"interrupted: {left.what} ({left.done} of {left.total} files written); the next "
            "command finishes it"
        )
    for stream in initiative.workstreams:
        reason = failure(stream)
        where = f"{stream.phase or 'no phase'}: {stream.status}"
        turn = first_turn(initiative, stream)
        waits = (
            f"; {turn.participant}: {turn.what.removeprefix(f'{stream.name}: ')}" if turn else ""
        )
        yield f"  {stream.name:<20} {where}" + (f" ({reason})" if reason else waits)
    for barrier in () if initiative.state.reason and obstacles else initiative.barriers:
        missing = ", ".join(n for n in barrier.required if n not in barrier.reached)
        word = barrier.status + (f"; missing: {missing}" if missing else "")
        yield f"  barrier {barrier.name} (ends {barrier.phase}): {word}"
    if initiative.status == RESYNC_FAILED:
        for problem in initiatives.resync_failures(initiative):
            yield f"  resync failed: {problem.workstream} {problem.reason}"
        yield "fix this, then run: acp governed coordinator resync"
    elif initiative.pending:
        gate = initiative.pending.gate
        yield f"the gate of {gate} needs your approval: acp governed coordinator approve-barrier"
