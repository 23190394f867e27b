"""A loop in words, and as JSON: for `acp ps` and whoever else tells of loops."""

from __future__ import annotations

from dataclasses import asdict, fields
from datetime import datetime

from acp_core.agents.identity import Identity
from acp_core.agents.state import Limit, Phase, Run, RunnerState, Saved, ToolUse
from acp_core.model import format

_WORDS = {
    Phase.STARTING: ("starting", "live"),
    Phase.WAITING: ("idle", "dim"),
    Phase.RUNNING: ("running", "live"),
    Phase.PAUSING: ("pausing", "warning"),
    Phase.GAVE_UP: ("gave up", "need"),
    Phase.DONE: ("done", "good"),
    Phase.STOPPED: ("stopped", "dim"),
}


def state_word(state: RunnerState) -> tuple[str, str]:
    """What a loop is doing, in a word, and that word's style."""
    if state.account and state.alive:
        return "elsewhere", "dim"
    if state.died:
        return ("orphaned", "need") if state.program_alive else ("died", "need")
    run = state.run
    if state.shown.capped and (state.alive or state.phase is Phase.GAVE_UP):
        return "over budget", "need"
    if state.phase is Phase.RUNNING and run and run.retrying:
        return "retrying", "warning"
    if state.phase is Phase.RUNNING and run and run.finished:
        return "lingering", "warning"
    return _WORDS[state.phase]


def sentence(state: RunnerState, now: datetime) -> str:
    """What there is to say of a loop, on one line; first a budget that is nearly used up."""
    near = [use.sentence for use in state.shown.budget if use.is_near and not use.is_over]
    return "; ".join(filter(None, (*near, _activity(state, now))))


def _activity(state: RunnerState, now: datetime) -> str:
    run = state.run
    if state.account:
        return state.shown.note
    if state.died and state.program_alive and run:
        return f"the loop died; its agent still runs (process {run.process.pid})"
    if state.died:
        return "the loop died: killed, or the machine was restarted"
    if state.phase is Phase.RUNNING and run and run.ended is None:
        if run.retrying:
            left = _left(run.retrying_until, now)
            return f"{run.retry_reason}; next try {left}" if left else run.retry_reason
        if run.first_output is None:
            return f"nothing printed yet ({format.age(run.started, now)})"
        return run.tool or (run.lines[-1] if run.lines else state.shown.note)
    if state.phase is Phase.PAUSING and state.shown.retry_at:
        if state.shown.limited:
            when = format.moment(state.shown.retry_at, now)
            return f"resumes at {when}, when the limit resets: {state.shown.note}"
        if late := _late(state.shown, now):
            return f"{late}, again {_left(state.shown.retry_at, now)}: {state.shown.note}"
        if state.shown.troubled:
            since = format.moment(state.shown.troubled, now)
            left = _left(state.shown.retry_at, now)
            return f"model service in trouble since {since}, again {left}: {state.shown.note}"
        return f"again {_left(state.shown.retry_at, now)}: {state.shown.note}"
    why = state.shown.live.removeprefix("no: ") if state.shown.live.startswith("no: ") else ""
    return f"{state.shown.note} (no live session: {why})" if why else state.shown.note


def _late(shown: Saved, now: datetime) -> str:
    """What there is to say of a limit that refuses after it should have been reset."""
    if reset := shown.refused_after:
        return f"still refused, although the limit should have been reset at {format.moment(reset, now)}"
    if later := shown.resets_later:
        return (
            f"still refused, tried every hour until the limit resets at {format.moment(later, now)}"
        )
    return ""


def _left(until: datetime | None, now: datetime) -> str:
    return f"in {format.span((until - now).total_seconds())}" if until else ""


def facts(state: RunnerState) -> dict[str, object]:
    """A loop as JSON: names are only ever added."""
    shown = state.shown
    return {
        "collaboration": state.folder,
        "participant": shown.participant,
        "pid": state.pid,
        "alive": state.alive,
        "state": state_word(state)[0],
        "phase": state.phase.value,
        "since": _plain(shown.since),
        "started": _plain(shown.started),
        "note": shown.note,
        "preset": shown.program,
        "version": shown.version,
        "model": shown.model,
        "command": list(shown.command),
        "workdir": shown.workdir,
        "mode": shown.mode,
        "live": shown.live or None,
        "turn": shown.turn,
        "turns": shown.turns,
        "attempt": shown.attempt,
        "attempts": shown.attempts or None,
        "restarts": shown.restarts,
        "tokens_in": shown.tokens_in,
        "tokens_out": shown.tokens_out,
        "cost": shown.cost,
        "estimated": shown.estimated,
        "cost_partial": shown.figures.is_partial,
        "budget": [
            {"scope": use.scope, "unit": use.unit, "spent": use.spent, "limit": use.amount}
            for use in shown.budget
        ],
        "capped": shown.capped,
        "retry_at": _plain(shown.retry_at) if state.alive else None,
        "limited": shown.limited and state.alive,
        "limit": _limit(shown.limit) if shown.limit else None,
        "failure": shown.failure or None,
        "turn_deadline": _plain(shown.turn_deadline),
        "deadline": _plain(shown.deadline),
        "left_over": [each.pid for each in shown.left_over if each.alive()],
        "run": _run(state.run, state.program_alive) if state.run else None,
        "log": state.log,
        "account": state.account or None,
    }


def _limit(limit: Limit) -> dict[str, object]:
    return {each.name: _plain(getattr(limit, each.name)) for each in fields(limit)}


def _run(run: Run, alive: bool) -> dict[str, object]:
    told: dict[str, object] = {"pid": run.process.pid, "alive": alive}
    for each in fields(run):
        value = getattr(run, each.name)
        if not isinstance(value, Identity):
            told[each.name] = _plain(value)
    return told


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return asdict(value) if isinstance(value, ToolUse) else value
