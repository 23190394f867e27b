"""What the existing program keeps of a run besides: its checkpoint, and the list of finished runs.

acp needs neither. But where that program keeps a checkpoint, in a run that both may carry on, acp writes
it with each of its steps, so that the program's own view of the run stays true; and a run that was
founded there is listed there once it ends, whoever took its turns. Source: the shapes that the existing
program writes.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from acp_core.files.transaction import APPEND, REPLACE
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.schema import Object, obj, objects, text
from acp_core.protocols.governed.state import Move, by_acp, format_time

RUNS = ".agentxchain/run-history.jsonl"
ENDS = ("completed", "blocked")
_RECENT = 5  # decisions and turns that a run's line repeats


def checkpoint_writes(run: Run, move: Move, now: datetime) -> tuple[tuple[Path, str, Object], ...]:
    """What a step leads to: path, verb and object of each file; () where the program keeps none.

    Args:
        run: the run before the step.
        move: the step.
        now: the time.
    """
    found: list[tuple[Path, str, Object]] = []
    if not run.session.reason:
        found.append((run.root / schema.SESSION, REPLACE, session(run.session.value, move, now)))
    ends = move.state.get("status") in ENDS and run.status != move.state.get("status")
    if ends and (found or not by_acp(move.state)):
        found.append((run.root / RUNS, APPEND, finished(run, move, now)))
    return tuple(found)


def session(before: Object, move: Move, now: datetime) -> Object:
    """The checkpoint after a step."""
    state = move.state
    turns = objects(state.get("active_turns"))
    last = next((each for each in reversed(move.events) if obj(each, "turn")), {})
    of = obj(last, "turn")
    gate = obj(state, "pending_phase_transition") or obj(state, "pending_run_completion")
    return before | {
        "run_id": state.get("run_id"),
        "last_checkpoint_at": format_time(now),
        "checkpoint_reason": move.events[-1]["event_type"] if move.events else "state_written",
        "run_status": state.get("status"),
        "phase": state.get("phase"),
        "last_phase": state.get("phase"),
        "last_turn_id": of.get("turn_id") or before.get("last_turn_id"),
        "last_completed_turn_id": state.get("last_completed_turn_id"),
        "active_turn_ids": list(turns),
        "last_role": of.get("role_id") or before.get("last_role"),
        "pending_gate": gate.get("gate"),
        "pending_run_completion": state.get("pending_run_completion"),
        "blocked": state.get("status") == "blocked",
    }


def finished(run: Run, move: Move, now: datetime) -> Object:
    """The line for a run that was completed or blocked."""
    state, config = move.state, run.config.value
    lines = [line.value for line in run.history.lines] + list(move.history)
    own = [line for line in lines if line.get("run_id") == state.get("run_id")]
    began = schema.moment(state, "created_at")
    project = obj(config, "project")
    decisions = [line for line in run.ledger.lines if "id" in line.value]
    budget = obj(state, "budget_status")
    return {
        "schema_version": "0.1",
        "run_id": state.get("run_id"),
        "project_id": state.get("project_id"),
        "project_name": text(project, "name", 200),
        "template": config.get("template"),
        "status": state.get("status"),
        "started_at": state.get("created_at"),
        "completed_at": state.get("completed_at"),
        "duration_ms": int((now - began).total_seconds() * 1000) if began else None,
        "phases_completed": _phases(run, own),
        "total_turns": len(own),
        "roles_used": list(dict.fromkeys(text(line, "role", 80) for line in own)),
        "decisions_count": len(decisions) + sum("id" in line for line in move.ledger),
        "total_cost_usd": budget.get("spent_usd"),
        "budget_limit_usd": obj(config, "budget").get("per_run_max_usd"),
        "blocked_reason": state.get("blocked_on"),
        "gate_results": obj(state, "phase_gate_status"),
        "connector_used": next((line.get("runtime_id") for line in own), None),
        "model_used": None,
        "provenance": state.get("provenance"),
        "parent_context": None,
        "retrospective": _retrospective(state, own),
        "inheritance_snapshot": {
            "recent_decisions": _decisions(run, move),
            "recent_accepted_turns": [
                {name: line.get(name) for name in ("turn_id", "role", "summary", "phase")}
                for line in own[-_RECENT:]
            ],
        },
        "recorded_at": format_time(now),
    }


def _retrospective(state: Object, own: list[Object]) -> Object:
    """How the run ended, in a line, and what is next."""
    reason = obj(state, "blocked_reason")
    on, said = state.get("blocked_on"), text(own[-1], "summary", 500) if own else ""
    action = obj(reason, "recovery").get("recovery_action")
    return {
        "headline": on or said,
        "terminal_reason": reason.get("category") or state.get("status"),
        "next_operator_action": action,
        "follow_on_hint": None,
    }


def _decisions(run: Run, move: Move) -> list[Object]:
    lines = [line.value for line in run.ledger.lines] + list(move.ledger)
    return [
        {"id": line["id"], "statement": line.get("statement"), "decided_by": line.get("role"),
         "phase": line.get("phase")}
        for line in lines
        if "id" in line
    ][-_RECENT:]  # fmt: skip


def _phases(run: Run, own: list[Object]) -> list[str]:
    worked = {text(line, "phase", 80) for line in own}
    return [phase for phase in run.phases if phase in worked]
