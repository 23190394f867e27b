"""What a human does in a run, and a role's program with its tools.

A turn is given out, its program stopped, its staged result accepted, corrected or sent back; the
gate that waits is decided, the run stopped or unblocked, an objection answered, a message left.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from acp_core.agents.budgets import caps_of
from acp_core.agents.identity import identify
from acp_core.files.transaction import REPLACE, Write
from acp_core.model.action import Action, Outcome, OutcomeState, Preview
from acp_core.model.action_spec import PLACE, ActionSpec, Answer, By
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed import prompts, queries
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.common import Done, Planned, Steps, of_run, open_run
from acp_core.protocols.governed.acts.table import CHECK, SCHEMA, TALKING
from acp_core.protocols.governed.conduct import taking
from acp_core.protocols.governed.read import existing_program, run
from acp_core.protocols.governed.read.run import ActiveTurn
from acp_core.protocols.governed.schema import Runtime, blocked_by, objects, plain, roles_of, text
from acp_core.protocols.governed.state import (
    Request,
    active_turn,
    escalated,
    format_time,
    next_role,
    pending,
    turns_of,
)
from acp_core.protocols.governed.write import decide, turns
from acp_core.protocols.governed.write import turns as write_turns
from acp_core.protocols.governed.write.opened import Opened, json_document, read_unlocked, who
from acp_core.protocols.governed.write.turns import Dispatched, Judged, NotAccepted, TakenTurn
from acp_core.protocols.kit.binding import Context, bound
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

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        judged = write_turns.judge(fresh, values.turn or None, values.exclude)
        said, warnings = _verdict_lines(judged)
        return f"Accept the turn of {text(judged.turn, 'assigned_role', 80)}. {said}", warnings

    def plan(fresh: Opened, values: Values) -> Planned:
        judged = write_turns.judge(fresh, values.turn or None, values.exclude)
        if not judged.verdict.ok:
            raise NotAccepted(judged.verdict)
        return write_turns.prepare(fresh, judged, utc_now())

    def perform(values: Values) -> Done:
        done = write_turns.accept(opened.root, values.turn or None, utc_now(), values.exclude)
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
        verdict = write_turns.judge(opened, str(turn.raw.get("turn_id"))).verdict
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
        judged = write_turns.judge(fresh, values.turn or None)
        proposed = [
            f"{c.field} becomes {json.dumps(c.value, ensure_ascii=False)} ({c.reason})"
            for c in judged.verdict.corrections
        ]
        role = text(judged.turn, "assigned_role", 80)
        return f"Correct the result of {role}: {'; '.join(proposed)}.", ()

    def plan(fresh: Opened, values: Values) -> Planned:
        judged = write_turns.judge(fresh, values.turn or None)
        new, _ = write_turns.corrected(judged)
        path = fresh.root / prompts.staged(judged.turn["turn_id"])
        return None, [Write(path, REPLACE, json_document(new))]

    def data(fresh: Opened, values: Values) -> Mapping[str, object]:
        return {"fields": write_turns.corrected(write_turns.judge(fresh, values.turn or None))[1]}

    def perform(values: Values) -> Done:
        fields = write_turns.correct(opened.root, values.turn or None)
        return Done(f"Corrected: {', '.join(fields)}.", data={"fields": fields})

    return of_run(
        table.CORRECTION, opened,
        Steps(plan, describe, perform, human=False, data=data),
        narrowed=_unasked(turn), label=_named(turn, "Correct the result"),
        offered=turn is not None and _is_correctable(opened, turn),
    )  # fmt: skip


def _is_correctable(opened: Opened, turn: ActiveTurn) -> bool:
    try:
        verdict = write_turns.judge(opened, str(turn.raw.get("turn_id"))).verdict
    except (Refused, OSError):
        return False
    active = opened.state.get("status") == "active"
    return active and not verdict.ok and bool(verdict.corrections)


def turn_rejection(context: Context, now: datetime) -> Action:
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
        made = write_turns.plan(fresh, values.role or None, utc_now())
        place = fresh.root / run.bundle_folder(made.turn["turn_id"])
        return made.move, [Write(place / n, REPLACE, data) for n, data in made.files.items()]

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        planned = write_turns.plan(fresh, values.role or None, utc_now())
        made = write_turns.describe(fresh.config, planned)
        again = "again " if made.again else ""
        if made.adapter == "manual":
            return f"Assign the turn {again}to {made.role}, a human role.", ()
        runtime = fresh.run.settings.runtimes.get(made.runtime) or Runtime()
        line = taking.described(runtime, fresh.root)
        return f"Assign the turn {again}to {made.role}; {line} takes it.", ()

    def data(fresh: Opened, values: Values) -> Mapping[str, object]:
        planned = write_turns.plan(fresh, values.role or None, utc_now())
        return write_turns.describe(fresh.config, planned)._asdict()

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
        planned = write_turns.plan(opened, None, utc_now())
        role = next_role(opened.config, planned.move.state)
    except (Refused, OSError):
        return {}, ""
    turn = write_turns.describe(opened.config, planned)
    phase = str(planned.move.state["phase"])
    allowed = (turn.role,) if turn.again else tuple(roles_of(opened.config, phase))
    first = turn.role if turn.again else role
    label = f"{'Reassign the turn' if turn.again else 'Assign the next turn'} to {first}"
    return {
        "role": {"choices": allowed, "default": first, "help": "The role that takes the turn."}
    }, label


def _begin(opened: Opened, values: Values) -> Done:
    root = str(opened.root)
    made = write_turns.dispatch(root, values.role or None, utc_now(), identify(os.getpid()))
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
        id = write_turns.stop_turn(opened.root, values.turn or None, utc_now())
        said = f"Stopped the program of {_role(opened, id)}; you can reassign the turn."
        return Done(said, data={"turn_id": id})

    return of_run(
        table.STOPPING, opened, Steps(plan, describe, perform, data=data),
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
    root = open_run(context).root

    def perform(values: Values) -> Outcome:
        decide.talk(root, values.text, values.participant, utc_now())
        return Outcome(OutcomeState.DONE, "Added to TALK.md.")

    return bound(
        LEAVE_MESSAGE, context, lambda values: Preview("Add your message to TALK.md."), perform
    )


def unblocking(context: Context, now: datetime) -> Action:
    """Let a blocked run go on; offered unless it waits at a gate or a barrier."""
    opened = open_run(context)
    turns = bool(objects(opened.state.get("active_turns")))

    def plan(fresh: Opened, values: Values) -> Planned:
        return decide.unblocking(
            fresh, who(values.by), values.comment, utc_now(), drop_turn=values.drop_turn
        )

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        return f"You confirm that this is resolved: {blocked_by(fresh.state)}.", ()

    def perform(values: Values) -> Done:
        state = decide.unblock(
            opened.root, values.by, values.comment, utc_now(), drop_turn=values.drop_turn
        )
        return Done(f"Unblocked: {state.get('phase')} is {state.get('status')}.", state)

    def words(fresh: Opened, values: Values) -> list[str]:
        return existing_program.words(fresh.run, "unblock")

    return of_run(
        table.UNBLOCKING, opened, Steps(plan, describe, perform, words),
        narrowed={"drop_turn": {"form": turns}},
        sentence=f"Confirm that this is resolved: {blocked_by(opened.state)}.",
        offered=_can_go_on(opened),
    )  # fmt: skip


def _can_go_on(opened: Opened) -> bool:
    try:
        decide.unblocking(opened, "you", "", utc_now())
    except (Refused, OSError):
        return False
    return True


def escalation(context: Context, now: datetime) -> Action:
    """Stop the run; offered while it is active."""
    opened = open_run(context)

    def plan(fresh: Opened, values: Values) -> Planned:
        at, by = format_time(utc_now()), who(values.by)
        return escalated(fresh.state, values.reason, values.detail, by, at), ()

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        return "Block the run until a human unblocks it.", ()

    def perform(values: Values) -> Done:
        state = decide.escalate(opened.root, values.reason, values.detail, values.by, utc_now())
        return Done(f"Stopped: {blocked_by(state)}.", state)

    def words(fresh: Opened, values: Values) -> list[str]:
        return existing_program.words(fresh.run, "escalate", reason=values.reason)

    return of_run(
        table.ESCALATION, opened, Steps(plan, describe, perform, words),
        offered=opened.state.get("status") == "active",
    )  # fmt: skip


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

    def plan(fresh: Opened, values: Values) -> Planned:
        by, id = who(values.by), values.objection
        return decide.marking(fresh, id, values.status, by, values.comment, utc_now()), ()

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        stated = next((each for each in fresh.run.objections if each.id == values.objection), None)
        if stated is None:
            return f"Mark {values.objection} as {values.status}.", ()
        return f"Mark {stated.id} of {stated.raised_by} as {values.status}: {stated.statement}", ()

    def perform(values: Values) -> Done:
        id, status = values.objection, values.status
        state = decide.mark_objection(opened.root, id, status, values.by, values.comment, utc_now())
        return Done(f"{id} is {plain(status)}.", state)

    return of_run(
        table.OBJECTION, opened, Steps(plan, describe, perform),
        narrowed={"objection": choice}, offered=bool(waiting),
    )  # fmt: skip


def talking(context: Context, now: datetime) -> Action:
    """Write into TALK.md."""
    opened = open_run(context)

    def plan(fresh: Opened, values: Values) -> Planned:
        return None, [decide.talking(fresh, values.text, who(values.by), utc_now())]

    def perform(values: Values) -> Done:
        decide.talk(opened.root, values.text, values.by, utc_now())
        return Done("Added to TALK.md.", data={"written": True})

    return of_run(
        table.TALKING, opened,
        Steps(plan, lambda fresh, values: ("Add your message to TALK.md.", ()), perform, human=False),
    )  # fmt: skip


def evidence(opened: Opened, request: Request) -> tuple[str, tuple[str, ...]]:
    """Who asks with which words and which verification; and what speaks against it."""
    said = f"Gate {request.gate}"
    for turn in reversed(opened.run.accepted):
        if turn.turn_id == request.turn:
            summary = clean_line(turn.summary, 400)
            said += f", requested by {turn.role} ({request.turn}): “{summary}”"
            break
    verification = run.latest_verification(opened.run)
    if verification:
        said += f" Verification: {verification}."
    demanded = run.predicates(opened.root, opened.config, request.gate, verification)
    met = [each.name for each in demanded if each.met]
    if met:
        said += f" Met: {', '.join(met)}."
    against = [f"not met: {each}" for each in decide.unmet(opened, request)]
    against += [
        f"open objection {o.id} ({o.severity}) of {o.raised_by}: {o.statement}"
        for o in opened.run.objections
        if o.open
    ]
    return said, tuple(against)


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
    to = f"enter {request.to}" if request.to else "complete the run"
    kind = request.kind
    its_own = "approve-transition" if request.to else "approve-completion"

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        said, against = evidence(fresh, pending(fresh.state, kind))
        return f"Approve and {to}. {said}", against

    def plan(fresh: Opened, values: Values) -> Planned:
        return decide.approving(fresh, kind, who(values.by), values.comment, utc_now()), ()

    def perform(values: Values) -> Done:
        state = decide.approve(opened.root, kind, values.by, values.comment, utc_now())
        if state.get("status") == "completed":
            return Done(f"Approved {request.gate}: the run is completed.", state)
        return Done(f"Approved {request.gate}: {state.get('phase')} begins.", state)

    def words(fresh: Opened, values: Values) -> list[str]:
        return existing_program.words(fresh.run, its_own)

    return of_run(
        spec, opened, Steps(plan, describe, perform, words),
        label=f"Approve {request.gate}", sentence=f"Open the gate {request.gate}: {to}.",
    )  # fmt: skip


def gate_rejection(context: Context, now: datetime) -> Action:
    """Send the phase back to work from the gate that waits."""
    opened = open_run(context)
    request = pending(opened.state)

    def describe(fresh: Opened, values: Values) -> tuple[str, tuple[str, ...]]:
        said, against = evidence(fresh, pending(fresh.state))
        return f"Send {request.phase} back to work. {said}", against

    def plan(fresh: Opened, values: Values) -> Planned:
        _must_be_able(fresh)
        return decide.rejecting_gate(fresh, who(values.by), values.comment, utc_now()), ()

    def perform(values: Values) -> Done:
        _must_be_able(read_unlocked(opened.root))
        state = decide.reject_gate(opened.root, values.by, values.comment, utc_now())
        return Done(f"Rejected {request.gate}: work on {state.get('phase')} resumes.", state)

    return of_run(
        table.GATE_REJECTION, opened, Steps(plan, describe, perform),
        label=f"Reject {request.gate}",
        sentence=f"Send the phase {request.phase} back to work; the next agent reads what is missing.",
    )  # fmt: skip


def _must_be_able(opened: Opened) -> None:
    """Refuse to reject behind the back of the existing program, which knows no rejection.

    Raises:
        Refused: the run is its.
    """
    if existing_program.program(opened.run) is not None:
        raise Refused(
            f"{existing_program.NAME} cannot reject a gate: escalate, or let the role take"
            " another turn"
        )
