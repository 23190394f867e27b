"""The rules for a run's files, and the states in which a run is stuck.

Source: governed protocol specification, "Repo-local governed run"; what a state may combine
follows the shapes that the existing program checks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime, timedelta

from acp_core import model
from acp_core.files.transaction import Interrupted
from acp_core.model.snapshot import Obstacle
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Run
from acp_core.protocols.governed.read.unfinished_write import interrupted
from acp_core.protocols.governed.rules import results, stuck
from acp_core.protocols.governed.rules.config import check_config
from acp_core.protocols.governed.rules.contradictions import check_contradictions
from acp_core.protocols.governed.rules.finding import Trouble, log_troubles, of_obstacles
from acp_core.protocols.governed.rules.guard import TRANSACTION
from acp_core.protocols.governed.rules.records import check_bundles, check_records
from acp_core.protocols.governed.rules.results import Verdict
from acp_core.protocols.governed.rules.unfinished import check_unfinished
from acp_core.protocols.governed.rules.vetoes import check_vetoes
from acp_core.protocols.governed.schema import act_names
from acp_core.protocols.governed.schema.fields import decode
from acp_core.protocols.governed.schema.records import RunEvent
from acp_core.protocols.governed.schema.wording import blocked_by, plain
from acp_core.protocols.governed.state import is_named

_ERROR, _WARNING = model.Severity.ERROR, model.Severity.WARNING
AT_ONCE = timedelta(seconds=3)
"""A journal that is younger belongs to a command that is writing just now."""
_STRIPPED = "gate_transition_request_auto_stripped"


def check_run(run: Run, now: datetime, obstacles: Iterable[Obstacle]) -> list[Trouble]:
    """Everything that is wrong with a run, worst first.

    Args:
        run: as it was read.
        now: the time.
        obstacles: what stands in the way of writes into it.
    """
    obstacles = tuple(obstacles)
    found = of_obstacles(each for each in obstacles if not each.key.startswith(TRANSACTION))
    for name, log in ((schema.HISTORY, run.history), (schema.LEDGER, run.ledger)):
        found += log_troubles(name, log)[1:]  # the first is an obstacle
    found += log_troubles(schema.EVENTS, run.events) + check_records(run)
    if not run.config.reason:
        found += check_config(run)
    left = interrupted(run.root)
    if left is not None:  # until that is finished, what does not agree is explained by it
        fresh = left.at is not None and abs(now - left.at) < AT_ONCE
        hopeless = any(each.key == stuck.KEY for each in obstacles)
        return found if fresh or hopeless else [*found, _interrupted(left)]
    found += check_unfinished(run, now)
    if not run.state.reason:
        found += _state(run) + _turns(run, now) + _blocked(run) + _gate(run)
        found += check_contradictions(run) + check_bundles(run) + _staged(run)
        found += check_vetoes(run)
    return found


def _interrupted(left: Interrupted) -> Trouble:
    message = (
        f"the write “{left.what}” was interrupted: {left.done} of {left.total} files are written"
    )
    return Trouble(
        "INTERRUPTED", _WARNING, message, "Finish the write; every command that writes does so first.",
        group="A6", since=left.at, action=act_names.RECOVER,
    )  # fmt: skip


def _safe(name: str) -> str:
    return clean_line(name, 80)


def _state(run: Run) -> list[Trouble]:
    """What the state says against itself, and what settles it."""
    state, status = run.state.value, run.status
    goes_on = f"Unblock the run: it becomes active, and {schema.STATE} records that."
    found = []
    if status == "paused" and run.pending is None:
        found.append(("The run is paused, but no gate is pending.", goes_on, act_names.UNBLOCK))
    if status == "active" and state.get("blocked_on"):
        message = "The run is active but names a reason for being blocked."
        found.append((message, goes_on, act_names.UNBLOCK))
    if status == "blocked" and not (state.get("blocked_on") and state.get("blocked_reason")):
        message = "The run is blocked without a reason."
        found.append((message, "Resolve what blocks the run, then unblock it.", act_names.UNBLOCK))
    if not is_named(state) and status != "idle":
        message = "The run has started but has no id."
        found.append((message, *_naming(run)))
    return [
        Trouble("STATE", _ERROR, message, remedy, schema.STATE, group="A2", action=action)
        for message, remedy, action in found
    ]


def _naming(run: Run) -> tuple[str, str]:
    """How a run without an id gets one."""
    if run.status != "active":
        return "The first step after unblocking assigns an id.", ""
    if run.turns and run.turns[0].status in AT_WORK:
        return "Reject the active turn: the reassigned turn gets an id.", act_names.REJECT
    return "The next step assigns an id.", act_names.STEP


def _turns(run: Run, now: datetime) -> list[Trouble]:
    return [trouble for turn in run.turns for trouble in _turn(run, turn, now)]


def _turn(run: Run, turn: ActiveTurn, now: datetime) -> list[Trouble]:
    role = turn.role or "an unknown role"

    def trouble_of(
        code: str, message: str, remedy: str, group: str, *actions: str, certain: bool = True
    ) -> Trouble:
        return Trouble(
            code, _WARNING, message, remedy, schema.STATE,
            group=group, since=turn.since, participant=turn.role or None,
            about=f"{turn.id}:{turn.attempt}",
            evidence=(f"{turn.id}, attempt {turn.attempt}, is {plain(turn.status) or 'without a status'}",),
            action=actions[0] if run.status == "active" else "", others=actions[1:],
            certain=certain,
        )  # fmt: skip

    found = []
    if turn.status == "conflicted":
        files = _safe(", ".join(turn.conflicts[:5]))
        message = f"The turn of {role} conflicts with a turn accepted since"
        message += f": both changed {files}" if files else ""
        remedy = "Reject the turn so that it is redone on top of the accepted changes."
        found.append(trouble_of("TURN_CONFLICTED", message, remedy, "C1", act_names.REJECT))
    elif turn.status in ("failed_start", "stalled"):
        why = turn.start_failure
        message = f"The turn of {role} was dispatched, but no agent started it"
        if why:
            message = f"The turn of {role} failed: {plain(why) if _is_code(why) else why}"
        remedy = "Stage its result, or reassign the turn."
        if turn.staged:
            remedy = "Its result has arrived late: accept it."
            found.append(
                trouble_of("TURN_GHOST", message, remedy, "B1", act_names.ACCEPT, act_names.REJECT)
            )
        else:
            found.append(
                trouble_of("TURN_GHOST", message, remedy, "B1", act_names.STEP, act_names.REJECT)
            )
    elif turn.status == "failed_acceptance":
        why = f": {clean_line(turn.failure, 300)}" if turn.failure else ""
        message = f"The result of {role} was not accepted{why}"
        remedy, actions = _after_failure(run, turn)
        found.append(trouble_of("TURN_FAILED", message, remedy, "C2", *actions))
    elif turn.status == "retrying":
        message = f"The turn of {role} was rejected and waits to be reassigned"
        found.append(
            trouble_of("TURN_RETRY", message, "Reassign the turn now.", "B4", act_names.STEP)
        )
    elif turn.status in AT_WORK and not turn.bundle and not turn.staged:
        message = f"The turn of {role} was assigned but never dispatched: it has no bundle"
        found.append(
            trouble_of("TURN_NO_BUNDLE", message, "Reassign the turn.", "B2", act_names.STEP)
        )
    elif turn.status in AT_WORK and not turn.staged and turn.lost:
        message = f"The program of {role} ended without a result"
        remedy = "Reassign the turn."
        found.append(
            trouble_of("TURN_LOST", message, remedy, "B1", act_names.STEP, act_names.REJECT)
        )
    elif turn.status not in AT_WORK and run.status == "active":
        message = f"The turn of {role} is “{plain(turn.status)}” and needs you to proceed"
        remedy = "Reject the turn to reassign it, or stop the run until this is resolved."
        found.append(
            trouble_of("TURN_HELD", message, remedy, "C4", act_names.REJECT, act_names.ESCALATE)
        )
    late = turn.deadline is not None and turn.deadline <= now and not turn.staged
    if late and turn.status in AT_WORK and run.status == "active":
        message = f"The turn of {role} is past its deadline; no result is staged"
        remedy = "Check on the agent, or reject the turn to reassign it."
        first = (act_names.STOP,) if turn.running else ()
        found.append(trouble_of("TURN_OVERDUE", message, remedy, "B3", *first, act_names.REJECT))
    return found


_AGAIN = "Let the role write it again."


def _after_failure(run: Run, turn: ActiveTurn) -> tuple[str, tuple[str, ...]]:
    """What mends a result that was not accepted, and the acts for it, the best one first."""
    if not turn.staged:
        return "Its result is missing: reassign the turn.", (act_names.STEP, act_names.REJECT)
    judged = _judged(run, turn)
    if judged is None:
        return "Write the result again, or reject it.", (act_names.REJECT, act_names.ACCEPT)
    verdict, mends = judged
    why = turn.failure
    if verdict.corrections and not mends:
        remedy = (
            "The proposed corrections are not enough: reject the result with a reason, or edit it."
        )
        return remedy, (act_names.REJECT, act_names.ACCEPT)
    declared = results.UNDECLARED in why or results.UNOBSERVED in why
    if verdict.corrections or (verdict.ok and declared):
        remedy = "Apply the proposed corrections and accept the result, or reject it."
        return remedy, (act_names.CORRECT, act_names.ACCEPT, act_names.REJECT)
    if verdict.ok and f"stage {results.OBSERVED}" not in why:
        return "The result has been corrected: accept it.", (act_names.ACCEPT, act_names.REJECT)
    remedy = "No correction is proposed: reject the result with a reason, or edit it and accept it."
    if verdict.ok:
        remedy = "Reject the result with a reason, or accept it without the changes of others."
    return remedy, (act_names.REJECT, act_names.ACCEPT)


def _judged(run: Run, turn: ActiveTurn) -> tuple[Verdict, bool] | None:
    """What the check of a staged result says now, and whether what is proposed makes it sound.

    None where there is none that can be read.
    """
    name = f".agentxchain/staging/{turn.id}/turn-result.json"
    path = schema.inside(run.root, name) if turn.staged else None
    loaded = schema.read_object(path) if path is not None else None
    if loaded is None or loaded.reason:
        return None
    about = (loaded.value, run.state.value, run.config.value, run.history.lines)
    return results.check(*about), results.is_mended(*about)


def _is_code(why: str) -> bool:
    return why.replace("_", "").isalnum() and why == why.lower()


def _staged(run: Run) -> list[Trouble]:
    """What a staged result would be refused for, with the corrections that are offered."""
    found = []
    for turn in run.turns:
        name = f".agentxchain/staging/{turn.id}/turn-result.json"
        path = schema.inside(run.root, name) if turn.staged else None
        if path is None:
            continue
        loaded = schema.read_object(path)
        if loaded.reason:
            message = f"The staged result of {turn.role} {loaded.reason}"
            found.append(Trouble("RESULT", _WARNING, message, document=name))
            continue
        about = (loaded.value, run.state.value, run.config.value, run.history.lines)
        verdict = results.check(*about)
        offered = [
            f"set {c.field} to {_safe(json.dumps(c.value))} ({c.reason})"
            for c in verdict.corrections
        ]
        remedy = f"Proposed: {'; '.join(offered)}." if offered else _AGAIN
        if offered and not results.is_mended(*about):
            remedy = f"{_AGAIN} What is proposed is not enough: {'; '.join(offered)}."
        for error in verdict.errors[:20]:
            message = f"The staged result of {turn.role} fails at {verdict.stage}: {error}"
            found.append(Trouble("RESULT", _WARNING, message, remedy, name))
        for warning in verdict.warnings:
            message = f"The staged result of {turn.role}: {warning}"
            found.append(Trouble("RESULT", model.Severity.ADVICE, message, document=name))
    return found


def _blocked(run: Run) -> list[Trouble]:
    if run.status != "blocked" or run.record.barrier:  # waiting for others is no trouble
        return []
    on, block = run.record.blocked_on, run.record.block
    detail, by = block.reason, blocked_by(run.state.value)
    of_turn = on.startswith(("turn:", "turns:"))
    asked = on.removeprefix("human:").removesuffix("…")  # the question, or how it begins
    said = detail in (on, "") or detail in by or (asked != on and detail.startswith(asked))
    more = "" if said else detail
    message = f"The run is blocked: {by}" + (f": {more}" if more and not of_turn else "")
    # some programs tell what happened where they are to tell what to do
    remedy = "" if block.action == detail else block.action
    remedy = remedy or "Resolve what blocks the run, then unblock it."
    action = "" if run.pending else act_names.UNBLOCK
    whole = [block.detail] if len(block.detail) > len(by) else []
    staged = next((turn for turn in run.turns if turn.staged), None)
    if staged is not None and of_turn:
        remedy = f"The result of {staged.role} is staged now: unblock the run, and accept it."
    return [
        Trouble(
            "RUN_BLOCKED", _WARNING, message, remedy,
            schema.STATE, group="E1", since=block.since, action=action,
            root=True, about=on,
            evidence=(*([more] if more and of_turn else whole), *_failures(run)),
        )
    ]  # fmt: skip


def _failures(run: Run) -> tuple[str, ...]:
    """Why the turns under way came to nothing: a block may have another reason than it names."""
    found = []
    for turn in run.turns:
        reasons = (turn.start_failure, clean_line(turn.failure, 300), turn.rejection)
        found += [f"{turn.role}: {why}" for why in reasons if why]
    return tuple(found)


def _gate(run: Run) -> list[Trouble]:
    found = []
    failure, reasons = run.record.gate_failure, run.record.gate_failure.reasons
    idle = run.status == "active" and not run.turns  # a turn under way may be mending it
    if failure.raw and idle and failure.phase == run.phase:
        first = clean_line("".join(reasons[:1]), 200)
        message = f"The gate {failure.gate} was requested but is not met: {first}"
        if len(reasons) > 1:
            message += f" (and {len(reasons) - 1} more)"
        times = run.record.non_progress_count
        if times > 1:
            message += f" ({times} turns in a row)"
        found.append(
            Trouble(
                "GATE_FAILED", _WARNING, message, "Let a role of this phase provide what is missing.",
                schema.STATE, group="D1", since=failure.since,
                action=act_names.STEP, evidence=reasons[:20],
            )
        )  # fmt: skip
    last = run.events.lines[-1] if run.events.lines else None
    for line in reversed(run.events.lines[-20:]):
        kind = line.value.get("event_type")
        if kind in ("turn_dispatched", "phase_entered", "gate_approved"):
            break
        if kind == _STRIPPED and last and run.status == "active":
            message = "A turn asked to leave the phase, but its request was dropped."
            remedy = "Write the gate's files and let the turn be redone."
            at = decode(RunEvent, line.value).at
            found.append(
                Trouble("REQUEST_DROPPED", _WARNING, message, remedy, schema.EVENTS,
                        line.number, "D2", at, action=act_names.STEP)
            )  # fmt: skip
            break
    return found
