"""What a participant's loop is doing, in words, and whether anything runs a collaboration.

Plain text; what it costs to import is next to nothing: screens ask at every change.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.loops.acts.names import LAUNCH, NAMES
from acp_core.model import Action, Intent, Snapshot, SourceState, Status
from acp_core.model.format import span

if TYPE_CHECKING:
    from acp_core.agents.state import RunnerState

_PHASES = {
    "starting": "starting",
    "waiting": "idle",
    "running": "running",
    "pausing": "pausing",
    "gave_up": "gave up",
    "done": "done",
    "stopped": "stopped",
}

_FAILURES = {
    "limit": "limit reached",
    "service": "service trouble",
    "login": "not logged in",
    "model": "model not available",
    "context": "out of context",
    "credit": "no credit",
}

GOOD, BAD, REST = "good", "bad", "rest"


def state(loop: RunnerState) -> str:
    """One or two words: idle, running, using Bash, retrying, limit reached, not logged in, cancelled, gave up, ..."""
    run = loop.run
    if loop.account and loop.alive:
        return f"run by {loop.account}"
    if loop.died:
        return "died"
    if loop.shown.capped and (loop.alive or loop.phase.value == "gave_up"):
        return "over budget"
    if loop.phase.value in ("pausing", "gave_up") and loop.shown.failure in _FAILURES:
        return _FAILURES[loop.shown.failure]
    if loop.phase.value == "gave_up" and run is not None and run.cancelled:
        return "cancelled"
    if loop.phase.value != "running" or run is None:
        return _PHASES[loop.phase.value]
    if run.retrying:
        return "retrying"
    if run.finished is not None and not run.live:  # a session stays
        return "lingering"
    return f"using {run.tool}" if run.tool else "running"


def activity(loop: RunnerState | None) -> str:
    """Its program and what it is doing, in one line."""
    return " · ".join(filter(None, (program(loop), state(loop)))) if loop else "no loop"


def mood(loop: RunnerState) -> str:
    """Whether that is `GOOD` (at work), `BAD` (somebody should look) or `REST`."""
    run = loop.run
    if loop.account:
        return REST
    if loop.died or loop.phase.value == "gave_up" or (run and run.retrying):
        return BAD
    return GOOD if loop.alive and loop.phase.value in ("running", "starting", "pausing") else REST


def attempt(loop: RunnerState) -> str:
    """Which try of the turn it is: ``try 2 of 4``; "" for the first one."""
    shown = loop.shown
    if shown.attempt < 2:
        return ""
    return (
        f"attempt {shown.attempt} of {shown.attempts}"
        if shown.attempts
        else f"attempt {shown.attempt}"
    )


def spent(loop: RunnerState) -> str:
    """Tokens and cost of all runs, those of the running one included; ``~`` marks estimates, ``≥`` sums of which a part is unknown."""
    shown, run = loop.shown, loop.run
    tokens_in, tokens_out, cost = shown.tokens_in, shown.tokens_out, shown.cost
    guessed = shown.estimated
    if run is not None and run.ended is None:
        tokens_in, tokens_out = tokens_in + run.tokens_in, tokens_out + run.tokens_out
        if run.cost is not None:
            cost = (cost or 0.0) + run.cost
        guessed = guessed or run.tokens_estimated or run.cost_estimated
    about = "~" if guessed else ""
    words = []
    if tokens_in or tokens_out:
        words.append(f"{about}{short(tokens_in)} in, {short(tokens_out)} out")
    if cost is not None:
        least = "≥" if shown.figures.is_partial else about
        words.append(f"{least}${cost:.2f}")
    words += [use.figures for use in shown.budget if use.is_near]
    return " · ".join(words)


def program(loop: RunnerState) -> str:
    """The program with its version and model, as far as known."""
    shown = loop.shown
    return " ".join(filter(None, (shown.program, shown.version, shown.model)))


def last_line(loop: RunnerState) -> str:
    """What the program said last, or else what the loop notes."""
    lines = [line for line in loop.lines if line.strip()]
    return lines[-1] if lines else loop.shown.note


def deadline(loop: RunnerState, now: datetime) -> str:
    """How long the turn, and the whole, may still take; "" without a limit, or once it has ended."""
    words: list[str] = []
    if not loop.alive:
        return ""
    for what, until in (("turn", loop.shown.turn_deadline), ("all", loop.shown.deadline)):
        if until is not None:
            left = (until - now).total_seconds()
            words.append(f"{what}: {span(left)} left" if left > 0 else f"{what}: deadline passed")
    return ", ".join(words)


def short(number: int) -> str:
    """A number in few characters: 812, 12k, 3.4M."""
    if number < 1_000:
        return str(number)
    if number < 1_000_000:
        return f"{number / 1_000:.1f}k" if number < 10_000 else f"{number // 1_000}k"
    return f"{number / 1_000_000:.1f}M"


IDLE = "acp runs no agent here"
"""What is said of a collaboration that goes on only if somebody acts by hand."""


def is_idle(snapshot: Snapshot) -> bool:
    """Whether no process at work is known here, though an agent is waited for, or nobody."""
    people = {each.id for each in snapshot.participants if each.kind == "human"}
    by_hand = snapshot.turns and all(turn.participant in people for turn in snapshot.turns)
    live = snapshot.status is Status.ACTIVE and snapshot.source.state is SourceState.LIVE
    return live and not snapshot.runners and not by_hand


def starting_act(offered: Iterable[Action]) -> Action | None:
    """The act that starts what runs it: loops where the collaboration has turns, else the first one."""
    names = NAMES - {LAUNCH}
    starts = [each for each in offered if each.intent is Intent.START and each.name not in names]
    return next((each for each in starts if each.name == LAUNCH), next(iter(starts), None))
