"""What the existing program did in a run of acp's own, where it did what acp would have let it do.

It assigns turns and accepts results; then the seal is broken, and nothing is wrong. A step is
recognised where the files agree with each other: the logs only grew, each new line of the history
is a sound result of a turn of this phase, the state follows from them, and the repository holds no
change that nobody declared. A gate or a barrier that was crossed is never recognised: that
program's files do not prove that a human approved. Source: governed protocol specification,
"Files" and "Phase model".
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import repository, seals
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules import results
from acp_core.protocols.governed.schema import (
    Line,
    Log,
    Object,
    obj,
    objects,
    strings,
    text,
)
from acp_core.protocols.governed.state import roles_of

_FIXED = ("phase", "project_id", "provenance", "super_run_id", "barriers", "barrier_approvals",
          "barrier_request", "created_at", "phase_entered_at", "rebuilt_at")  # fmt: skip

"""What neither assigning nor accepting a turn changes."""

_UNPROVED = ("approved", "entered", "completed", "resolved", "rejected", "revision", "reissued")

"""Parts of names of events and lines that tell of a human's decision, or of what follows from it."""

_DECIDED = ("pending_phase_transition", "pending_run_completion", "blocked_on")


class Recognised(NamedTuple):
    """The turns that the existing program accepted and assigned since acp wrote last."""

    accepted: tuple[str, ...]
    assigned: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What it did, without a capital and without a full stop."""
        parts = [f"accepted {each}" for each in self.accepted]
        parts += [f"assigned {each}" for each in self.assigned]
        return f"the agentxchain program {' and '.join(parts)}"


def recognised(run: Run) -> Recognised | None:
    """What the existing program did since acp wrote last; None where the files tell otherwise."""
    before, now = schema.parsed(seals.last_sealed(run.root) or b""), run.state.value
    seal = seals.read(run.root)
    if not before or seal is None or seal.marked:
        return None
    grown = {
        name: _grown(run.root / name, log, seal.files.get(name, "empty"))
        for name, log in (
            (schema.HISTORY, run.history), (schema.LEDGER, run.ledger), (schema.EVENTS, run.events)
        )
    }  # fmt: skip
    history, ledger, events = (
        grown[name] for name in (schema.HISTORY, schema.LEDGER, schema.EVENTS)
    )
    if history is None or ledger is None or events is None:
        return None
    accepted = tuple(str(line.value.get("turn_id")) for line in history)
    assigned = tuple(id for id in _turns(now) if id not in _turns(before))
    lawful = (
        bool(accepted or assigned)
        and _state_follows(run, before, accepted)
        and not any(_is_decision(line.value) for line in (*ledger, *events))
        and all(_is_sound(run, before, line) for line in history)
        and all(_may_take(run, turn) for id, turn in _turns(now).items() if id in assigned)
        and _repository_agrees(run, before, history)
    )
    return Recognised(accepted, assigned) if lawful else None


def _grown(path: Path, log: Log, sealed: str) -> list[Line] | None:
    """The lines that were added to a log since it was sealed; None where others changed."""
    if log.problems:
        return None
    if sealed == "empty":
        return list(log.lines)
    try:
        data = path.read_bytes()[: schema.LOG_LIMIT]
    except OSError:
        return None
    digest = hashlib.sha256()
    for number, raw in enumerate(data.split(b"\n"), 1):
        digest.update(raw + b"\n")
        if f"sha256:{digest.hexdigest()}" == sealed:
            return [line for line in log.lines if line.number > number]
    return None


def _turns(state: Object) -> dict[str, Object]:
    return objects(state.get("active_turns"))


def _state_follows(run: Run, before: Object, accepted: tuple[str, ...]) -> bool:
    """Whether the state is one to which assigning and accepting turns leads."""
    now = run.state.value
    if any(now.get(key) != before.get(key) for key in _FIXED):
        return False
    if now.get("run_id") != before.get("run_id") or before.get("status") not in (
        "active",
        "paused",
    ):
        return False
    if accepted and now.get("last_completed_turn_id") != accepted[-1]:
        return False
    if not set(_turns(before)) <= {*_turns(now), *accepted} or set(_turns(now)) & set(accepted):
        return False
    passed = {key for key, value in obj(now, "phase_gate_status").items() if value == "passed"}
    before_passed = {
        k for k, value in obj(before, "phase_gate_status").items() if value == "passed"
    }
    return passed == before_passed and _status_follows(before, now, accepted)


def _status_follows(before: Object, now: Object, accepted: tuple[str, ...]) -> bool:
    """Whether no gate was decided: one that waited still does, one that waits now was asked for."""
    if before.get("status") == "paused":
        return all(now.get(key) == before.get(key) for key in ("status", *_DECIDED))
    asked = obj(now, "pending_phase_transition") or obj(now, "pending_run_completion")
    if now.get("status") == "paused":
        return asked.get("requested_by_turn") in accepted
    if now.get("status") == "blocked":
        return bool(accepted and now.get("blocked_on") and now.get("blocked_reason"))
    return now.get("status") == "active" and not asked and not now.get("blocked_on")


def _is_decision(line: Object) -> bool:
    kind = text(line, "type", 80) or text(line, "decision", 80) or text(line, "event_type", 80)
    if kind == "approval_policy":
        return line.get("action") != "require_human"
    return any(part in kind for part in _UNPROVED)


def _is_sound(run: Run, before: Object, line: Line) -> bool:
    """Whether a line of the history is a result that acp would have accepted, too."""
    value, config = line.value, run.config.value
    turn = _turns(before).get(str(value.get("turn_id")))
    if turn is None:
        turn = {"turn_id": value.get("turn_id"), "assigned_role": value.get("role"),
                "runtime_id": value.get("runtime_id")}  # fmt: skip
        if not _may_take(run, turn):
            return False
    state = before | {"active_turns": {str(value.get("turn_id")): turn}}
    earlier = [each for each in run.history.lines if each.number < line.number]
    sequence = schema.number(value, "accepted_sequence")
    follows = sequence is None or sequence > (schema.number(before, "turn_sequence") or 0)
    of_phase = value.get("phase") == before.get("phase")
    result = {"schema_version": "1.0", **value}
    return follows and of_phase and results.check(result, state, config, earlier).ok


def _may_take(run: Run, turn: Object) -> bool:
    """Whether a turn is one that its role may take here, with the runtime that is configured."""
    role, config = turn.get("assigned_role"), run.config.value
    described = objects(config.get("roles")).get(str(role), {})
    return role in roles_of(config, run.phase) and turn.get("runtime_id") == described.get(
        "runtime"
    )


def _repository_agrees(run: Run, before: Object, history: list[Line]) -> bool:
    """Whether nothing changed that the accepted turns did not declare, as far as git tells."""
    turns = [
        turn for line in history if (turn := _turns(before).get(str(line.value.get("turn_id"))))
    ]
    if not turns or _turns(run.state.value):
        return True  # their work and that of the turn under way cannot be told apart any more
    baseline = obj(turns[0], "baseline")
    seen = repository.observe(run.root, baseline)
    if not seen.known:
        return text(baseline, "kind", 40) != "git_worktree"
    declared = {name for line in history for name in strings(line.value, "files_changed")}
    return set(seen.files) <= declared
