"""Turns: the next one given out, a staged result accepted, corrected or sent back."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from acp_core.agents.processes import identify
from acp_core.files.transaction import REPLACE, Write
from acp_core.model.action import Action
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.governed import prompts
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.common import Done, Planned, Steps, of_run, open_run
from acp_core.protocols.governed.conduct import adapters
from acp_core.protocols.governed.read import existing_program, turn_files
from acp_core.protocols.governed.read.run import ActiveTurn
from acp_core.protocols.governed.schema import Runtime, blocked_by, roles_of, text
from acp_core.protocols.governed.state import active_turn, next_role
from acp_core.protocols.governed.write import accept, decide, dispatch
from acp_core.protocols.governed.write.accept import Judged, NotAccepted
from acp_core.protocols.governed.write.opened import Opened, json_document, who
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.values import Values


def _staged(opened: Opened) -> ActiveTurn | None:
    """The turn whose result waits, None where there is none."""
    return next((turn for turn in opened.run.turns if turn.staged), None)


def _unasked(turn: ActiveTurn | None) -> dict[str, dict[str, Any]]:
    """The turn that a form is about: it asks for none."""
    return {"turn": {"unasked": str(turn.raw.get("turn_id")) if turn else ""}}


def _named(turn: ActiveTurn | None, of: str) -> str:
    return f"{of} of {turn.role}" if turn else of


def acceptance(context: Context, now: datetime) -> Action:
    """Accept the staged result."""
    opened = open_run(context)
    turn = _staged(opened)

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        judged = accept.judge(fresh, values.turn or None, values.exclude)
        said, warnings = _verdict_lines(judged)
        return f"Accept the turn of {text(judged.turn, 'assigned_role', 80)}. {said}", warnings

    def plan(fresh: Opened, values: Values) -> Planned:
        judged = accept.judge(fresh, values.turn or None, values.exclude)
        if not judged.verdict.ok:
            raise NotAccepted(judged.verdict)
        return accept.prepare(fresh, judged, utc_now())

    def perform(values: Values) -> Done:
        done = accept.accept(opened.root, values.turn or None, utc_now(), values.exclude)
        gate = f"; the gate {done.waiting_gate} waits for you" if done.waiting_gate else ""
        said = " ".join(["", *done.warnings, *(f"Initiative: {each}." for each in done.news)])
        data = {"turn_id": done.turn_id, "role": done.role, "warnings": done.warnings,
                "initiative": done.news}  # fmt: skip
        sentence = f"Accepted the turn of {done.role}: {done.phase} is {done.status}{gate}.{said}"
        return Done(sentence, open_run_again(opened), data)

    def words(fresh: Opened, values: Values) -> list[str]:
        return existing_program.words(fresh.run, "accept-turn", turn=values.turn)

    return of_run(
        table.ACCEPTANCE, opened, Steps(plan, describe, perform, words, human=False),
        narrowed=_unasked(turn), label=_named(turn, "Accept the turn"),
        offered=turn is not None and _may_pass(opened, turn),
    )  # fmt: skip


def _may_pass(opened: Opened, turn: ActiveTurn) -> bool:
    """Whether a staged result is sound in itself; changes that it does not declare can be excluded."""
    if opened.state.get("status") != "active":
        return False
    try:
        verdict = accept.judge(opened, str(turn.raw.get("turn_id"))).verdict
    except (Refused, OSError):
        return False
    return verdict.ok or verdict.stage == "observed"


def open_run_again(opened: Opened) -> Any:
    """The state of the run as it is now."""
    from acp_core.protocols.governed.write.opened import read_unlocked

    return read_unlocked(opened.root).state


def _verdict_lines(judged: Judged) -> tuple[str, tuple[str, ...]]:
    result, verdict = judged.result, judged.verdict
    said = ""
    if isinstance(result, dict):
        asks = text(result, "phase_transition_request", 80)
        said = f"“{text(result, 'summary', 400)}” ({text(result, 'status', 40)})"
        if asks:
            said += f", asks to enter {asks}"
        elif result.get("run_completion_request") is True:
            said += ", asks to complete the run"
        said += "."
    if judged.observed.known:
        names = ", ".join(judged.observed.files[:20]) or "nothing"
        said += f" Changed in the repository: {names}."
    return said, tuple(verdict.warnings)


def correction(context: Context, now: datetime) -> Action:
    """Apply the corrections that are proposed for the staged result; offered where some are."""
    opened = open_run(context)
    turn = _staged(opened)

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        judged = accept.judge(fresh, values.turn or None)
        proposed = [
            f"{c.field} becomes {json.dumps(c.value, ensure_ascii=False)} ({c.reason})"
            for c in judged.verdict.corrections
        ]
        role = text(judged.turn, "assigned_role", 80)
        return f"Correct the result of {role}: {'; '.join(proposed)}.", ()

    def plan(fresh: Opened, values: Values) -> Planned:
        judged = accept.judge(fresh, values.turn or None)
        new, _ = accept.corrected(judged)
        path = fresh.root / prompts.staged(judged.turn["turn_id"])
        return None, [Write(path, REPLACE, json_document(new))]

    def data(fresh: Opened, values: Values) -> Mapping[str, object]:
        return {"fields": accept.corrected(accept.judge(fresh, values.turn or None))[1]}

    def perform(values: Values) -> Done:
        fields = accept.correct(opened.root, values.turn or None)
        return Done(f"Corrected: {', '.join(fields)}.", data={"fields": fields})

    return of_run(
        table.CORRECTION, opened,
        Steps(plan, describe, perform, human=False, data=data),
        narrowed=_unasked(turn), label=_named(turn, "Correct the result"),
        offered=turn is not None and _is_correctable(opened, turn),
    )  # fmt: skip


def _is_correctable(opened: Opened, turn: ActiveTurn) -> bool:
    try:
        verdict = accept.judge(opened, str(turn.raw.get("turn_id"))).verdict
    except (Refused, OSError):
        return False
    active = opened.state.get("status") == "active"
    return active and not verdict.ok and bool(verdict.corrections)


def rejection(context: Context, now: datetime) -> Action:
    """Send the turn that is under way back."""
    opened = open_run(context)
    turn = _staged(opened) or next(iter(opened.run.turns), None)

    def plan(fresh: Opened, values: Values) -> Planned:
        by = who(values.by)
        return decide.rejecting_turn(fresh, values.turn or None, by, values.reason, utc_now())

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        role = text(active_turn(fresh.state, values.turn or None), "assigned_role", 80)
        move, _ = plan(fresh, values)
        if move is not None and move.state.get("status") == "blocked":
            return f"Reject the turn of {role}: no attempts are left, so the run blocks.", ()
        return f"Reject the turn of {role} and reassign it.", ()

    def perform(values: Values) -> Done:
        state = decide.reject_turn(
            opened.root, values.turn or None, values.by, values.reason, utc_now()
        )
        if state.get("status") == "blocked":
            return Done(f"Rejected; the run is blocked: {blocked_by(state)}.", state)
        return Done("Rejected; the turn waits to be reassigned.", state)

    def words(fresh: Opened, values: Values) -> list[str]:
        turn, reason = values.turn, values.reason
        return existing_program.words(fresh.run, "reject-turn", turn=turn, reason=reason)

    return of_run(
        table.TURN_REJECTION, opened, Steps(plan, describe, perform, words),
        narrowed=_unasked(turn),
        label=_named(turn, "Reject the turn"),
        offered=turn is not None and opened.state.get("status") == "active",
    )  # fmt: skip


def stepping(context: Context, now: datetime) -> Action:
    """Give out the next turn, or the same once more."""
    opened = open_run(context)
    narrowed, label = _next(opened)

    def plan(fresh: Opened, values: Values) -> Planned:
        made = dispatch.plan(fresh, values.role or None, utc_now())
        place = fresh.root / turn_files.bundle_folder(made.turn["turn_id"])
        return made.move, [Write(place / n, REPLACE, data) for n, data in made.files.items()]

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        planned = dispatch.plan(fresh, values.role or None, utc_now())
        made = dispatch.describe(fresh.config, planned)
        again = "again " if made.again else ""
        if made.adapter == "manual":
            return f"Assign the turn {again}to {made.role}, a human role.", ()
        runtime = fresh.run.settings.runtimes.get(made.runtime) or Runtime()
        line = adapters.described(runtime, fresh.root)
        return f"Assign the turn {again}to {made.role}; {line} takes it.", ()

    def data(fresh: Opened, values: Values) -> Mapping[str, object]:
        planned = dispatch.plan(fresh, values.role or None, utc_now())
        return dispatch.describe(fresh.config, planned)._asdict()

    def words(fresh: Opened, values: Values) -> list[str]:
        return existing_program.words(fresh.run, "step", role=values.role)

    return of_run(
        table.STEPPING, opened,
        Steps(plan, describe, lambda values: _begin(opened, values), words, human=False, data=data),
        narrowed=narrowed, label=label, offered=bool(label),
    )  # fmt: skip


def _next(opened: Opened) -> tuple[dict[str, dict[str, Any]], str]:
    """Who may take the next turn, and what a button says; nothing where none can be given out."""
    try:
        planned = dispatch.plan(opened, None, utc_now())
        role = next_role(opened.config, planned.move.state)
    except (Refused, OSError):
        return {}, ""
    turn = dispatch.describe(opened.config, planned)
    phase = str(planned.move.state["phase"])
    allowed = (turn.role,) if turn.again else tuple(roles_of(opened.config, phase))
    first = turn.role if turn.again else role
    label = f"{'Reassign the turn' if turn.again else 'Assign the next turn'} to {first}"
    return {
        "role": {"choices": allowed, "default": first, "help": "The role that takes the turn."}
    }, label


def _begin(opened: Opened, values: Values) -> Done:
    root = str(opened.root)
    made = dispatch.dispatch(root, values.role or None, utc_now(), identify(os.getpid()))
    said = " ".join(["", *made.warnings])
    if made.adapter == "manual":
        sentence = f"{made.role} takes the turn manually: follow {made.bundle}/PROMPT.md.{said}"
        return Done(sentence, data=made._asdict())
    adapters.choose_budget(root, values.budget)
    adapters.take_in_background(root, made.turn_id)
    return Done(f"Started the turn of {made.role}.{said}", data=made._asdict())


def stopping(context: Context, now: datetime) -> Action:
    """End the program of the turn under way; offered while one runs."""
    opened = open_run(context)
    turn = next((each for each in opened.run.turns if each.running), None)

    def running(fresh: Opened, values: Values) -> tuple[str, str]:
        """The id and the role of the turn whose program is to be ended."""
        asked = active_turn(fresh.state, values.turn or None)
        id = str(asked["turn_id"])
        if not any(each.running for each in fresh.run.turns if each.raw.get("turn_id") == id):
            raise Refused(f"no program of the turn {id} is running on this machine")
        return id, text(asked, "assigned_role", 80)

    def plan(fresh: Opened, values: Values) -> Planned:
        running(fresh, values)
        return None, ()

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        id, role = running(fresh, values)
        return f"Stop the program of {role} ({id}).", ()

    def data(fresh: Opened, values: Values) -> Mapping[str, object]:
        return {"running": [each.id for each in fresh.run.turns if each.running]}

    def perform(values: Values) -> Done:
        id = dispatch.stop_turn(opened.root, values.turn or None, utc_now())
        said = f"Stopped the program of {_role(opened, id)}; you can reassign the turn."
        return Done(said, data={"turn_id": id})

    return of_run(
        table.STOPPING, opened, Steps(plan, describe, perform, data=data),
        narrowed=_unasked(turn), label=_named(turn, "Stop the program"), offered=turn is not None,
    )  # fmt: skip


def _role(opened: Opened, id: str) -> str:
    turns = (each for each in opened.run.turns if str(each.raw.get("turn_id")) == id)
    return next((each.role for each in turns), id)
