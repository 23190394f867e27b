"""The gate that waits: approved or rejected, with what speaks for and against it."""

from __future__ import annotations

from datetime import datetime

from acp_core.model.action import Action
from acp_core.model.action_spec import ActionSpec
from acp_core.model.clock import utc_now
from acp_core.model.errors import Refused
from acp_core.model.text import clean_line
from acp_core.protocols.governed.acts import table_deciding
from acp_core.protocols.governed.acts.common import Done, Planned, Steps, of_run, open_run
from acp_core.protocols.governed.read import existing_program, gates
from acp_core.protocols.governed.state import Request, pending
from acp_core.protocols.governed.write import decide
from acp_core.protocols.governed.write.opened import Opened, read_unlocked, who
from acp_core.protocols.kit.binding import Context
from acp_core.protocols.kit.values import Values


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
    return _approving(table_deciding.APPROVAL, opened, pending(opened.state))


def transition(context: Context, now: datetime) -> Action:
    """Open the gate to the next phase."""
    opened = open_run(context)
    return _approving(table_deciding.TRANSITION, opened, pending(opened.state, "phase_transition"))


def completion(context: Context, now: datetime) -> Action:
    """Open the last gate."""
    opened = open_run(context)
    return _approving(table_deciding.COMPLETION, opened, pending(opened.state, "run_completion"))


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
        table_deciding.GATE_REJECTION, opened, Steps(plan, describe, perform),
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
