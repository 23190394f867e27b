"""The gate that waits: approved or rejected, with what speaks for and against it."""

from __future__ import annotations

from typing import Any

from acp_core.model.action import Action
from acp_core.protocols.governed.actions.build import BY, acting, comment, named, now
from acp_core.protocols.governed.conduct import existing_program
from acp_core.protocols.governed.schema import text
from acp_core.protocols.governed.state import gates
from acp_core.protocols.governed.state.requests import Request, pending
from acp_core.protocols.governed.write import Refused, decide
from acp_core.protocols.governed.write.opened import Opened


def _waiting(opened: Opened) -> Request | None:
    try:
        return pending(opened.state)
    except Refused:
        return None


def evidence(opened: Opened, request: Request) -> tuple[str, tuple[str, ...]]:
    """Who asks with which words and which verification; and what speaks against it."""
    said = f"Gate {request.gate}"
    for line in reversed(opened.run.history.lines):
        if line.value.get("turn_id") == request.turn:
            role, summary = text(line.value, "role", 80), text(line.value, "summary", 400)
            said += f", asked for by {role} ({request.turn}): “{summary}”"
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


def approve(opened: Opened) -> Action | None:
    """Open the gate, None where none waits."""
    request = _waiting(opened)
    if request is None:
        return None
    to = f"go on to {request.to}" if request.to else "complete the run"
    root, kind = str(opened.root), request.kind

    def told(fresh: Opened, given: Any) -> tuple[str, tuple[str, ...]]:
        said, against = evidence(fresh, pending(fresh.state, kind))
        return f"Approve and {to}. {said}", against

    def perform(given: Any) -> str:
        state = decide.approve(root, kind, given.by, given.comment, now())
        if state.get("status") == "completed":
            return f"Approved {request.gate}: the run is completed."
        return f"Approved {request.gate}: {state.get('phase')} begins."

    return acting(
        opened,
        "approve-transition" if request.to else "approve-completion",
        "approve_gate",
        f"Approve {request.gate}",
        f"Open the gate {request.gate}: {to}.",
        {"comment": comment("Comment", "What should be remembered of it.")} | BY,
        lambda fresh, given: (
            decide.approving(fresh, kind, given.by, given.comment, now()),
            (),
        ),
        perform,
        told=told,
        defaults=named(),
    )


def reject(opened: Opened) -> Action | None:
    """Send the phase back to work, None where no gate waits."""
    request = _waiting(opened)
    if request is None:
        return None
    root = str(opened.root)

    def told(fresh: Opened, given: Any) -> tuple[str, tuple[str, ...]]:
        said, against = evidence(fresh, pending(fresh.state))
        return f"Send {request.phase} back to work. {said}", against

    def plan(fresh: Opened, given: Any) -> tuple[Any, tuple[()]]:
        _must_be_able(fresh)
        return decide.rejecting_gate(fresh, given.by, given.comment, now()), ()

    def perform(given: Any) -> str:
        from acp_core.protocols.governed.write.opened import look

        _must_be_able(look(root))
        state = decide.reject_gate(root, given.by, given.comment, now())
        return f"Rejected {request.gate}: {state.get('phase')} goes on."

    return acting(
        opened,
        "reject",
        "reject_gate",
        f"Reject {request.gate}",
        f"Send the phase {request.phase} back to work; the next agent is told what is missing.",
        {"comment": comment("What is missing", "The next agent reads it.", needed=True)} | BY,
        plan,
        perform,
        told=told,
        defaults=named(),
    )


def _must_be_able(opened: Opened) -> None:
    """Refuse to reject behind the back of the existing program, which knows no rejection.

    Raises:
        Refused: the run is its.
    """
    if existing_program.program(opened.run) is not None:
        raise Refused(
            f"{existing_program.NAME} has no command that rejects a gate: escalate, or let the role take"
            " another turn"
        )
