"""From a Snapshot and the loops of its participants to the Snapshot that says why it is stuck.

Everybody who reads it, the sentence on top, the fleet's order and number, the commands, reads
the same causes. A participant that is not waited for is parked, never stalled. Of one whose process
is not known here, nobody can say that it is dead. What is known of loops (`loop_turns`) is imported
where there is one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.diagnosis import standing
from acp_core.diagnosis.processes import busy
from acp_core.history import charged
from acp_core.loops.acts.names import DUPLICATE, LAUNCH
from acp_core.model import Matter, Runner, Snapshot, Status, Turn
from acp_core.model.format import continued, dated, is_said, names_in, quote_command
from acp_core.model.matter import About, verdicts
from acp_core.protocols.contract import Collaboration
from acp_core.protocols.kit.diagnosis import (
    Clock,
    DiagnosisContext,
    Patience,
    UnmanagedProcess,
    latest,
    safe_id,
)

if TYPE_CHECKING:
    from acp_core.agents.live.answers import OpenRequest
    from acp_core.agents.state import RunnerState


def causes_of_turns(case: DiagnosisContext) -> Iterator[Matter]:
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


def _of_turn(case: DiagnosisContext, turn: Turn) -> Iterator[Matter]:
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


def _unmanaged(case: DiagnosisContext, turn: Turn) -> Iterator[Matter]:
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


def _is_abandoned(case: DiagnosisContext, waited: set[str]) -> bool:
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
) -> Matter:
    name = turn.participant
    return Matter(
        code,
        headline,
        instruction=advice,
        evidence=(f"waiting for {name} since {dated(turn.since)}", *evidence),
        certain=False,
        verdicts=verdicts(LAUNCH, (("participant", name),)),
        about=About(participant=name),
        since=turn.since,
        key=f"{code}:{name}:{turn.since_event}" + (f":{about}" if about else ""),
    )


def _never_launched(turn: Turn) -> Matter:
    name = turn.participant
    return _unknown(
        "B1",
        turn,
        f"{name} was never started here and has no events yet",
        "start it, unless it runs elsewhere",
        ("acp has not started a loop for it on this machine", "the log has no event from it"),
    )


def _not_managed_here(turn: Turn, seen: datetime | None) -> Matter:
    name = turn.participant
    last = f"last seen {dated(seen)}" if seen else "never seen"
    return _unknown(
        "B14",
        turn,
        f"{name} takes longer than usual and is not run by acp here",
        "check where it runs, or start it here",
        (last, "acp knows no process for it; it may run in a terminal or on another machine"),
    )


def _elsewhere(turn: Turn, strangers: tuple[UnmanagedProcess, ...]) -> Matter:
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


def _waits_wrongly(turn: Turn, waiter: UnmanagedProcess) -> Matter:
    name = turn.participant
    return _unknown(
        "B10",
        turn,
        f"a process waits for {name}'s turn, although it is {name}'s turn",
        "check the terminal where it runs, or end it and start it here",
        (f"process {waiter.pid}: {waiter.command}", "acp did not start it"),
        str(waiter.pid),
    )


def _abandoned(case: DiagnosisContext, turn: Turn) -> Matter:
    return _unknown(
        "E9",
        turn,
        f"no activity since {dated(case.snapshot.changed)}, and no agent is running",
        "start the participant whose turn it is, or archive the collaboration",
        ("no loop runs for it on this machine",),
    )


# two who claim to be one


def _duplicate(case: DiagnosisContext, name: str) -> Matter | None:
    loop = case.loop(name)
    strangers = case.strangers_of(name)
    ours = loop is not None and (loop.alive or loop.program_alive)
    if len(strangers) + ours < 2:
        return None
    listed = [f"process {each.pid}, not started by acp: {each.command}" for each in strangers]
    if ours and loop is not None:
        listed.append(f"process {loop.pid}: acp's own loop, since {dated(loop.started)}")
    pids = ",".join(str(each.pid) for each in strangers)
    return Matter(
        "B13",
        f"two processes act for {name} at once",
        instruction="end one of them: both would take the same turn",
        evidence=tuple(listed),
        certain=True,
        verdicts=verdicts(DUPLICATE, (("participant", name),)),
        about=About(participant=name),
        since=min(
            (datetime.fromtimestamp(each.created, case.clock.now.tzinfo) for each in strangers),
            default=None,
        ),
        key=f"B13:{name}:{pids}",
    )


_log = logging.getLogger(__name__)


def diagnose(collaboration: Collaboration, case: DiagnosisContext) -> tuple[Matter, ...]:
    """Why it does not go on, as far as its protocol and its participants' loops say.

    A fault in a protocol's causes is logged, and hides nothing else.
    """
    found = list(causes_of_turns(case))
    case = replace(case, found=tuple(found))
    if case.loops and not case.has_turns:
        from acp_core.diagnosis import loop_turns as diagnosis_loop_turns

        found += diagnosis_loop_turns.of_assignments(case)
    if case.permissions:  # no fault: who asks is at work
        from acp_core.diagnosis import cards

        found += cards.permission_causes(case.permissions)
    try:
        found += collaboration.causes(case)
    except Exception:  # somebody else's code, or ours: the rest is still worth saying
        _log.info("the causes of %s failed", collaboration.key, exc_info=True)
    return tuple(found)


def with_standing(
    snapshot: Snapshot, problems: Sequence[Matter], recheck: datetime | None
) -> Snapshot:
    """The Snapshot with what stands, and with the needs and the headline that follow from it.

    Args:
        snapshot: What its protocol read.
        problems: What `diagnose` found.
        recheck: When to look again although nothing changed.
    """
    times = [at for at in (snapshot.recheck_at, recheck) if at is not None]
    soonest = min(times, default=None)
    matters = standing.standing(snapshot, problems)
    if not matters:
        return snapshot if soonest == snapshot.recheck_at else replace(snapshot, recheck_at=soonest)
    aside = {each.key for each in (*snapshot.questions, *snapshot.notices)}
    causes = tuple(each for each in matters if each.key not in aside)
    told = {each.key for each in (*problems, *snapshot.obstacles)}
    first = next((each for each in causes if each.key in told), None)
    return replace(
        snapshot,
        matters=matters,
        causes=causes,
        needs=standing.needs(causes),
        headline=_headline(snapshot, first) if first else snapshot.headline,
        summary=(snapshot.summary or snapshot.headline) if first else snapshot.summary,
        recheck_at=soonest,
    )


def _headline(snapshot: Snapshot, cause: Matter) -> str:
    """How it stands, why it does not go on, and what to do."""
    said = snapshot.headline
    if not is_said(cause.sentence, said):
        why = _continued(cause.sentence, snapshot)
        said = f"{said.removesuffix('.')} — {why}" if said else why
    parts = [_sentence(said)]
    if cause.instruction and cause.wanted:
        parts.append(f"What to do: {quote_command(_continued(cause.instruction, snapshot))}.")
    return " ".join(parts)


def _continued(text: str, snapshot: Snapshot) -> str:
    return continued(text, names_in(snapshot))


def _sentence(text: str) -> str:
    return text + ("" if not text or text.endswith((".", "!", "?")) else ".")


def _sharing(old: Snapshot | None, new: Snapshot) -> Snapshot:
    """``new`` with the matters of ``old`` where they are equal, or all of ``old``."""
    if old is None or new == old:
        return old or new
    matters = old.matters if new.matters == old.matters else new.matters
    causes = old.causes if new.causes == old.causes else new.causes
    needs = old.needs if new.needs == old.needs else new.needs
    if matters is new.matters and causes is new.causes and needs is new.needs:
        return new
    return replace(new, matters=matters, causes=causes, needs=needs)


class Diagnosis:
    """The diagnosis of one collaboration, look after look; one thread at a time.

    Args:
        patience: How long things may last.
    """

    def __init__(self, patience: Patience) -> None:
        self._patience = patience
        self._for: tuple[Snapshot, tuple[object, ...]] | None = None
        self._recheck: datetime | None = None
        self._result: Snapshot | None = None

    def diagnose(
        self,
        collaboration: Collaboration,
        snapshot: Snapshot,
        loops: tuple[RunnerState, ...],
        strangers: tuple[UnmanagedProcess, ...],
        now: datetime,
        runners: tuple[Runner, ...] = (),
        waiting: tuple[OpenRequest, ...] = (),
    ) -> Snapshot:
        """Find why a collaboration does not go on.

        Args:
            collaboration: as it was opened.
            snapshot: what was read of it.
            loops: those of its participants.
            strangers: processes that acp did not start, and that act for a participant.
            now: the time (aware, UTC).
            runners: who runs it now, of every account.
            waiting: requests for permission of its participants' programs.

        Returns:
            ``snapshot`` with its causes and runners; the very object of the last call where nothing changed.
        """
        seen = (loops, strangers, runners, waiting)
        last, due = self._for, self._recheck is not None and self._recheck <= now
        if (
            self._result is not None
            and last is not None
            and last[0] is snapshot
            and last[1] == seen
            and not due
        ):
            return self._result
        clock = Clock(now)
        case = DiagnosisContext(
            snapshot=snapshot,
            clock=clock,
            loops=loops,
            strangers=strangers,
            patience=self._patience,
            has_turns=collaboration.has_turns,
            durations=collaboration.durations,
            busy=busy,
            permissions=waiting,
        )
        made = with_standing(snapshot, diagnose(collaboration, case), clock.recheck)
        cost = charged.cost(loops, snapshot)
        if runners or cost:
            made = replace(made, runners=runners, cost=cost)
        made = _sharing(self._result, made)
        self._for, self._recheck, self._result = (snapshot, seen), clock.recheck, made
        return made
