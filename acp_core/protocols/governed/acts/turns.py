"""What a human does in a run, and a role's program with its tools.

A turn is given out, its program stopped, its staged result accepted, corrected or sent back; the
gate that waits is decided, the run stopped or unblocked, an objection answered, a message left.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

from acp_core.agents.budgets import caps_of
from acp_core.agents.processes import identify
from acp_core.model.action import Action
from acp_core.model.action_spec import PLACE, ActionSpec, Answer, By
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.protocols.governed import queries, schema
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.common import Done, is_possible, of_run, open_run
from acp_core.protocols.governed.acts.table import CHECK, SCHEMA, TALKING
from acp_core.protocols.governed.conduct import taking
from acp_core.protocols.governed.read import existing_program
from acp_core.protocols.governed.read.run import ActiveTurn
from acp_core.protocols.governed.schema import Runtime, blocked_by, objects, roles_of, text
from acp_core.protocols.governed.state import (
    Request,
    active_turn,
    format_time,
    next_role,
    pending,
    turns_of,
    unblocked,
)
from acp_core.protocols.governed.write import decide, turns
from acp_core.protocols.governed.write.opened import (
    Opened,
    RunPlan,
    permitted,
    read_unlocked,
    refuse_agents,
)
from acp_core.protocols.governed.write.turns import Dispatched, TakenTurn
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.command import perform
from acp_core.protocols.kit.command_line import say, warn
from acp_core.protocols.kit.parser import say_object
from acp_core.protocols.kit.tools import WHO
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


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

    def plan(fresh: Opened, values: Values) -> RunPlan:
        return turns.accepting(fresh, values.turn or None, values.exclude, utc_now())

    def perform(values: Values) -> Done:
        made, news = turns.accept(opened.root, values.turn or None, utc_now(), values.exclude)
        said = " ".join([made.done, *made.said, *(f"Initiative: {each}." for each in news)])
        data = {**made.after, "warnings": made.said, "initiative": news}
        return Done(said, read_unlocked(opened.root).state, data)

    return of_run(
        table.ACCEPTANCE, opened, plan, perform, human=False,
        narrowed=_unasked(turn), label=_named(turn, "Accept the turn"),
        offered=turn is not None and _may_pass(opened, turn),
    )  # fmt: skip


def _may_pass(opened: Opened, turn: ActiveTurn) -> bool:
    """Whether a staged result is sound in itself; changes that it does not declare can be excluded."""
    if opened.state.get("status") != "active":
        return False
    try:
        verdict = turns.judge(opened, str(turn.raw.get("turn_id"))).verdict
    except (Refused, OSError):
        return False
    return verdict.ok or verdict.stage == "observed"


def correction(context: Context, now: datetime) -> Action:
    """Apply the corrections that are proposed for the staged result; offered where some are."""
    opened = open_run(context)
    turn = _staged(opened)

    def plan(fresh: Opened, values: Values) -> RunPlan:
        return turns.correcting(fresh, values.turn or None)

    return of_run(
        table.CORRECTION, opened, plan, human=False,
        narrowed=_unasked(turn), label=_named(turn, "Correct the result"),
        offered=turn is not None and _is_correctable(opened, turn),
    )  # fmt: skip


def _is_correctable(opened: Opened, turn: ActiveTurn) -> bool:
    try:
        verdict = turns.judge(opened, str(turn.raw.get("turn_id"))).verdict
    except (Refused, OSError):
        return False
    active = opened.state.get("status") == "active"
    return active and not verdict.ok and bool(verdict.corrections)


def turn_rejection(context: Context, now: datetime) -> Action:
    """Send the turn that is under way back."""
    opened = open_run(context)
    turn = _staged(opened) or next(iter(opened.run.turns), None)

    def plan(fresh: Opened, values: Values) -> RunPlan:
        return decide.rejecting_turn(
            fresh, values.turn or None, values.by, values.reason, utc_now()
        )

    return of_run(
        table.TURN_REJECTION, opened, plan,
        narrowed=_unasked(turn), label=_named(turn, "Reject the turn"),
        offered=turn is not None and opened.state.get("status") == "active",
    )  # fmt: skip


def stepping(context: Context, now: datetime) -> Action:
    """Give out the next turn, or the same once more."""
    opened = open_run(context)
    narrowed, label = _next(opened)

    def plan(fresh: Opened, values: Values) -> RunPlan:
        made = turns.dispatching(fresh, values.role or None, utc_now())
        turn: Dispatched = made.subject
        runtime = fresh.run.settings.runtimes.get(turn.runtime) or Runtime()
        taker = ", a human role"
        if turn.adapter != "manual":
            taker = f"; {taking.described(runtime, fresh.root)} takes it"
        return made._replace(sentence=f"{made.sentence}{taker}.")

    return of_run(
        table.STEPPING, opened, plan, lambda values: _begin(opened, values), human=False,
        narrowed=narrowed, label=label, offered=bool(label),
    )  # fmt: skip


def _next(opened: Opened) -> tuple[dict[str, dict[str, Any]], str]:
    """Who may take the next turn, and what a button says; nothing where none can be given out."""
    try:
        planned = turns.dispatching(opened, None, utc_now())
        state = planned.move.state if planned.move else {}
        role = next_role(opened.config, state)
    except (Refused, OSError):
        return {}, ""
    turn: Dispatched = planned.subject
    allowed = (turn.role,) if turn.again else tuple(roles_of(opened.config, str(state["phase"])))
    first = turn.role if turn.again else role
    label = f"{'Reassign the turn' if turn.again else 'Assign the next turn'} to {first}"
    return {
        "role": {"choices": allowed, "default": first, "help": "The role that takes the turn."}
    }, label


def _begin(opened: Opened, values: Values) -> Done:
    root = str(opened.root)
    made = turns.dispatch(root, values.role or None, utc_now(), identify(os.getpid()))
    said = " ".join(["", *made.warnings])
    if made.adapter == "manual":
        sentence = f"{made.role} takes the turn manually: follow {made.bundle}/PROMPT.md.{said}"
        return Done(sentence, data=made._asdict())
    taking.choose_budget(root, values.budget)
    taking.take_in_background(root, made.turn_id)
    return Done(f"Started the turn of {made.role}.{said}", data=made._asdict())


def stopping(context: Context, now: datetime) -> Action:
    """End the program of the turn under way; offered while one runs."""
    opened = open_run(context)
    turn = next((each for each in opened.run.turns if each.running), None)

    def plan(fresh: Opened, values: Values) -> RunPlan:
        asked = active_turn(fresh.state, values.turn or None)
        id, running = str(asked["turn_id"]), [each for each in fresh.run.turns if each.running]
        if not any(each.raw.get("turn_id") == id for each in running):
            raise Refused(f"no program of the turn {id} is running on this machine")
        sentence = f"Stop the program of {text(asked, 'assigned_role', 80)} ({id})."
        return RunPlan("", sentence, before={"running": [each.id for each in running]})

    def perform(values: Values) -> Done:
        refuse_agents()
        permitted(read_unlocked(opened.root, schema.STOP), schema.STOP)
        id = turns.stop_turn(opened.root, values.turn or None, utc_now())
        said = f"Stopped the program of {_role(opened, id)}; you can reassign the turn."
        return Done(said, data={"turn_id": id})

    return of_run(
        table.STOPPING, opened, plan, perform,
        narrowed=_unasked(turn), label=_named(turn, "Stop the program"), offered=turn is not None,
    )  # fmt: skip


def _role(opened: Opened, id: str) -> str:
    turns = (each for each in opened.run.turns if str(each.raw.get("turn_id")) == id)
    return next((each.role for each in turns), id)


def run_step(values: Values) -> int:
    """Give the turn out and have it taken; the exit code."""
    if values.dry_run or existing_program.program(read_unlocked(values.folder).run) is not None:
        return perform(SCHEMA, "step", table.STEPPING, values)
    caps_of({}, values.budget)
    taker = None if values.no_run else identify(os.getpid())
    turn = turns.dispatch(values.folder, values.role or None, utc_now(), taker)
    taking.choose_budget(values.folder, values.budget)
    for each in turn.warnings:
        warn(each)
    if not values.json:
        _say_dispatched(turn)
    if values.no_run:
        if values.json:
            _say_object(values, turn, staged=False)
        return 0
    return _say_taken(values, turn, taking.take(values.folder, turn.turn_id, warn))


def _say_dispatched(turn: Dispatched) -> None:
    again = f" again (attempt {turn.attempt})" if turn.again else ""
    say(f"dispatched {turn.turn_id} to {turn.role}{again} ({turn.runtime}, {turn.adapter})")
    say(f"bundle: {turn.bundle}")


def _say_taken(values: Values, turn: Dispatched, came: TakenTurn) -> int:
    if values.json:
        _say_object(values, turn, staged=came.staged, waits=came.waits, reason=came.reason)
    elif came.staged:
        say(f"staged: {turn.staging}")
        if came.reason:
            say(f"note: {came.reason}")
        say(f"next: acp governed accept-turn {values.folder}")
    elif came.waits:
        say(
            f"{turn.role} takes the turn manually: read {turn.bundle}/PROMPT.md, write {turn.staging}"
        )
    else:
        say(f"not staged: {came.reason}; retry with `acp governed step {values.folder}`")
    return 0 if came.staged or came.waits else 1


def _say_object(values: Values, turn: Dispatched, **more: object) -> None:
    outcome = {"verb": "step", "folder": values.folder, **turn._asdict(), **more}
    say_object(SCHEMA, "step", done=True, **outcome)


CHECK_RESULT = CHECK._replace(
    name="check_result",
    sentence="Check the staged result of your turn without changing anything.",
    answer="acp_core.protocols.governed.acts.turns:check_result",
    fields=(PLACE, WHO),
    by=By.PARTICIPANT,
)

LEAVE_MESSAGE = TALKING._replace(
    name="leave_message",
    bind="acp_core.protocols.governed.acts.turns:leaving_message",
    fields=(WHO, *(each for each in TALKING.fields if each.name == "text")),
    by=By.PARTICIPANT,
)

TOOLS = (CHECK_RESULT, LEAVE_MESSAGE)


def check_result(values: Values) -> Answer:
    """Whether a role's staged result would be accepted, and what is wrong where not."""
    turns = turns_of(read_unlocked(values.folder).state)
    own = [id for id, turn in turns.items() if turn.get("assigned_role") == values.participant]
    if not own:
        raise Refused(f"no turn of {values.participant} is under way")
    return queries.check(Values(folder=values.folder, turn=own[0]))


def leaving_message(context: Context, now: datetime) -> Action:
    """Write into TALK.md as the role itself."""
    return of_run(
        LEAVE_MESSAGE, open_run(context),
        lambda fresh, values: decide.talking(fresh, values.text, values.participant, utc_now()),
        human=False,
    )  # fmt: skip


def unblocking(context: Context, now: datetime) -> Action:
    """Let a blocked run go on; offered unless it waits at a gate or a barrier."""
    opened = open_run(context)
    under_way = bool(objects(opened.state.get("active_turns")))

    def plan(fresh: Opened, values: Values) -> RunPlan:
        return decide.unblocking(
            fresh, values.by, values.comment, utc_now(), drop_turn=values.drop_turn
        )

    return of_run(
        table.UNBLOCKING, opened, plan,
        narrowed={"drop_turn": {"form": under_way}},
        sentence=f"Confirm that this is resolved: {blocked_by(opened.state)}.",
        offered=is_possible(lambda: unblocked(opened.state, "you", "", format_time(now))),
    )  # fmt: skip


def escalation(context: Context, now: datetime) -> Action:
    """Stop the run; offered while it is active."""
    opened = open_run(context)

    def plan(fresh: Opened, values: Values) -> RunPlan:
        return decide.escalating(fresh, values.reason, values.detail, values.by, utc_now())

    active = opened.state.get("status") == "active"
    return of_run(table.ESCALATION, opened, plan, offered=active)


def objection(context: Context, now: datetime) -> Action:
    """Say what became of an objection; offered while one is open."""
    opened = open_run(context)
    waiting = [each for each in opened.run.objections if each.open]
    about = "; ".join(f"{o.id} ({o.severity}): {o.statement}" for o in waiting[:10])
    choice = {
        "choices": tuple(each.id for each in waiting),
        "default": waiting[0].id if waiting else None,
        "required": False,
        "help": safe(about),
    }

    def plan(fresh: Opened, values: Values) -> RunPlan:
        id, status = values.objection, values.status
        return decide.marking(fresh, id, status, values.by, values.comment, utc_now())

    return of_run(
        table.OBJECTION, opened, plan,
        narrowed={"objection": choice}, offered=bool(waiting),
    )  # fmt: skip


def talking(context: Context, now: datetime) -> Action:
    """Write into TALK.md."""
    return of_run(
        table.TALKING, open_run(context),
        lambda fresh, values: decide.talking(fresh, values.text, values.by, utc_now()),
        human=False,
    )  # fmt: skip


def approval(context: Context, now: datetime) -> Action:
    """Open the gate that waits, whichever it is."""
    opened = open_run(context)
    return _approving_gate(table.GATE_APPROVAL, opened, pending(opened.state))


def transition(context: Context, now: datetime) -> Action:
    """Open the gate to the next phase."""
    opened = open_run(context)
    return _approving_gate(table.TRANSITION, opened, pending(opened.state, "phase_transition"))


def completion(context: Context, now: datetime) -> Action:
    """Open the last gate."""
    opened = open_run(context)
    return _approving_gate(table.COMPLETION, opened, pending(opened.state, "run_completion"))


def _approving_gate(spec: ActionSpec, opened: Opened, request: Request) -> Action:
    def plan(fresh: Opened, values: Values) -> RunPlan:
        return decide.approving(fresh, request.kind, values.by, values.comment, utc_now())

    return of_run(
        spec, opened, plan,
        label=f"Approve {request.gate}", sentence=f"Open the gate {request.gate}: {request.aim}.",
    )  # fmt: skip


def gate_rejection(context: Context, now: datetime) -> Action:
    """Send the phase back to work from the gate that waits."""
    opened = open_run(context)
    request = pending(opened.state)

    def plan(fresh: Opened, values: Values) -> RunPlan:
        return decide.rejecting_gate(fresh, values.by, values.comment, utc_now())

    return of_run(
        table.GATE_REJECTION, opened, plan,
        label=f"Reject {request.gate}",
        sentence=f"Send the phase {request.phase} back to work; the next agent reads what is missing.",
    )  # fmt: skip
