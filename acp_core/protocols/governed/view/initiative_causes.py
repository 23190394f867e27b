"""Why an initiative does not go on although nothing in its files is wrong: gates and laggards.

Source: governed protocol specification, "Invariant 1" and "Invariant 2". What is wrong in the files
is found by the rules.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from acp_core.model import Cause
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read import initiative as read_initiative
from acp_core.protocols.governed.read.initiative import OWN, Barrier, Initiative, Workstream
from acp_core.protocols.governed.rules import initiative_reconcile
from acp_core.protocols.governed.rules.findings import gate_need
from acp_core.protocols.governed.schema import (
    APPROVE_BARRIER,
    COORDINATE,
    REJECT_BARRIER,
    YOU,
    CoordinatorLine,
    decode,
    gate_called,
)
from acp_core.protocols.governed.view.initiative import first_turn
from acp_core.protocols.kit.diagnosis import Case

PATIENCE = 1_800.0  # seconds that the others may wait for a workstream before it lags


def causes(initiative: Initiative, case: Case) -> Iterator[Cause]:
    """Every cause, those that a human ends first."""
    if initiative.status in (initiative_reconcile.COMPLETED, "unreadable", "absent"):
        return
    if initiative.status.startswith("blocked"):
        return
    yield from _gate(initiative)
    if initiative.layout != OWN:
        return
    yield from _unseen(initiative)
    yield from _lagging(initiative, case)


def _gate(initiative: Initiative) -> Iterator[Cause]:
    pending = initiative.pending
    if pending is None:
        return
    if gone := initiative_reconcile.left(initiative, pending.gate):
        yield Cause(
            "D10",
            f"The coordinator has not noticed that {', '.join(gone)} left {pending.gate}",
            "Let the coordinator check all workstreams",
            remedy=COORDINATE,
            key=f"D10:{pending.gate}:left:{','.join(gone)}",
            explains=(gate_need(pending).key,),
        )
        return
    own = initiative.layout == OWN
    named = gate_called(pending.gate)
    headline = f"All workstreams are at {named}; its cross-repo gate needs your approval"
    yield Cause(
        "D9",
        headline if own else f"The cross-repo gate {named} needs your approval",
        "Approve it, or send workstreams back to work with a comment"
        if own
        else "Approve it with the agentxchain program: agentxchain multi approve-gate",
        tuple(f"{each.name} is {each.status}" for each in initiative.workstreams[:20]),
        remedy=APPROVE_BARRIER if own or existing_program.is_there() else None,
        given=(("barrier", pending.gate),) if own else (),
        others=(REJECT_BARRIER,) if own else (),
        participant=YOU,
        since=pending.since,
        key=f"D9:{pending.gate}:{pending.since}",
        explains=(gate_need(pending).key,),
    )


def _unseen(initiative: Initiative) -> Iterator[Cause]:
    """Workstreams that wait for the coordinator, which nobody let look at them."""
    for barrier in initiative.barriers:
        if barrier.status in (initiative_reconcile.APPROVED, initiative_reconcile.REACHED):
            continue
        asking = [s for s in initiative.workstreams if _asks(s, barrier)]
        new = [stream.name for stream in asking if stream.name not in barrier.reached]
        if new:
            said = "all workstreams" if len(asking) == len(barrier.required) else ", ".join(new)
            yield Cause(
                "D10",
                f"The coordinator has not noticed that {said} reached {barrier.name}",
                "Let the coordinator check all workstreams",
                remedy=COORDINATE,
                key=f"D10:{barrier.name}:{','.join(new)}",
            )


def _asks(stream: Workstream, barrier: Barrier) -> bool:
    run = stream.run
    if run is None or run.state.reason or run.phase != barrier.phase:
        return False
    if read_initiative.held_at(run.state.value) == barrier.name:
        return True
    return read_initiative.barrier_request(run) is not None and read_initiative.has_worked(run)


def _lagging(initiative: Initiative, case: Case) -> Iterator[Cause]:
    """Those for whom the others have been waiting at a barrier for long."""
    arrived = _arrivals(initiative)
    for barrier in initiative.barriers:
        waiting = [each for each in barrier.required if each in barrier.reached]
        if barrier.status == initiative_reconcile.APPROVED or not waiting:
            continue
        since = min((arrived[key] for n in waiting if (key := (barrier.name, n)) in arrived),
                    default=None)  # fmt: skip
        for stream in initiative.workstreams:
            if stream.name in barrier.reached or _asks(stream, barrier):
                continue
            turn = first_turn(initiative, stream)
            if turn is None or not case.clock.over(since, case.patience.scaled(PATIENCE)):
                continue
            yours = turn.participant == YOU
            duty = f"{turn.participant} has to {turn.what}".replace("you has", "you have")
            yield Cause(
                "D7",
                f"{', '.join(waiting)}: waiting at {barrier.name} for {stream.name}",
                f"{stream.name}: {turn.what}".replace(f"{stream.name}: {stream.name}: ",
                                                     f"{stream.name}: "),
                (f"{stream.name} is {stream.status} in {stream.phase}", duty),
                wanted=yours,
                participant=stream.name,
                since=since,
                key=f"D7:{barrier.name}:{stream.name}",
            )  # fmt: skip


def _arrivals(initiative: Initiative) -> dict[tuple[str, str], datetime]:
    """When each workstream reached each barrier, as the ledger tells it last."""
    found: dict[tuple[str, str], datetime] = {}
    for each in initiative.ledger.lines:
        line = decode(CoordinatorLine, each.value)
        if line.type == "workstream_at_barrier" and line.at is not None:
            found[line.barrier, line.workstream] = line.at
    return found
