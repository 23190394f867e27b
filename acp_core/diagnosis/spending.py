"""A budget that is used up keeps a participant's turn from being taken; one that nearly is will do so soon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from acp_core.agents import budgets
from acp_core.agents.budgets import Use, doubled, raised
from acp_core.agents.state import Phase, RunnerState
from acp_core.diagnosis.endings import log_place, run_evidence
from acp_core.loops.acts.names import HAND_OVER, RAISE, STOP_LOOP
from acp_core.model import Cause, Status, Turn
from acp_core.model.errors import Refused
from acp_core.person.settings import SettingsError
from acp_core.protocols.kit.diagnosis import DiagnosisContext, safe_id


def of_assignments(case: DiagnosisContext) -> Iterator[Cause]:
    """Budgets of agents that no loop runs: those of governed runs, cycles and workspaces."""
    if case.snapshot.status is not Status.ACTIVE:
        return
    for runner in case.loops:
        held = runner.shown.capped and runner.phase is Phase.GAVE_UP
        waits = runner.alive and runner.shown.ended is None
        if held and (waits or not _is_raised(runner, case.clock.now)):
            yield replace(_over_budget(safe_id(runner.participant), runner, "agent"), others=())
    for cause in nearly_over(case.loops):
        yield replace(cause, others=())


def _is_raised(runner: RunnerState, now: datetime) -> bool:
    """Whether a person raised the budgets of an agent since nobody conducts it any more."""
    shown = runner.shown
    try:
        found = budgets.in_force(runner.folder, runner.participant, shown.run_id, lambda: now)()
    except (Refused, SettingsError):
        return False
    amounts = {(cap.scope, cap.unit): cap.amount for cap in found}
    over = [use for use in shown.budget if use.is_over]
    return all(amounts.get((use.scope, use.unit), 0.0) > use.spent for use in over)


def over_budget(turn: Turn, loop: RunnerState) -> Cause:
    """A budget is used up: the loop starts nothing until a person raises it."""
    return _over_budget(turn.participant, loop, "loop", turn.since_event)


def _over_budget(name: str, loop: RunnerState, what: str, since: str | None = "") -> Cause:
    shown = loop.shown
    told = tuple(use.sentence for use in shown.budget)
    over = next((use.sentence for use in shown.budget if use.is_over), shown.note)
    note = shown.note if loop.phase is Phase.GAVE_UP else over
    ended = not loop.alive and what == "loop"
    return Cause(
        "E8",
        f"{name}'s {what} {'has ended' if ended else 'holds'}: {note}",
        advice=f"raise the budget{' and restart it' if ended else ''}, or end the work",
        evidence=(*told, *run_evidence(loop.run), log_place(loop)),
        remedy=RAISE,
        given=(("participant", name), ("budget", raised(shown.budget))),
        others=(HAND_OVER, STOP_LOOP),
        participant=name,
        since=shown.since,
        key=f"E8:{name}:{since}:{note.partition(':')[0]}",
    )


def nearly_over(loops: Iterable[RunnerState]) -> Iterator[Cause]:
    """Budgets from which little is left: raised in time, nothing needs to stop."""
    warned = set()
    for loop in loops:
        if not loop.alive or loop.shown.capped or loop.shown.ended is not None:
            continue
        for use in loop.shown.budget:
            about = loop.shown.participant if use.scope in ("turn", "participant") else ""
            what = (use.scope, use.unit, about)
            if use.is_near and not use.is_over and what not in warned:
                warned.add(what)
                yield _nearly_over(loop, use, about)


def _nearly_over(loop: RunnerState, use: Use, about: str) -> Cause:
    name = loop.shown.participant
    return Cause(
        "E25",
        f"{about}: {use.sentence}" if about else use.sentence,
        advice="raise the budget, or let acp stop the agent when the budget is used up",
        evidence=(f"{name} continues until 100 %", log_place(loop)),
        certain=True,
        remedy=RAISE,
        given=(("participant", name), ("budget", doubled(use))),
        others=(STOP_LOOP,),
        participant=name,
        key=f"E25:{about}:{use.scope}:{use.unit}:{use.amount:g}",
    )
