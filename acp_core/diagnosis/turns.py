"""Why the one whose turn it is does not take it: the loop, the program, or nobody at all.

A participant that is not waited for is parked, never stalled. Of one whose process is not known
here, nobody can say that it is dead.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from acp_core.loops.acts.names import DUPLICATE, LAUNCH
from acp_core.model import Cause, Status, Turn
from acp_core.model.format import dated
from acp_core.protocols.kit.diagnosis import Case, Stranger, latest, safe_id


def causes(case: Case) -> Iterator[Cause]:
    """Every cause that lies in the participants' processes, participant after participant."""
    if case.snapshot.status is not Status.ACTIVE or not case.has_turns:
        return
    turns = list(case.agents_waited_for())
    waited = {turn.participant for turn in turns}
    if turns and _is_abandoned(case, waited):
        yield _abandoned(case, turns[0])
    else:
        for turn in turns:
            yield from _of_turn(case, turn)
    if case.loops:
        from acp_core.diagnosis import loop_turns

        yield from loop_turns.of_others(case, waited)
    for participant in case.snapshot.participants:
        cause = _duplicate(case, participant.id)
        if cause:
            yield cause


def _of_turn(case: Case, turn: Turn) -> Iterator[Cause]:
    if any(safe_id(each.participant) == turn.participant for each in case.permissions):
        return  # it waits for a person, and says so
    loop = case.loop(turn.participant)
    over = loop is None or not (loop.alive or loop.program_alive)
    if loop is None or (over and case.strangers_of(turn.participant)):
        yield from _unmanaged(case, turn)
    else:
        from acp_core.diagnosis import loop_turns

        yield from loop_turns.of_turn(case, turn, loop)


# nobody that is known here


def _unmanaged(case: Case, turn: Turn) -> Iterator[Cause]:
    strangers = case.strangers_of(turn.participant)
    waiter = next((each for each in strangers if each.waits), None)
    if waiter:
        settle = case.patience.scaled(case.patience.settle)
        born = datetime.fromtimestamp(waiter.created, case.clock.now.tzinfo)
        if case.clock.over(latest(turn.since, born), max(settle, case.patience.scaled(60.0))):
            yield _waits_wrongly(turn, waiter)
        return
    if strangers:
        if case.stalled(turn.participant, turn.since):
            yield _elsewhere(turn, strangers)
        return
    known = case.participant(turn.participant)
    first = case.snapshot.events[0].id if case.snapshot.events else None
    silent = known is None or known.last_event in (None, first)
    if silent and case.loops:
        # others have loops here: this one was forgotten
        if case.clock.over(turn.since, case.patience.scaled(2 * case.patience.settle)):
            yield _never_launched(turn)
    elif case.stalled(turn.participant, turn.since, case.patience.unmanaged):
        yield (
            _never_launched(turn)
            if silent
            else _not_managed_here(turn, known.last_seen if known else None)
        )


def _is_abandoned(case: Case, waited: set[str]) -> bool:
    """Whether nothing has happened for days, and nothing is known of anybody at work."""
    if (
        any(loop.alive or safe_id(loop.participant) in waited for loop in case.loops)
        or case.strangers
    ):
        return False
    long = case.patience.scaled(case.patience.abandoned)
    return case.clock.over(case.snapshot.changed, long)


def _unknown(
    code: str, turn: Turn, headline: str, advice: str, evidence: tuple[str, ...], about: str = ""
) -> Cause:
    name = turn.participant
    return Cause(
        code,
        headline,
        advice=advice,
        evidence=(f"waiting for {name} since {dated(turn.since)}", *evidence),
        certain=False,
        remedy=LAUNCH,
        given=(("participant", name),),
        participant=name,
        since=turn.since,
        key=f"{code}:{name}:{turn.since_event}" + (f":{about}" if about else ""),
    )


def _never_launched(turn: Turn) -> Cause:
    name = turn.participant
    return _unknown(
        "B1",
        turn,
        f"{name} was never started here and has no events yet",
        "start it, unless it runs elsewhere",
        ("acp has not started a loop for it on this machine", "the log has no event from it"),
    )


def _not_managed_here(turn: Turn, seen: datetime | None) -> Cause:
    name = turn.participant
    last = f"last seen {dated(seen)}" if seen else "never seen"
    return _unknown(
        "B14",
        turn,
        f"{name} takes longer than usual and is not run by acp here",
        "check where it runs, or start it here",
        (last, "acp knows no process for it; it may run in a terminal or on another machine"),
    )


def _elsewhere(turn: Turn, strangers: tuple[Stranger, ...]) -> Cause:
    name = turn.participant
    listed = tuple(f"process {each.pid}: {each.command}" for each in strangers)
    return _unknown(
        "B14",
        turn,
        f"{name} takes longer than usual in a process that acp did not start",
        "check the terminal where it runs",
        listed,
        ",".join(str(each.pid) for each in strangers),
    )


def _waits_wrongly(turn: Turn, waiter: Stranger) -> Cause:
    name = turn.participant
    return _unknown(
        "B10",
        turn,
        f"a process waits for {name}'s turn, although it is {name}'s turn",
        "check the terminal where it runs, or end it and start it here",
        (f"process {waiter.pid}: {waiter.command}", "acp did not start it"),
        str(waiter.pid),
    )


def _abandoned(case: Case, turn: Turn) -> Cause:
    return _unknown(
        "E9",
        turn,
        f"no activity since {dated(case.snapshot.changed)}, and no agent is running",
        "start the participant whose turn it is, or archive the collaboration",
        ("no loop runs for it on this machine",),
    )


# two who claim to be one


def _duplicate(case: Case, name: str) -> Cause | None:
    loop = case.loop(name)
    strangers = case.strangers_of(name)
    ours = loop is not None and (loop.alive or loop.program_alive)
    if len(strangers) + ours < 2:
        return None
    listed = [f"process {each.pid}, not started by acp: {each.command}" for each in strangers]
    if ours and loop is not None:
        listed.append(f"process {loop.pid}: acp's own loop, since {dated(loop.started)}")
    pids = ",".join(str(each.pid) for each in strangers)
    return Cause(
        "B13",
        f"two processes act for {name} at once",
        advice="end one of them: both would take the same turn",
        evidence=tuple(listed),
        certain=True,
        remedy=DUPLICATE,
        given=(("participant", name),),
        participant=name,
        since=min(
            (datetime.fromtimestamp(each.created, case.clock.now.tzinfo) for each in strangers),
            default=None,
        ),
        key=f"B13:{name}:{pids}",
    )
