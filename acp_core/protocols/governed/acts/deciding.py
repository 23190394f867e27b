"""What else a human decides in a run: the gate that waits, blocks, objections and words."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed.acts import table
from acp_core.protocols.governed.acts.common import Done, Planned, Steps, of_run, open_run
from acp_core.protocols.governed.read import existing_program, gates
from acp_core.protocols.governed.schema import blocked_by, objects, plain
from acp_core.protocols.governed.state import Request, escalated, format_time, pending
from acp_core.protocols.governed.write import decide
from acp_core.protocols.governed.write.opened import Opened, read_unlocked, who
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.values import Values
from acp_core.protocols.kit.wording import safe


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
    verification = gates.latest_verification(opened.run)
    if verification:
        said += f" Verification: {verification}."
    demanded = gates.predicates(opened.root, opened.config, request.gate, verification)
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
    return _approving(table.GATE_APPROVAL, opened, pending(opened.state))


def transition(context: Context, now: datetime) -> Action:
    """Open the gate to the next phase."""
    opened = open_run(context)
    return _approving(table.TRANSITION, opened, pending(opened.state, "phase_transition"))


def completion(context: Context, now: datetime) -> Action:
    """Open the last gate."""
    opened = open_run(context)
    return _approving(table.COMPLETION, opened, pending(opened.state, "run_completion"))


def _approving(spec: ActionSpec, opened: Opened, request: Request) -> Action:
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


def rejection(context: Context, now: datetime) -> Action:
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
