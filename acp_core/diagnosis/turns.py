"""Why the one whose turn it is does not take it: the loop, the program, or nobody at all.

A participant that is not waited for is parked, never stalled. Of one whose process is not known
here, nobody can say that it is dead.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from acp_core.agents.state import Phase, Run, RunnerState, Saved
from acp_core.diagnosis import patterns
from acp_core.diagnosis.endings import Ending, ending
from acp_core.diagnosis.running import lingering, running
from acp_core.diagnosis.spending import nearly_over, over_budget
from acp_core.diagnosis.words import last_lines, of_run, program, where
from acp_core.loops import heartbeat
from acp_core.loops.acts.names import DUPLICATE, HAND_OVER, LAUNCH, NUDGE, RELAUNCH
from acp_core.model import Cause, Status, Turn
from acp_core.model.format import dated, moment
from acp_core.protocols.kit.diagnosis import Case, Stranger, safe_id

_TROUBLED = 86_400.0  # seconds of trouble with its model service after which a person should know


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
    for loop in case.loops:
        if loop.shown.participant not in waited:
            cause = lingering(case, loop)
            if cause:
                yield cause
    yield from nearly_over(case.loops)
    for participant in case.snapshot.participants:
        cause = _duplicate(case, participant.id)
        if cause:
            yield cause


def _of_turn(case: Case, turn: Turn) -> Iterator[Cause]:
    if any(safe_id(each.participant) == turn.participant for each in case.permissions):
        return  # it waits for a person, and says so
    loop = case.loop(turn.participant)
    if loop is None:
        yield from _unmanaged(case, turn)
    elif loop.alive:
        yield from _living(case, turn, loop)
    else:
        yield from _dead(case, turn, loop)


# a loop that lives


def _living(case: Case, turn: Turn, loop: RunnerState) -> Iterator[Cause]:
    run, phase = loop.run, loop.phase
    if phase is Phase.GAVE_UP and loop.shown.capped:
        yield over_budget(turn, loop)
    elif phase in (Phase.GAVE_UP, Phase.PAUSING):
        yield _missed(case, turn, loop)
    elif phase is Phase.RUNNING and run is not None and run.ended is None:
        belief = _believes_otherwise(case, turn, loop, run)
        if belief:
            yield belief
        else:
            yield from running(case, turn, loop, run)
    elif phase is not Phase.RUNNING and case.clock.over(
        _later(turn.since, loop.started), case.patience.scaled(case.patience.settle)
    ):
        yield _does_not_notice(turn, loop)


def _missed(case: Case, turn: Turn, loop: RunnerState) -> Cause:
    """The program ended without the turn's event; the loop pauses, or gave up."""
    name, run, shown = turn.participant, loop.run, loop.shown
    found = ending(loop, run) if run else _not_started(loop)
    gave_up = loop.phase is Phase.GAVE_UP
    overdue = not gave_up and (
        case.stalled(name, shown.retry_at)
        or (not shown.limited and case.clock.over(shown.troubled, case.patience.scaled(_TROUBLED)))
    )
    headline = f"{name}'s agent {found.words}"
    if found.kind and shown.retry_at and not (gave_up or overdue):
        again = "resumes" if shown.limited else "retries"
        failed = run.ended if run and run.ended else shown.retry_at
        headline = f"{headline}; {again} at {moment(shown.retry_at, failed)}"
    advice = found.advice if gave_up or overdue else f"wait for the next attempt, or {found.advice}"
    return Cause(
        found.code,
        headline,
        advice=advice,
        evidence=tuple(
            dict.fromkeys(
                (
                    _then(shown, gave_up),
                    *of_run(run),
                    *found.evidence,
                    *last_lines(run),
                    where(loop),
                )
            )
        ),
        certain=found.certain,
        wanted=gave_up or overdue,
        remedy=found.remedy,
        given=_given(name, found),
        others=tuple(each for each in (NUDGE, RELAUNCH, HAND_OVER) if each != found.remedy),
        participant=name,
        since=run.ended if run else shown.since,
        key=f"{found.code}:{name}:{turn.since_event}:{found.kind or (run.number if run else 0)}",
    )


def _then(shown: Saved, gave_up: bool) -> str:
    """What the loop does about it."""
    tries = f"attempt {shown.attempt}" + (f" of {shown.attempts}" if shown.attempts else "")
    if gave_up:
        return f"{tries}; the loop gave up at {dated(shown.since)} and needs you"
    if shown.limited:
        return f"the limit resets at {dated(shown.retry_at)}; the loop resumes then"
    if shown.waits:
        since = f"since {dated(shown.troubled)}"
        return f"the model service fails {since}; the loop retries at {dated(shown.retry_at)}"
    return f"{tries}; the loop retries at {dated(shown.retry_at)}"


def _given(name: str, found: Ending) -> tuple[tuple[str, str], ...]:
    who = (("participant", name),)
    return (*who, ("message", found.message)) if found.message and found.remedy == NUDGE else who


def _not_started(loop: RunnerState) -> Ending:
    return Ending(
        "B2",
        f"could not be started: {loop.shown.note}",
        "fix this, then restart it",
        RELAUNCH,
    )


def _believes_otherwise(case: Case, turn: Turn, loop: RunnerState, run: Run) -> Cause | None:
    """A program that waits by itself still waits for somebody else."""
    if loop.shown.mode != "alone" or not run.lines:
        return None
    said = patterns.WAITING.match(run.lines[-1])
    settle = case.patience.scaled(case.patience.settle)
    if said is None or not case.clock.over(_later(turn.since, run.started), settle):
        return None
    awaited = {name.strip() for name in said[1].split(",")}
    if turn.participant in awaited:
        return None
    return Cause(
        "B10",
        f"{turn.participant}'s agent still waits for {said[1]}, although it is "
        f"{turn.participant}'s turn",
        advice="restart it so that it reads the current state",
        evidence=(
            f"output: {run.lines[-1]}",
            f"log: waiting for {turn.participant} since {dated(turn.since)}",
            f"process {run.process.pid}, running since {dated(run.started)}",
            where(loop),
        ),
        certain=False,
        remedy=RELAUNCH,
        given=(("participant", turn.participant),),
        others=(NUDGE, HAND_OVER),
        participant=turn.participant,
        since=turn.since,
        key=f"B10:{turn.participant}:{turn.since_event}:{run.number}",
    )


def _does_not_notice(turn: Turn, loop: RunnerState) -> Cause:
    name = turn.participant
    note = f": {loop.shown.note}" if loop.shown.note else ""
    silent = heartbeat.silent() if loop.phase is Phase.WAITING else None
    parked = f"run {silent.cure} to resume all idle loops, or " if silent else ""
    return Cause(
        "B10",
        f"{name}'s loop has not noticed that it is {name}'s turn",
        advice=f"{parked}restart the loop",
        evidence=(
            *([silent.sentence] if silent else ()),
            f"loop process {loop.pid} is {loop.phase.value}{note}",
            f"log: waiting for {name} since {dated(turn.since)}",
            where(loop),
        ),
        certain=False,
        remedy=RELAUNCH,
        given=(("participant", name),),
        others=(NUDGE, HAND_OVER),
        participant=name,
        since=turn.since,
        key=f"B10:{name}:{turn.since_event}:{loop.pid}",
    )


# a loop that is no more


def _dead(case: Case, turn: Turn, loop: RunnerState) -> Iterator[Cause]:
    shown = loop.shown
    stopped = loop.phase in (Phase.STOPPED, Phase.DONE)
    settle = case.patience.scaled(case.patience.settle)
    if stopped and not case.clock.over(_later(turn.since, shown.since), settle):
        return  # it is being started again, perhaps
    if shown.capped:
        yield _again(over_budget(turn, loop), (HAND_OVER,))
        return
    if loop.phase is Phase.GAVE_UP or _had_failed(turn, loop):
        missed = _missed(case, turn, loop)
        others = tuple(each for each in missed.others if each not in (NUDGE, RELAUNCH))
        yield _again(missed, others)
        return
    headline, code, advice = _how_it_ended(turn.participant, loop)
    yield Cause(
        code,
        headline,
        advice=advice,
        evidence=(
            f"loop process {loop.pid}: {loop.phase.value} since {dated(shown.since)}"
            + (f": {shown.note}" if shown.note else ""),
            *_of_program(loop),
            *last_lines(loop.run),
            where(loop),
        ),
        remedy=RELAUNCH,
        given=(("participant", turn.participant),),
        others=(HAND_OVER,),
        participant=turn.participant,
        since=turn.since if loop.died else _later(turn.since, shown.since),
        key=f"{code}:{turn.participant}:{turn.since_event}:loop {loop.pid}",
    )


def _had_failed(turn: Turn, loop: RunnerState) -> bool:
    """Whether the agent had failed at this very turn when its loop was stopped."""
    shown, run = loop.shown, loop.run
    if loop.phase is not Phase.STOPPED or run is None or run.ended is None or run.stopped:
        return False
    return bool(shown.failure) and shown.turn == turn.since_event


def _again(missed: Cause, others: tuple[str, ...]) -> Cause:
    """The same where the loop has left: it must be started, there is nobody to be told."""
    if missed.remedy != NUDGE:
        return replace(missed, others=(RELAUNCH, *others))
    return replace(missed, remedy=RELAUNCH, given=missed.given[:1], others=others)


def _how_it_ended(name: str, loop: RunnerState) -> tuple[str, str, str]:
    """Headline, code and advice for a loop that has ended."""
    if loop.died and loop.program_alive:
        text = f"{name}'s loop was killed; its agent is still running unsupervised"
        return text, "B2", "restart the loop: it takes over the running agent"
    if loop.died:
        return f"{name}'s loop was killed, or the machine was restarted", "B2", "restart it"
    if loop.shown.deadline and loop.shown.note == "the deadline passed":
        return (
            f"{name}'s loop ended: its deadline passed",
            "E8",
            "restart it with a longer deadline",
        )
    return f"{name}'s loop was stopped, and it is {name}'s turn", "B2", "restart it"


def _of_program(loop: RunnerState) -> tuple[str, ...]:
    run = loop.run
    if run is None:
        return ("the agent was not started yet",)
    if loop.program_alive:
        return (f"{program(loop)} runs as process {run.process.pid}",)
    if run.ended is None:
        return (f"{program(loop)}, process {run.process.pid}, has ended too",)
    return of_run(run)


# nobody that is known here


def _unmanaged(case: Case, turn: Turn) -> Iterator[Cause]:
    strangers = case.strangers_of(turn.participant)
    waiter = next((each for each in strangers if each.waits), None)
    if waiter:
        settle = case.patience.scaled(case.patience.settle)
        born = datetime.fromtimestamp(waiter.created, case.clock.now.tzinfo)
        if case.clock.over(_later(turn.since, born), max(settle, case.patience.scaled(60.0))):
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


def _later(*moments: datetime | None) -> datetime | None:
    """The latest of the moments that are known."""
    return max((each for each in moments if each is not None), default=None)
