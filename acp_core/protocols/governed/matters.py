"""What a run or an initiative waits for, and why it does not go on although its files are sound.

Who is waited for, to do what; turns that say nothing; cross-repo gates, and workstreams that lag.
What is wrong in the files is found by the rules. Source: governed protocol specification,
"Commands" (a turn ends with its staged result), "Invariant 1" and "Invariant 2".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.model import Matter, Turn
from acp_core.model.matter import OWNER, TIME, About, Verdict, verdicts
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read import initiative as read_initiative
from acp_core.protocols.governed.read.initiative import OWN, Barrier, Initiative, Workstream
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Pending, Run
from acp_core.protocols.governed.rules import initiatives
from acp_core.protocols.governed.rules.findings import gate_need
from acp_core.protocols.governed.rules.initiatives import CROSSED, RESYNC_FAILED
from acp_core.protocols.governed.schema import (
    APPROVE_BARRIER,
    COORDINATE,
    REJECT,
    REJECT_BARRIER,
    YOU,
    CoordinatorLine,
    LedgerLine,
    blocked_by,
    decode,
    gate_called,
)

if TYPE_CHECKING:
    from acp_core.protocols.kit.diagnosis import DiagnosisContext


def run_causes(run: Run, case: DiagnosisContext) -> Iterator[Matter]:
    """Turns without a deadline that take longer than usual, and of which no process is known; a barrier."""
    if barrier := run.record.barrier:
        yield Matter(
            "D7",
            f"The run continues once its initiative has crossed {barrier}",
            instruction="see the initiative: its other workstreams, or who approves the barrier",
            move=TIME,
            key=f"D7:{barrier}",
        )
    if run.status != "active":
        return
    for turn in run.turns:
        if _is_quiet(turn) and case.stalled(turn.role, turn.since, case.patience.unmanaged):
            yield Matter(
                "B5",
                f"The turn of {turn.role} takes longer than usual; no result is staged",
                instruction="Check on the agent, or reject the turn to reassign it",
                evidence=(
                    f"{turn.id}, attempt {turn.attempt}, is {turn.status or 'without a status'}",
                    "the turn has no deadline, and acp knows no process working on it",
                ),
                certain=False,
                verdicts=(Verdict(REJECT),),
                about=About(participant=turn.role or None),
                since=turn.since,
                key=f"B5:TURN_QUIET:{turn.id}:{turn.attempt}",
            )


def _is_quiet(turn: ActiveTurn) -> bool:
    """Whether no rule says anything of it: a program that is gone, or a deadline, is told there."""
    known = turn.running or turn.lost or turn.staged or turn.deadline is not None
    return turn.bundle and not known and turn.status in AT_WORK and turn.status != "retrying"


PATIENCE = 1_800.0  # seconds that the others may wait for a workstream before it lags


def initiative_causes(initiative: Initiative, case: DiagnosisContext) -> Iterator[Matter]:
    """Every cause, those that a human ends first."""
    if initiative.status in (initiatives.COMPLETED, "unreadable", "absent"):
        return
    if initiative.status.startswith("blocked"):
        return
    yield from _gate_causes(initiative)
    if initiative.layout != OWN:
        return
    yield from _unseen_causes(initiative)
    yield from _lagging_causes(initiative, case)


def _gate_causes(initiative: Initiative) -> Iterator[Matter]:
    pending = initiative.pending
    if pending is None:
        return
    if gone := initiatives.left(initiative, pending.gate):
        yield Matter(
            "D10",
            f"The coordinator has not noticed that {', '.join(gone)} left {pending.gate}",
            instruction="Let the coordinator check all workstreams",
            verdicts=(Verdict(COORDINATE),),
            key=f"D10:{pending.gate}:left:{','.join(gone)}",
            explains=(gate_need(pending).key,),
        )
        return
    own = initiative.layout == OWN
    named = gate_called(pending.gate)
    headline = f"All workstreams are at {named}; its cross-repo gate needs your approval"
    yield Matter(
        "D9",
        headline if own else f"The cross-repo gate {named} needs your approval",
        instruction="Approve it, or send workstreams back to work with a comment"
        if own
        else "Approve it with the agentxchain program: agentxchain multi approve-gate",
        evidence=tuple(f"{each.name} is {each.status}" for each in initiative.workstreams[:20]),
        verdicts=verdicts(
            APPROVE_BARRIER if own or existing_program.is_there() else None,
            (("barrier", pending.gate),) if own else (),
            (REJECT_BARRIER,) if own else (),
        ),
        about=About(participant=YOU),
        since=pending.since,
        key=f"D9:{pending.gate}:{pending.since}",
        explains=(gate_need(pending).key,),
    )


def _unseen_causes(initiative: Initiative) -> Iterator[Matter]:
    """Workstreams that wait for the coordinator, which nobody let look at them."""
    for barrier in initiative.barriers:
        if barrier.status in (initiatives.APPROVED, initiatives.REACHED):
            continue
        asking = [s for s in initiative.workstreams if _asks(s, barrier)]
        new = [stream.name for stream in asking if stream.name not in barrier.reached]
        if new:
            said = "all workstreams" if len(asking) == len(barrier.required) else ", ".join(new)
            yield Matter(
                "D10",
                f"The coordinator has not noticed that {said} reached {barrier.name}",
                instruction="Let the coordinator check all workstreams",
                verdicts=(Verdict(COORDINATE),),
                key=f"D10:{barrier.name}:{','.join(new)}",
            )


def _asks(stream: Workstream, barrier: Barrier) -> bool:
    run = stream.readable
    if run is None or run.phase != barrier.phase:
        return False
    if read_initiative.held_at(run.state.value) == barrier.name:
        return True
    return read_initiative.barrier_request(run) is not None and read_initiative.has_worked(run)


def _lagging_causes(initiative: Initiative, case: DiagnosisContext) -> Iterator[Matter]:
    """Those for whom the others have been waiting at a barrier for long."""
    arrived = _arrivals(initiative)
    for barrier in initiative.barriers:
        waiting = [each for each in barrier.required if each in barrier.reached]
        if barrier.status == initiatives.APPROVED or not waiting:
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
            yield Matter("D7", f"{', '.join(waiting)}: waiting at {barrier.name} for {stream.name}", instruction=f"{stream.name}: {turn.what}".replace(f"{stream.name}: {stream.name}: ",
                                                     f"{stream.name}: "), move=OWNER if yours else TIME, evidence=(f"{stream.name} is {stream.status} in {stream.phase}", duty), about=About(participant=stream.name), since=since, key=f"D7:{barrier.name}:{stream.name}",)  # fmt: skip


def _arrivals(initiative: Initiative) -> dict[tuple[str, str], datetime]:
    """When each workstream reached each barrier, as the ledger tells it last."""
    found: dict[tuple[str, str], datetime] = {}
    for each in initiative.ledger.lines:
        line = decode(CoordinatorLine, each.value)
        if line.type == "workstream_at_barrier" and line.at is not None:
            found[line.barrier, line.workstream] = line.at
    return found


_TO_DECIDE = {
    "failed_start": "dispatch the turn of {} again: it failed to start",
    "stalled": "dispatch the turn of {} again: it has stalled",
    "failed_acceptance": "correct or reject the result of {}",
    "failed": "decide how to proceed after the last attempt of {}",
}
"""What you are to do about a turn that came to nothing, by its status."""


def run_waiting(run: Run) -> tuple[Turn, ...]:
    """Who is waited for, to do what: you wherever a gate, a result or a block waits."""
    if run.status in ("completed", "unreadable") or run.record.barrier:
        return ()
    if run.pending is not None:
        return (gate_turn(run.pending),)
    found = [_waits_for(turn) for turn in run.turns]
    if run.status == "blocked":
        block, blocks = (
            run.record.block,
            f"resolve what blocks the run: {blocked_by(run.state.value)}",
        )
        what = block.action or blocks
        if block.action and block.action == block.reason:
            # it says what happened, not what to do
            what = found[0].what if found else blocks
        what = what[:1].lower() + what[1:]
        return (Turn(YOU, what, block.since),)
    if found:
        return tuple(found)
    if run.status == "paused":
        return (Turn(YOU, "unblock the run: it is paused without a pending gate"),)
    if run.status in ("idle", "absent"):
        return (Turn(YOU, "start the run"),)
    role = run.record.next_role or run.settings.route(run.phase).entry_role
    what = f"dispatch the next turn{f' to {role}' if role and role != 'human' else ''}"
    return (Turn(YOU, what, idle_since(run)),)


def _waits_for(turn: ActiveTurn) -> Turn:
    if turn.status == "retrying" or (turn.lost and turn.status in AT_WORK and not turn.staged):
        return Turn(YOU, f"reassign the turn of {turn.role}", turn.since)
    if turn.status == "conflicted":
        return Turn(YOU, f"resolve the conflict of the turn of {turn.role}", turn.since)
    if turn.status in AT_WORK and not turn.staged:
        return Turn(
            turn.role or "an unknown role", "take its turn and stage the result", turn.since
        )
    if turn.staged:
        return Turn(YOU, f"accept or reject the staged result of {turn.role}", turn.since)
    what = _TO_DECIDE.get(turn.status, "decide about the turn of {}")
    return Turn(YOU, what.format(turn.role), turn.since)


def idle_since(run: Run) -> datetime | None:
    """Since when nobody has a turn: the last turn was accepted, or a human let the run go on."""
    times = [run.record.phase_entered_at]
    times += [turn.at for turn in run.accepted[-1:]]
    for line in reversed(run.ledger.lines):
        if goes_on(line.value):
            times.append(decode(LedgerLine, line.value).at)
            break
    return max((at for at in times if at is not None), default=None)


def gate_turn(pending: Pending) -> Turn:
    """You are waited for at a gate."""
    to = f"to {pending.to}" if pending.to else "and the end of this phase"
    what = f"approve or reject the gate {gate_called(pending.gate)} {to}"
    return Turn(YOU, what, pending.since)


def initiative_waiting(initiative: Initiative) -> tuple[Turn, ...]:
    """Who is waited for: you at a cross-repo gate or a block, else the workstreams."""
    if initiative.status in ("completed", "unreadable"):
        return ()
    if initiative.status.startswith("blocked"):
        what = "resolve what blocks the initiative"
        if initiative.status == RESYNC_FAILED:
            what = "fix what stops the workstreams from crossing, then resync"
        elif initiative.status == CROSSED:
            what = "bring back the workstream that crossed a barrier unapproved"
        return (Turn(YOU, what),)
    pending = initiative.pending
    if pending is not None:
        named = gate_called(pending.gate)
        what = f"approve or reject the cross-repo gate {named}, which ends {pending.phase}"
        return (Turn(YOU, what, pending.since),)
    if initiative.status == "absent":
        return (Turn(YOU, "start the initiative"),)
    found = []
    for stream in initiative.workstreams:
        found += _stream_waiting(initiative, stream)
    if not found and initiative.layout == OWN:
        return (Turn(YOU, "let the coordinator check who reached a barrier"),)
    on = "let the initiative take its next step"
    return tuple(found) or (Turn(YOU, on if existing_program.is_there() else f"{on}{ELSEWHERE}"),)


def first_turn(initiative: Initiative, stream: Workstream) -> Turn | None:
    """What a workstream waits for, None where it waits at a barrier or is over."""
    return next(iter(_stream_waiting(initiative, stream)), None)


def _stream_waiting(initiative: Initiative, stream: Workstream) -> list[Turn]:
    run, own = stream.readable, initiative.layout == OWN
    if run is None:
        return [Turn(YOU, f"repair the state of {stream.name}")]
    if stream.status in ("blocked:barrier", "completed"):
        return []
    ends = {barrier.phase: barrier for barrier in initiative.barriers}
    if own and run.pending and ends.get(run.phase):
        what = f"step the coordinator: {stream.name} asks to leave {run.phase}"
        return [Turn(YOU, what, run.pending.since)]
    if not (own or run.pending or run.turns or run.status == "blocked"):
        return []
    found = []
    for turn in run_waiting(run):
        who = YOU if turn.participant == YOU else stream.name
        what = f"{stream.name}: {turn.what}" if who == YOU else turn.what
        found.append(Turn(who, what, turn.since))
    return found


ELSEWHERE = " with the agentxchain program, which is not installed"


def goes_on(line: schema.Object) -> bool:
    """Whether a line of the ledger says that a human let the run go on."""
    kind = line.get("type")
    return kind in ("gate_approved", "gate_rejected") or line.get("decision") == ESCALATION_RESOLVED


ESCALATION_RESOLVED = "escalation_resolved"
"""What the ledger calls it that a human resolved what had blocked the run."""
