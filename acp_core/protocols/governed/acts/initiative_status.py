"""An initiative as text and as JSON, for `acp governed coordinator status`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from acp_core.model.action_spec import Answer
from acp_core.model.errors import Refused
from acp_core.protocols.governed.read import initiative as initiative_module
from acp_core.protocols.governed.read import own_writes
from acp_core.protocols.governed.read.initiative import Initiative, read_initiative
from acp_core.protocols.governed.rules import guard, initiative_reconcile
from acp_core.protocols.governed.rules.initiative_reconcile import RESYNC_FAILED, failure
from acp_core.protocols.governed.schema import Object, objects
from acp_core.protocols.governed.view.initiative import first_turn
from acp_core.protocols.kit.values import Values


def status(values: Values) -> Answer:
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
        "resync_failures": [
            each._asdict() for each in initiative_reconcile.resync_failures(initiative)
        ]
        if blocked
        else [],
        "interrupted": left.what if left else None,
        "obstacles": [
            {"sentence": each.sentence, "cure": each.cure}
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
        yield f"  error: {obstacle.sentence}: {obstacle.cure}"
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
        for problem in initiative_reconcile.resync_failures(initiative):
            yield f"  resync failed: {problem.workstream} {problem.reason}"
        yield "fix this, then run: acp governed coordinator resync"
    elif initiative.pending:
        gate = initiative.pending.gate
        yield f"the gate of {gate} needs your approval: acp governed coordinator approve-barrier"
