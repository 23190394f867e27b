"""The rules for a run's files, and the states in which a run is stuck.

Source: governed protocol specification, "Repo-local governed run", "Files" (the state, the log of
accepted turns and the ledger belong together; half of a writing is none), "Phase model" and
"Coordinator hooks"; what a state may combine, and which fields a line has, follows the shapes that
the existing program writes and checks. Kinds of lines that are not known are left in peace.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from acp_core import model
from acp_core.files.transaction import Interrupted
from acp_core.model.format import sentence_case
from acp_core.model.matter import Matter
from acp_core.model.text import clean_line
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import run as read_run
from acp_core.protocols.governed.read.existing_program import Transaction, describe_transaction
from acp_core.protocols.governed.read.own_writes import interrupted
from acp_core.protocols.governed.read.run import AT_WORK, ActiveTurn, Pending, Run
from acp_core.protocols.governed.rules import guard, results
from acp_core.protocols.governed.rules.config import check_config
from acp_core.protocols.governed.rules.findings import (
    Trouble,
    gate_need,
    log_troubles,
    of_obstacles,
    staged_key,
)
from acp_core.protocols.governed.rules.guard import TRANSACTION, is_writing
from acp_core.protocols.governed.rules.results import Verdict
from acp_core.protocols.governed.schema import (
    ASKED_BEFORE,
    HOOK_AUDIT,
    HookAudit,
    Line,
    Loaded,
    Object,
    RunEvent,
    blocked_by,
    decode,
    number,
    obj,
    plain,
    text,
)
from acp_core.protocols.governed.state import is_named

_ERROR, _WARNING = model.Severity.ERROR, model.Severity.WARNING
AT_ONCE = timedelta(seconds=3)
"""A journal that is younger belongs to a command that is writing just now."""
_STRIPPED = "gate_transition_request_auto_stripped"


def check_run(run: Run, now: datetime, obstacles: Iterable[Matter]) -> list[Trouble]:
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
        hopeless = any(each.key == guard.INTERRUPTED for each in obstacles)
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
        group="A6", since=left.at, action=schema.RECOVER,
    )  # fmt: skip


def _safe(name: str) -> str:
    return clean_line(name, 80)


def _state(run: Run) -> list[Trouble]:
    """What the state says against itself, and what settles it."""
    state, status = run.state.value, run.status
    goes_on = f"Unblock the run: it becomes active, and {schema.STATE} records that."
    found = []
    if status == "paused" and run.pending is None:
        found.append(("The run is paused, but no gate is pending.", goes_on, schema.UNBLOCK))
    if status == "active" and state.get("blocked_on"):
        message = "The run is active but names a reason for being blocked."
        found.append((message, goes_on, schema.UNBLOCK))
    if status == "blocked" and not (state.get("blocked_on") and state.get("blocked_reason")):
        message = "The run is blocked without a reason."
        found.append((message, "Resolve what blocks the run, then unblock it.", schema.UNBLOCK))
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
        return "Reject the active turn: the reassigned turn gets an id.", schema.REJECT
    return "The next step assigns an id.", schema.STEP


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
            action=actions[0] if run.status == "active" else "",
            others=actions[1:] if run.status == "active" else (), certain=certain,
        )  # fmt: skip

    found = []
    if turn.status == "conflicted":
        files = _safe(", ".join(turn.conflicts[:5]))
        message = f"The turn of {role} conflicts with a turn accepted since"
        message += f": both changed {files}" if files else ""
        remedy = "Reject the turn so that it is redone on top of the accepted changes."
        found.append(trouble_of("TURN_CONFLICTED", message, remedy, "C1", schema.REJECT))
    elif turn.status in ("failed_start", "stalled"):
        why = turn.start_failure
        message = f"The turn of {role} was dispatched, but no agent started it"
        if why:
            message = f"The turn of {role} failed: {plain(why) if _is_code(why) else why}"
        remedy = "Stage its result, or reassign the turn."
        if turn.staged:
            remedy = "Its result has arrived late: accept it."
            found.append(
                trouble_of("TURN_GHOST", message, remedy, "B1", schema.ACCEPT, schema.REJECT)
            )
        else:
            found.append(
                trouble_of("TURN_GHOST", message, remedy, "B1", schema.STEP, schema.REJECT)
            )
    elif turn.status == "failed_acceptance":
        why = f": {clean_line(turn.failure, 300)}" if turn.failure else ""
        message = f"The result of {role} was not accepted{why}"
        remedy, actions = _after_failure(run, turn)
        if remedy == _CORRECTED:  # why it was not accepted is no longer so
            message = f"The result of {role} was corrected and waits to be accepted"
        found.append(trouble_of("TURN_FAILED", message, remedy, "C2", *actions))
    elif turn.status == "retrying":
        message = f"The turn of {role} was rejected and waits to be reassigned"
        found.append(trouble_of("TURN_RETRY", message, "Reassign the turn now.", "B4", schema.STEP))
    elif turn.status in AT_WORK and not turn.bundle and not turn.staged:
        message = f"The turn of {role} was assigned but never dispatched: it has no bundle"
        found.append(trouble_of("TURN_NO_BUNDLE", message, "Reassign the turn.", "B2", schema.STEP))
    elif turn.status in AT_WORK and not turn.staged and turn.lost:
        message = f"The program of {role} ended without a result"
        remedy = "Reassign the turn."
        found.append(trouble_of("TURN_LOST", message, remedy, "B1", schema.STEP, schema.REJECT))
    elif turn.status not in AT_WORK and run.status == "active":
        message = f"The turn of {role} is “{plain(turn.status)}” and needs you to proceed"
        remedy = "Reject the turn to reassign it, or stop the run until this is resolved."
        found.append(trouble_of("TURN_HELD", message, remedy, "C4", schema.REJECT, schema.ESCALATE))
    late = turn.deadline is not None and turn.deadline <= now and not turn.staged
    if late and turn.status in AT_WORK and run.status == "active":
        message = f"The turn of {role} is past its deadline; no result is staged"
        remedy = "Check on the agent, or reject the turn to reassign it."
        first = (schema.STOP,) if turn.running else ()
        found.append(trouble_of("TURN_OVERDUE", message, remedy, "B3", *first, schema.REJECT))
    return found


_AGAIN = "Let the role write it again."
_CORRECTED = "The result has been corrected: accept it."


def _after_failure(run: Run, turn: ActiveTurn) -> tuple[str, tuple[str, ...]]:
    """What mends a result that was not accepted, and the acts for it, the best one first."""
    if not turn.staged:
        return "Its result is missing: reassign the turn.", (schema.STEP, schema.REJECT)
    judged = _judged(run, turn)
    if judged is None:
        return "Write the result again, or reject it.", (schema.REJECT,)
    verdict, mends = judged
    why = turn.failure
    if verdict.corrections and not mends:
        remedy = (
            "The proposed corrections are not enough: reject the result with a reason, or edit it."
        )
        return remedy, (schema.REJECT,)
    declared = results.UNDECLARED in why or results.UNOBSERVED in why
    if verdict.corrections or (verdict.ok and declared):
        remedy = "Apply the proposed corrections and accept the result, or reject it."
        return remedy, (schema.CORRECT, schema.REJECT)
    if verdict.ok and f"stage {results.OBSERVED}" not in why:
        return _CORRECTED, (schema.ACCEPT, schema.REJECT)
    remedy = "No correction is proposed: reject the result with a reason, or edit it and accept it."
    if verdict.ok:
        remedy = "Reject the result with a reason, or accept it without the changes of others."
    return remedy, (schema.REJECT,)


def _judged(run: Run, turn: ActiveTurn) -> tuple[Verdict, bool] | None:
    """What the check of a staged result says now, and whether what is proposed makes it sound.

    None where there is none that can be read.
    """
    _, loaded = _staged_result(run, turn)
    if loaded is None or loaded.reason:
        return None
    about = _with_run(run, loaded)
    return results.check(*about), results.is_mended(*about)


def _staged_result(run: Run, turn: ActiveTurn) -> tuple[str, Loaded | None]:
    """Where the result of a turn is staged, and what is there; None where nothing is."""
    name = f".agentxchain/staging/{turn.id}/turn-result.json"
    path = schema.inside(run.root, name) if turn.staged else None
    return name, None if path is None else schema.read_object(path)


def _with_run(run: Run, staged: Loaded) -> tuple[Object, Object, Object, Sequence[Line]]:
    """A staged result with what it is checked against."""
    return staged.value, run.state.value, run.config.value, run.history.lines


def _is_code(why: str) -> bool:
    return why.replace("_", "").isalnum() and why == why.lower()


def _staged(run: Run) -> list[Trouble]:
    """What a staged result would be refused for, with the corrections that are offered."""
    found = []
    for turn in run.turns:
        name, loaded = _staged_result(run, turn)
        if loaded is None:
            continue
        if loaded.reason:
            message = f"The staged result of {turn.role} {loaded.reason}"
            found.append(Trouble("RESULT", _WARNING, message, document=name))
            continue
        about = _with_run(run, loaded)
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
    action = "" if run.pending else schema.UNBLOCK
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
                action=schema.STEP, evidence=reasons[:20],
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
                        line.number, "D2", at, action=schema.STEP)
            )  # fmt: skip
            break
    return found


# --- how the files contradict each other: what was decided or accepted, and did not come about
# These are the ways in which runs of the existing program were lost without a word.


def check_contradictions(run: Run) -> list[Trouble]:
    """Everything that the files say against each other."""
    found = [*_decided_elsewhere(run), *_accepted_still_active(run), *_shared_turns(run)]
    return [*found, *_queued_not_decided(run), *_approved_not_entered(run), *_session(run)]


def _decided_elsewhere(run: Run) -> Iterator[Trouble]:
    """What the existing program did in a run of acp's own, lawfully."""
    found = guard.recognised(run) if guard.changed(run) else None
    if found is not None:
        message = f"{sentence_case(found.sentence)}; acp seals the run again with its next step."
        yield Trouble("SEALED_ANEW", model.Severity.ADVICE, message, document=schema.HISTORY)


def _accepted_still_active(run: Run) -> Iterator[Trouble]:
    """Turns that were accepted and are lost, or that are still under way."""
    known = {t for line in run.history.lines if isinstance(t := line.value.get("turn_id"), str)}
    last = run.state.value.get("last_completed_turn_id")
    if isinstance(last, str) and last not in known and not run.history.problems:
        message = f"The turn {_safe(last)} was accepted, but the history does not record it."
        remedy = "Restore the history from version control or a backup; its work may be lost."
        yield Trouble("ACCEPTED_LOST", _WARNING, message, remedy, schema.HISTORY, group="A2")
    for turn in run.turns:
        id = turn.raw.get("turn_id")
        if isinstance(id, str) and id in known:
            message = (
                f"The turn {turn.id} of {turn.role} was accepted but is still listed as active."
            )
            remedy = "Remove it from active_turns: its result is in the history."
            yield Trouble("ACCEPTED_ACTIVE", _WARNING, message, remedy, schema.STATE, group="A2")


def _shared_turns(run: Run) -> Iterator[Trouble]:
    """Turns of another run."""
    wanted = run.state.value.get("run_id")
    for turn in run.turns:
        recorded = turn.raw.get("run_id")
        if isinstance(recorded, str) and isinstance(wanted, str) and recorded != wanted:
            message = (
                f"The turn {turn.id} belongs to the run {_safe(recorded)}, not to {_safe(wanted)}."
            )
            remedy = "Reject the turn, and reassign it in this run."
            yield Trouble(
                "TURN_OF_OTHER", _WARNING, message, remedy, schema.STATE, group="A4",
                participant=turn.role or None, action=schema.REJECT,
            )  # fmt: skip


def _queued_not_decided(run: Run) -> Iterator[Trouble]:
    """Requests that waited for other turns, which are over: nothing looks at them again."""
    if run.status != "active" or run.turns:
        return
    for key, what in (
        ("queued_phase_transition", "to leave the phase"),
        ("queued_run_completion", "to complete the run"),
    ):
        if obj(run.state.value, key):
            message = f"A turn's request {what} is queued, but no turn is active."
            remedy = "Let a new turn request it again."
            yield Trouble(
                "REQUEST_QUEUED",
                _WARNING,
                message,
                remedy,
                schema.STATE,
                group="D2",
                action=schema.STEP,
            )


def _approved_not_entered(run: Run) -> Iterator[Trouble]:
    """A human opened the gate, and the run stayed where it was."""
    for line in reversed(run.events.lines[-500:]):
        event = decode(RunEvent, line.value)
        if event.kind in ("phase_entered", "gate_rejected", "run_started", "run_initialized"):
            return
        if event.kind == "gate_approved" and event.origin and event.to:
            if run.phase == event.origin and run.status in ("active", "paused"):
                message = f"The gate {event.gate} to {event.to} was approved, but the run is still "
                message += f"in {run.phase}."
                remedy = "Check who wrote the state last; let a turn request the gate again."
                yield Trouble(
                    "APPROVED_NOT_MOVED", _WARNING, message, remedy, schema.EVENTS, line.number,
                    "D6", event.at, action=schema.STEP,
                )  # fmt: skip
            return


def _session(run: Run) -> Iterator[Trouble]:
    """The existing program's checkpoint tells of something else than the state."""
    state, session = run.state.value, run.session
    if session.reason and not session.missing:
        message = f"{schema.SESSION} cannot be read: {schema.why(session.reason)}"
        yield Trouble("SESSION_DRIFT", _WARNING, message, document=schema.SESSION)
        return
    other = text(session.value, "run_id", 80)
    if other and other != text(state, "run_id", 80) and state.get("run_id"):
        message = f"The session's checkpoint belongs to another run ({other})."
        yield Trouble("SESSION_DRIFT", _WARNING, message, document=schema.SESSION)
        return
    recorded = text(session.value, "run_status", 40)
    at_odds = ("paused", "blocked", "completed")
    if recorded in at_odds and run.status == "active":
        message = f"The session's checkpoint says {recorded} while the run is active."
        yield Trouble("SESSION_DRIFT", _WARNING, message, document=schema.SESSION)


_MOST = 50  # findings of one log
_NEEDED = ("turn_id", "run_id", "role", "phase", "status", "summary", "accepted_at")
_DECISION = ("turn_id", "role", "phase", "category", "statement")
_DEC = re.compile(r"DEC-(?:COORD-)?[0-9]+\Z")

_OWN_KINDS = {
    "objection_raised": ("objection_id", "by"),
    "objection_status": ("objection_id", "status", "by"),
    "gate_approved": ("gate_id", "by"),
    "gate_rejected": ("gate_id", "by", "comment"),
    "turn_rejected": ("turn_id", "role"),
}


def check_records(run: Run) -> list[Trouble]:
    """What is wrong within the history, the ledger and the events, at most a few of each."""
    found = []
    for lines in (_history(run), _ledger(run), _events(run)):
        found += list(lines)[:_MOST]
    return found


def _history(run: Run) -> Iterator[Trouble]:
    seen: dict[str, int] = {}
    last = 0
    for line in run.history.lines:
        value = line.value
        lacking = [name for name in _NEEDED if not text(value, name)]
        if lacking:
            yield _of(schema.HISTORY, line, f"an accepted turn lacks {', '.join(lacking)}")
        turn = text(value, "turn_id", 80)
        if turn and turn in seen:
            yield _of(schema.HISTORY, line, f"{turn} was already accepted in line {seen[turn]}")
        seen[turn] = line.number
        sequence = number(value, "accepted_sequence")
        if sequence is not None and value.get("run_id") == run.state.value.get("run_id"):
            if sequence <= last:
                yield _of(schema.HISTORY, line, f"accepted_sequence {sequence} follows {last}")
            last = sequence


def _ledger(run: Run) -> Iterator[Trouble]:
    for line in run.ledger.lines:
        value = line.value
        kind = value.get("type")
        if kind is None and "decision" not in value:
            lacking = [name for name in _DECISION if not text(value, name)]
            id = value.get("id")
            if not isinstance(id, str) or not _DEC.match(id):
                lacking.insert(0, "an id like DEC-001")
            if lacking:
                yield _of(schema.LEDGER, line, f"a decision lacks {', '.join(lacking)}")
        for name in _OWN_KINDS.get(kind, ()) if isinstance(kind, str) else ():
            if not text(value, name):
                yield _of(schema.LEDGER, line, f"a line of type {kind} lacks {name}")
        if isinstance(kind, str) and "id" in value:
            message = f"a line of type {text(value, 'type', 60)} has an id, so readers take it for a decision"
            yield _of(schema.LEDGER, line, message)


def _events(run: Run) -> Iterator[Trouble]:
    for line in run.events.lines:
        lacking = [name for name in ("event_type", "timestamp") if not text(line.value, name)]
        if lacking:
            yield _of(schema.EVENTS, line, f"an event lacks {', '.join(lacking)}")


def _of(document: str, line: Line, message: str) -> Trouble:
    recorded = f"{document}, line {line.number}: {message}."
    remedy = "Check who wrote it; acp never rewrites an append-only log."
    return Trouble("RECORD", _WARNING, recorded, remedy, document, line.number)


def check_bundles(run: Run) -> list[Trouble]:
    """What of a turn's bundle does not belong to the turn, or was changed since it was written."""
    return [
        trouble
        for turn in run.turns
        if turn.bundle and turn.status in AT_WORK
        for trouble in (*_assignment(run, turn), *_manifest(run, turn))
    ]


def _assignment(run: Run, turn: ActiveTurn) -> Iterator[Trouble]:
    name = f"{read_run.bundle_folder(turn.id)}/ASSIGNMENT.json"
    path = schema.inside(run.root, name)
    if path is None:
        return
    loaded = schema.read_object(path)
    if loaded.reason:
        message = (
            f"The assignment of {turn.role} ({turn.id}) cannot be read: {schema.why(loaded.reason)}"
        )
        yield Trouble("BUNDLE", _ERROR, message, "Reassign the turn.", name)
        return
    wanted = (
        ("run_id", run.state.value.get("run_id")),
        ("turn_id", turn.raw.get("turn_id")),
        ("role", turn.raw.get("assigned_role")),
    )
    for key, value in wanted:
        recorded = loaded.value.get(key)
        if recorded is not None and value is not None and recorded != value:
            message = f"The assignment of {turn.role} is of {key} “{text(loaded.value, key, 80)}”."
            yield Trouble("BUNDLE", _ERROR, message, "Reassign the turn.", name)


def _manifest(run: Run, turn: ActiveTurn) -> Iterator[Trouble]:
    """Files of the bundle that are not as the manifest says."""
    home = read_run.bundle_folder(turn.id)
    manifest = read_run.read_manifest(run.root, turn.id)
    document = f"{home}/{read_run.MANIFEST}"
    if manifest.reason and not manifest.missing:
        message = f"The manifest of {turn.id} cannot be read: {schema.why(manifest.reason)}"
        yield Trouble("BUNDLE", _WARNING, message, document=document)
        return
    remedy = "Reassign the turn: its prompt has changed."
    for each in read_run.bundle_differences(run.root, turn.id, turn.raw.get(read_run.MARK)):
        outside = each.what == read_run.OUTSIDE
        said = each.sentence(home)
        yield Trouble(
            "BUNDLE", _ERROR if outside else _WARNING, f"{sentence_case(said)}.", remedy,
            document if outside else f"{home}/{each.name}",
        )  # fmt: skip


# --- what the existing program began to write and did not finish


def check_unfinished(run: Run, now: datetime) -> Iterator[Trouble]:
    """A trouble for each note that is left; none while that program is at work."""
    left = [each for each in run.unfinished if not each.is_fresh(now)]
    if not left or is_writing(run):
        return
    known = {line.value.get("turn_id") for line in run.history.lines}
    for each in left:
        name = clean_line(each.name, 300)
        message = f"The agentxchain program did not finish {describe_transaction(each)}"
        if each.reason:
            message = f"The agentxchain program left {name} behind, which {each.reason}"
        yield Trouble(
            "TRANSACTION", model.Severity.WARNING, f"{message}.",
            "Let that program finish, or review the file and set it aside (a copy is "
            "kept), so that acp can proceed.",
            name, group="A6", since=each.at, action=schema.SET_ASIDE, root=True,
            evidence=tuple(_evidence(each, name, known)), about=clean_line(each.name, 150),
        )  # fmt: skip


def _evidence(each: Transaction, name: str, known: set[object]) -> Iterator[str]:
    yield f"{name} exists" + (f" with state {each.state}" if each.state else "")
    if each.turn in known:
        yield f"the history records {each.turn}"
    elif each.turn:
        yield f"the history does not record {each.turn}: its result may exist only in that file"


_OF_RESULTS = tuple(phase for phase, act in ASKED_BEFORE.items() if act == schema.ACCEPT)
_OF_GATES = tuple(phase for phase, act in ASKED_BEFORE.items() if act == schema.APPROVE_GATE)
Latest = dict[str, tuple[int, HookAudit]]


def check_vetoes(run: Run) -> list[Trouble]:
    """The hooks whose latest word on the gate or the result that waits is a veto."""
    pending, staged = run.pending, [t for t in run.turns if t.staged and t.status in AT_WORK]
    if pending is None and not staged:
        return []
    lines = [
        (number, value)
        for number, value in schema.read_log(run.root / HOOK_AUDIT).lines
        if value.get("run_id") == run.state.value.get("run_id")
    ]
    found = []
    if pending is not None:
        said = _latest(lines, _OF_GATES, pending.since)
        found += [_of_gate(pending, *each) for each in said.values()]
    for turn in staged:
        own = [each for each in lines if each[1].get("turn_id") == turn.id]
        said = _latest(own, _OF_RESULTS, turn.since)
        found += [_of_result(turn, *each) for each in said.values()]
    return found


def _latest(
    lines: Iterable[tuple[int, Object]], phases: tuple[str, ...], since: datetime | None
) -> Latest:
    """The vetoes since a moment that their hooks have not taken back."""
    said: Latest = {}
    for place, value in lines:
        audit = decode(HookAudit, value)
        late = audit.at is None or since is None or audit.at >= since
        if value.get("hook_phase") in phases and late:
            said[audit.hook] = place, audit
    return {hook: each for hook, each in said.items() if each[1].is_veto}


def _of_gate(pending: Pending, number: int, audit: HookAudit) -> Trouble:
    return _veto(
        audit, number, f"the gate {pending.gate}", f"{pending.gate}:{pending.turn}", gate_need(pending).key,
        "Send the phase back to work with the hook's objection; approve only if the hook is wrong.",
        (schema.REJECT_GATE, schema.APPROVE_GATE),
    )  # fmt: skip


def _of_result(turn: ActiveTurn, number: int, audit: HookAudit) -> Trouble:
    return _veto(
        audit, number, f"the result of {turn.role}", f"{turn.id}:{turn.attempt}", staged_key(turn),
        "Reject the result with the hook's objection; accept it only if the hook is wrong.",
        (schema.REJECT, schema.ACCEPT),
    )  # fmt: skip


def _veto(
    audit: HookAudit,
    number: int,
    what: str,
    about: str,
    need: str,
    remedy: str,
    acts: tuple[str, str],
) -> Trouble:
    name = audit.hook or "without a name"
    why = f": {audit.message}" if audit.message else ""
    return Trouble(
        "HOOK_VETO", model.Severity.WARNING, f"The hook {name} vetoed {what}{why}",
        remedy, HOOK_AUDIT, number, "D12", audit.at, action=acts[0], others=acts[1:],
        evidence=(f"{HOOK_AUDIT}, line {number}: {audit.action or 'block'}",),
        about=f"{name}:{about}", explains=(need,),
    )  # fmt: skip
