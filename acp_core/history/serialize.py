"""What a recording keeps of a Snapshot and of a participant's loop, as JSON."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from acp_core.history.schema import LoopChange, Seen
from acp_core.model import Snapshot

if TYPE_CHECKING:
    from acp_core.agents.state import Run, RunnerState


def seen(snapshot: Snapshot) -> Seen:
    """The verdict, phase, who was waited for and the findings."""
    content = {
        "run": snapshot.run_id,
        "status": snapshot.status.value,
        "phase": snapshot.phase,
        "round": snapshot.round,
        "verdict": snapshot.verdict.value,
        "events": len(snapshot.events),
        "source": snapshot.source.state.value,
        "doubt": snapshot.doubt,
        "waiting": [[turn.participant, turn.what, _iso(turn.since)] for turn in snapshot.turns],
        "causes": [[cause.code, cause.headline] for cause in snapshot.causes],
    }
    findings = [
        [each.code, each.severity.value, each.message, each.document, each.line, each.event]
        for each in snapshot.findings
    ]
    return Seen(snapshot.as_of.timestamp(), _json(content), _json(findings))


def loop_change(loop: RunnerState, now: datetime) -> LoopChange:
    """What a loop does, with which program, and how its last run went.

    Counts that grow while a program runs are kept when the run has ended: they would be a change
    with every line that it prints.
    """
    saved, run = loop.shown, loop.run
    content: dict[str, object] = {
        "phase": saved.phase.value,
        "since": _iso(saved.since),
        "note": saved.note,
        "alive": loop.alive,
        "died": loop.died,
        "pid": loop.pid,
        "started": _iso(saved.started),
        "program": saved.program,
        "version": saved.version,
        "model": saved.model,
        "mode": saved.mode,
        "turn": saved.turn,
        "turns": saved.turns,
        "attempt": saved.attempt,
        "restarts": saved.restarts,
        "run": _run(run) if run else None,
    }
    if run is None or run.ended is not None:
        content["tokens"] = [saved.tokens_in, saved.tokens_out]
        content["cost"] = saved.cost
        content["estimated"] = saved.estimated
    return LoopChange(now.timestamp(), loop.participant, _json(content))


def _run(run: Run) -> dict[str, object]:
    content: dict[str, object] = {
        "number": run.number,
        "started": _iso(run.started),
        "ended": _iso(run.ended),
        "exit": run.exit,
        "stopped": run.stopped,
    }
    if run.calls:
        content["calls"] = [[each.at, each.what, each.status] for each in run.calls]
    return content


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
