"""Bringing back a state that is lost or damaged: acp's own copy of it, else what the logs tell.

The history tells which turns were accepted and what the last one asked for; the events and the
ledger tell the phase, gates and blocks. A turn that was under way is lost: another is assigned. The
damaged file is kept, and so is what the existing program left half written: it is set aside below
``.agentxchain/backups`` after a human has looked at it. Source: governed protocol specification,
"Files" (the logs are append-only, the state is not).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from acp_core.files.reading import Unreadable, read_bounded
from acp_core.files.transaction import APPEND, REMOVE, REPLACE, Write
from acp_core.model.errors import Refused
from acp_core.protocols.governed import schema
from acp_core.protocols.governed.read import existing_program, initiative, own_writes
from acp_core.protocols.governed.read.own_writes import RUN_HOME
from acp_core.protocols.governed.read.run import Run
from acp_core.protocols.governed.rules import guard
from acp_core.protocols.governed.schema import Line, Object, exit_gate, number, obj, objects, text
from acp_core.protocols.governed.state import (
    Move,
    Request,
    blocked,
    format_time,
    initial,
    ledger_line,
    waiting,
)
from acp_core.protocols.governed.write.opened import (
    Opened,
    RunPlan,
    content,
    json_document,
    log_line,
)
from acp_core.protocols.kit.guard import check

KEPT = f"{own_writes.ACP_HOME}/kept"
"""Where damaged files are kept: git does not see them there."""


class Restored(NamedTuple):
    """A state that is brought back: how, and where the run then is. ``writes`` do it."""

    how: str
    state: Object
    writes: tuple[Write, ...]

    @property
    def sentence(self) -> str:
        """What is done, without a capital and without a full stop."""
        on = text(self.state, "blocked_on", 200) or text(self.state, "status", 40)
        return f"{self.how}: {text(self.state, 'phase', 80)}, {on}"


def restored(opened: Opened, now: datetime) -> Restored:
    """What brings a lost state back. Writes nothing.

    Raises:
        Refused: it is not lost; or neither a copy nor the logs tell what it was.
    """
    run = opened.run
    if not guard.lost(run):
        raise Refused(f"{schema.STATE} is readable")
    damaged = set_apart(opened.root, run, now)
    copy = guard.copied(run)
    if copy is not None:
        return Restored(
            "restore the state that acp wrote last",
            json.loads(copy),
            (*damaged, Write(opened.root / schema.STATE, REPLACE, copy)),
        )
    check([each for each in guard.unusable(run) if each.about.document != schema.STATE], "")
    if initiative.coordinated_workstream(run) is not None:
        (obstacle,) = (each for each in guard.unusable(run) if each.about.document == schema.STATE)
        raise Refused(f"its coordinator knows more of it: {obstacle.instruction}")
    state = rebuilt_from_logs(run, now, ours=own_writes.is_sealed(opened.root)).state
    record = ledger_line(state, "state_rebuilt", format_time(now), status=state.get("status"))
    return Restored(
        "rebuild the state from the run's logs",
        state,
        (
            *damaged,
            Write(opened.root / schema.LEDGER, APPEND, log_line(record)),
            Write(opened.root / schema.STATE, REPLACE, json_document(state)),
        ),
    )


def set_apart(root: Path, run: Run, now: datetime) -> tuple[Write, ...]:
    """The writes that keep a damaged state, the last one; none where it is missing.

    Raises:
        Refused: it cannot be read at all.
    """
    if run.state.missing:
        return ()
    place = root / schema.STATE
    try:
        data = read_bounded(place, schema.LOG_LIMIT)
    except Unreadable as error:
        raise Refused(f"{place} is {error.reason}: move it away first") from None
    name = f"{KEPT}/state.json.damaged-{now:%Y%m%dT%H%M%SZ}"
    return (*own_writes.ignoring_own_files(root), Write(root / name, REPLACE, data))


class LoggedPlace(NamedTuple):
    """Where a run is: its id, its phase, its status, and why it is blocked where it is."""

    run_id: str
    phase: str
    status: str
    blocked_on: str = ""
    category: str = ""


def rebuilt_from_logs(run: Run, now: datetime, *, ours: bool) -> Move:
    """The state that a run's logs lead to.

    Args:
        run: its state is lost; its configuration and logs can be read.
        now: the time.
        ours: whether acp made the run.

    Raises:
        Refused: the logs tell of no phase that the configuration has, or of an initiative, whose
            barriers only the coordinator knows.
    """
    at, place = format_time(now), _logged_place(run)
    if not place.run_id:
        return Move(_provenance(initial(run.config.value, at) | {"rebuilt_at": at}, run, ours))
    if place.phase not in run.phases:
        known = ", ".join(run.phases)
        raise Refused(f"its logs name the unknown phase “{place.phase}” (phases: {known})")
    if place.blocked_on.startswith("barrier:"):
        raise Refused(
            f"it was held at the {place.blocked_on.replace(':', ' ')}, and no coordinator knows it:"
            " restore the state from a backup"
        )
    state = _provenance(state_in_phase(run, place.run_id, place.phase, now), run, ours)
    lines = lines_of_run(run.history.lines, place.run_id)
    if place.status == "completed":
        return Move(
            state | {"status": "completed", "completed_at": _ended(run, place.run_id) or at}
        )
    asked = request_of_last_turn(run, lines, place.phase)
    if place.status == "paused" and asked is not None:
        return waiting(Move(state), asked, at)._replace(events=())
    if place.status == "blocked":
        last = text(lines[-1].value, "turn_id", 200) if lines else None
        on = place.blocked_on or "human:its state was lost while it was blocked"
        move = blocked(Move(state), on, place.category or "needs_human", _detail(on), last, at)
        return move._replace(events=())
    return Move(state)


def state_in_phase(run: Run, run_id: str, phase: str, now: datetime) -> Object:
    """The state of an active run in a phase, with what its history tells of turns and costs."""
    at, lines = format_time(now), lines_of_run(run.history.lines, run_id)
    last = lines[-1].value if lines else {}
    proposed = last.get("proposed_next_role") if last.get("phase") == phase else None
    state = initial(run.config.value, at) | {
        "run_id": run_id,
        "status": "active",
        "phase": phase,
        "rebuilt_at": at,
        "created_at": begun_at(run, run_id) or at,
        "phase_entered_at": entered_at(run, run_id, phase) or at,
        "turn_sequence": max(
            (number(line.value, "accepted_sequence") or 0 for line in lines), default=0
        ),
        "last_completed_turn_id": last.get("turn_id"),
        "next_recommended_role": proposed
        if isinstance(proposed, str) and proposed in objects(run.config.value.get("roles"))
        else None,
    }
    costs = [obj(line.value, "cost").get("usd") for line in lines]
    spent = sum(each for each in costs if isinstance(each, int | float))
    state["budget_status"]["spent_usd"] = round(spent, 6)
    state["phase_gate_status"] |= {
        exit_gate(run.config.value, each): "passed"
        for each in run.phases
        if is_before(run, each, phase)
    }
    return state


def request_of_last_turn(run: Run, lines: list[Line], phase: str) -> Request | None:
    """What the last turn that was accepted in a phase asks for."""
    last = next((e.value for e in reversed(lines) if e.value.get("phase") == phase), {})
    to = last.get("phase_transition_request")
    if not (to or last.get("run_completion_request")):
        return None
    gate, turn = exit_gate(run.config.value, phase), text(last, "turn_id", 200)
    kind = "phase_transition" if to else "run_completion"
    return Request(kind, gate, phase, to if isinstance(to, str) else "", turn)


def lines_of_run(lines: Iterable[Line], run_id: str) -> list[Line]:
    """The lines of a log that tell of a run."""
    return [line for line in lines if line.value.get("run_id") == run_id]


def is_before(run: Run, phase: str, other: str) -> bool:
    """Whether a phase comes before another one."""
    return phase in run.phases and run.phases.index(phase) < run.phases.index(other)


def begun_at(run: Run, run_id: str) -> str:
    """When a run began, "" where no event tells."""
    for line in lines_of_run(run.events.lines, run_id):
        if line.value.get("event_type") == "run_started":
            return text(line.value, "timestamp", 40)
    return ""


def entered_at(run: Run, run_id: str, phase: str) -> str:
    """When a run entered a phase, "" where no event tells."""
    found = begun_at(run, run_id) if run.phases[0] == phase else ""
    for line in lines_of_run(run.events.lines, run_id):
        value = line.value
        if value.get("event_type") == "phase_entered" and obj(value, "payload").get("to") == phase:
            found = text(value, "timestamp", 40)
    return found


def _ended(run: Run, run_id: str) -> str:
    return next(
        (text(line.value, "timestamp", 40) for line in lines_of_run(run.events.lines, run_id)
         if line.value.get("event_type") == "run_completed"), ""
    )  # fmt: skip


def _logged_place(run: Run) -> LoggedPlace:
    """Where the logs leave a run: as the last event tells, or the history where that is newer."""
    id = _run_id(run)
    lines, events = lines_of_run(run.history.lines, id), lines_of_run(run.events.lines, id)
    last = lines[-1].value if lines else {}
    known = {obj(each.value, "turn").get("turn_id") for each in events}
    if events and (not last or last.get("turn_id") in known):
        return _from_events(id, events)
    return _from_history(run, id, last)


def _from_events(id: str, events: list[Line]) -> LoggedPlace:
    last = events[-1].value
    phase, status = text(last, "phase", 200), text(last, "status", 40)
    if status != "blocked":
        return LoggedPlace(id, phase, status)
    block = next(
        (obj(e.value, "payload") for e in reversed(events)
         if e.value.get("event_type") == "run_blocked"), {}
    )  # fmt: skip
    return LoggedPlace(
        id, phase, status, text(block, "blocked_on", 300), text(block, "category", 80)
    )


def _from_history(run: Run, id: str, last: Object) -> LoggedPlace:
    """As the last accepted turn leaves it, and what a human decided about its gate since."""
    phase = text(last, "phase", 200) or run.phases[0]
    gates = [
        line.value
        for line in lines_of_run(run.ledger.lines, id)
        if line.value.get("type") in ("gate_approved", "gate_rejected")
        and line.value.get("requested_by_turn") == last.get("turn_id")
    ]
    if gates and gates[-1].get("type") == "gate_approved":
        to = text(gates[-1], "to", 200)
        return LoggedPlace(id, to or phase, "active" if to else "completed")
    if last.get("status") in ("needs_human", "blocked"):
        why = text(last, "needs_human_reason", 300) or text(last, "summary", 300)
        return LoggedPlace(id, phase, "blocked", f"human:{why}", "needs_human")
    asks = last.get("phase_transition_request") or last.get("run_completion_request")
    return LoggedPlace(id, phase, "paused" if asks and not gates else "active")


def _run_id(run: Run) -> str:
    """The run that the logs tell of last."""
    for log in (run.events, run.history, run.ledger):
        for line in reversed(log.lines):
            id = line.value.get("run_id")
            if isinstance(id, str) and id:
                return id
    return ""


def _provenance(state: Object, run: Run, ours: bool) -> Object:
    """The state with who made the run: as its first event tells, and "acp" only where acp did."""
    recorded = next(
        (obj(obj(line.value, "payload"), "provenance") for line in run.events.lines
         if line.value.get("event_type") == "run_started"), {}
    )  # fmt: skip
    made = recorded or obj(state, "provenance")
    by = recorded.get("created_by")
    if ours:
        by = "acp"
    elif by == "acp" or not recorded:
        by = "acp" if schema.obj(run.config.value, "rules").get("mandatory_objections") else None
    return state | {"provenance": made | {"created_by": by}}


def _detail(on: str) -> str:
    kind, _, rest = on.partition(":")
    return rest if kind == "human" and rest else on


BACKUPS = ".agentxchain/backups/transactions"


def setting_aside(opened: Opened, now: datetime) -> RunPlan:
    """Put every unfinished note aside.

    Raises:
        Refused: there is none, or that program is at work.
    """
    if not opened.run.unfinished:
        raise Refused("the agentxchain program left nothing unfinished")
    home = opened.root / RUN_HOME
    holder = existing_program.lock_holder(home)
    if (
        opened.held is None
        and holder is not None
        and not existing_program.is_lock_stale(home, holder)
    ):
        raise Refused(existing_program.lock_refusal(home, holder))
    place = opened.root / BACKUPS / re.sub(r"[:.]", "-", format_time(now))
    wanted = []
    for each in opened.run.unfinished:
        data = content(opened.root, each.name)
        if data is not None:
            below = os.path.relpath(each.name, existing_program.TRANSACTIONS)
            wanted += [
                Write(place / below, REPLACE, data),
                Write(opened.root / each.name, REMOVE),
            ]
    begun = "; ".join(map(existing_program.describe_transaction, opened.run.unfinished[:10]))
    kept = tuple(os.path.relpath(w.path, opened.root) for w in wanted if w.verb == REPLACE)
    return RunPlan(
        "set aside unfinished writes of the agentxchain program",
        f"Set aside the unfinished {begun} of the agentxchain program.",
        f"Set aside as {', '.join(kept)}.",
        writes=wanted,
        after={"set_aside": kept},
    )
